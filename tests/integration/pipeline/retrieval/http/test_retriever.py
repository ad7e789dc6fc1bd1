"""Search over HTTP: what is sent, what is read, and what each kind of trouble becomes."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest

from pipeline.errors import CorpusError, PermanentError, SettingsError, TransientError
from pipeline.retrieval.http import call, endpoint
from pipeline.retrieval.http.endpoint import Endpoint
from pipeline.retrieval.http.retriever import HttpRetriever
from pipeline.retrieval.strategies import HttpStrategy
from pipeline.types import Failure, Ranking
from tests.integration.pipeline.retrieval.corpora import questions, ranked
from tests.loopback.scripted import Reply
from tests.loopback.search_server import (
    Exchange,
    SearchServer,
    drip,
    elasticsearch,
    hang,
    own,
    own_batch,
    qdrant,
    raw,
    refuse,
    refuse_words,
)

CHUNKS = {
    "a:0": ("x", "blue whales sing"),
    "a:1": ("y", "red whales sing"),
    "https://b.example/p:0": ("x", "blue moons"),
    "c:0": (None, "a b c"),
}

TOKEN = "canary-token"

# As docs/http_examples.md has it.
ELASTICSEARCH: dict[str, object] = {
    "request": (
        "{query: {bool: {must: [{match: {content: question}}],"
        " filter: tenant && [{term: {tenant: tenant}}] || `[]`}}, size: k}"
    ),
    "results": "hits.hits",
    "key": "join(':', [_source.document_id, to_string(_source.chunk_index)])",
    "score": "_score",
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "FIRST_WAIT", 0.001)


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with SearchServer(CHUNKS, own) as server:
        yield server


def retriever(
    server: SearchServer, environment: dict[str, str] | None = None, **settings: object
) -> HttpRetriever:
    strategy = HttpStrategy.model_validate({"url": server.url} | settings)
    return HttpRetriever("mine", strategy, Endpoint("mine", strategy, environment or {}))


def reasons(answers: list[Ranking | Failure]) -> list[str]:
    return [answer.reason for answer in answers if isinstance(answer, Failure)]


def test_each_question_is_a_request_and_the_answers_keep_its_order(server: SearchServer) -> None:
    texts = ["blue", "whales sing", "nothing", "moons"] * 5
    found = ranked(retriever(server).retrieve(questions(texts=texts), 2))
    expected = [server.search(text, 2) for text in texts]
    assert [list(zip(each.keys, each.scores, strict=True)) for each in found] == expected
    assert sorted(request.body["query"] for request in server.requests) == sorted(texts)
    assert {request.body["k"] for request in server.requests} == {2}


def test_a_tenant_is_sent_unless_it_is_ignored(server: SearchServer) -> None:
    batch = questions(texts=["whales"], tenants=["y"])
    [own_tenant] = ranked(retriever(server).retrieve(batch, 5))
    [anyone] = ranked(retriever(server, tenant="ignore").retrieve(batch, 5))
    assert (list(own_tenant.keys), list(anyone.keys)) == (["a:1"], ["a:0", "a:1"])
    assert [request.body["tenant"] for request in server.requests] == ["y", None]


def test_a_request_that_does_not_read_the_tenant_is_never_sent_for_one(
    server: SearchServer,
) -> None:
    asked = retriever(server, request="{query: question, k: k}")
    with pytest.raises(CorpusError, match="has the tenant 'y', but the request of strategy mine"):
        asked.retrieve(questions(texts=["a", "b"], tenants=[None, "y"]), 5)
    assert server.requests == []


def test_several_questions_share_a_request() -> None:
    with SearchServer(CHUNKS, own_batch) as batches:
        texts = ["blue", "whales sing", "red", "moons", "sing"]
        found = ranked(retriever(batches, batch=2).retrieve(questions(texts=texts), 3))
        assert [list(each.keys) for each in found] == [
            [key for key, _ in batches.search(text, 3)] for text in texts
        ]
        assert sorted(len(request.body["queries"]) for request in batches.requests) == [1, 2, 2]


def test_of_a_request_that_is_refused_only_the_question_that_spoils_it_fails() -> None:
    with SearchServer(CHUNKS, own_batch) as batches:
        refuse_words(batches, ["poison"], 400)
        texts = ["blue", "poison", "red", "moons"]
        answers = retriever(batches, batch=4).retrieve(questions(texts=texts), 3)
        assert [isinstance(answer, Failure) for answer in answers] == [False, True, False, False]
        assert reasons(answers) == [
            f"{batches.host}, asked by strategy mine, answered 400: cannot parse this"
        ]


@pytest.mark.parametrize("size", [2, 4, 5])
@pytest.mark.parametrize("status", [404, 500])
def test_a_question_that_breaks_each_request_it_is_in_fails_alone(size: int, status: int) -> None:
    with SearchServer(CHUNKS, own_batch) as batches:
        refuse_words(batches, ["poison"], status)
        texts = ["blue", "red", "moons", "sing", "poison"]
        answers = retriever(batches, batch=size, attempts=2).retrieve(questions(texts=texts), 3)
        assert [isinstance(answer, Failure) for answer in answers] == [False] * 4 + [True]
        assert reasons(answers)[0].endswith(f"answered {status}: cannot parse this")


def test_a_question_that_was_alone_in_its_request_is_not_asked_twice() -> None:
    with SearchServer(CHUNKS, own_batch) as batches:
        refuse_words(batches, ["poison"], 400)
        answers = retriever(batches, batch=2).retrieve(
            questions(texts=["blue", "red", "poison"]), 3
        )
        assert [isinstance(answer, Failure) for answer in answers] == [False, False, True]
        assert len(batches.requests) == 2


def test_elasticsearch_is_asked_and_read_in_its_own_words() -> None:
    with SearchServer(CHUNKS, elasticsearch, "/docs/_search") as es:
        batch = questions(texts=["blue whales", "blue", "none"], tenants=[None, "x", None])
        found = ranked(retriever(es, None, **ELASTICSEARCH).retrieve(batch, 3))
        assert [list(each.keys) for each in found] == [
            ["a:0", "a:1", "https://b.example/p:0"], ["a:0", "https://b.example/p:0"], [],
        ]  # fmt: skip
        assert list(found[0].scores) == [1.0, 0.5, 0.5]
        assert es.requests[0].path == "/docs/_search"
        sent = {json.dumps(request.body, sort_keys=True) for request in es.requests}
        assert json.dumps({
            "query": {"bool": {"filter": [{"term": {"tenant": "x"}}],
                               "must": [{"match": {"content": "blue"}}]}}, "size": 3,
        }, sort_keys=True) in sent  # fmt: skip


def test_a_vector_is_sent_where_the_request_reads_it() -> None:
    with SearchServer(CHUNKS, qdrant) as store:
        asked = retriever(
            store, request="{query: vector, limit: k, with_payload: `true`}",
            results="result.points", key="payload.key",
        )  # fmt: skip
        assert asked.needs_vectors
        [found] = ranked(asked.retrieve(questions(vectors=np.eye(3, dtype=np.float32)[1:2]), 4))
        assert list(found.keys) == ["c:0"]
        assert store.requests[0].body == {"query": [0, 1, 0], "limit": 4, "with_payload": True}


def test_headers_come_from_the_environment_and_are_in_no_message(server: SearchServer) -> None:
    asked = retriever(server, {"SEARCH_KEY": f"Bearer {TOKEN}"}, headers={"X-Key": "SEARCH_KEY"})
    server.default = raw(400, f"not Bearer {TOKEN}, please".encode())
    [reason] = reasons(asked.retrieve(questions(texts=["a"]), 5))
    assert server.requests[0].headers["x-key"] == f"Bearer {TOKEN}"
    assert server.requests[0].headers["accept"] == "application/json"
    assert TOKEN not in reason
    with pytest.raises(SettingsError, match="environment variable SEARCH_KEY is not set"):
        retriever(server, {}, headers={"X-Key": "SEARCH_KEY"})
    retriever(server, {"SEARCH_KEY": TOKEN}, key_env="SEARCH_KEY").retrieve(
        questions(texts=["a"]), 5
    )
    assert server.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"
    with pytest.raises(SettingsError, match="SEARCH_KEY holds characters that no header has"):
        retriever(server, {"SEARCH_KEY": "a\nb"}, headers={"X-Key": "SEARCH_KEY"})


@pytest.mark.parametrize("value", [f"Bearer {TOKEN}", f"ApiKey {TOKEN}", f"Basic {TOKEN}", TOKEN])
@pytest.mark.parametrize(
    "said", ["Incorrect API key provided: {}", '{{"error": "key {} expired"}}']
)
def test_the_key_alone_is_blotted_out_too(server: SearchServer, value: str, said: str) -> None:
    server.default = raw(422, said.format(TOKEN).encode())
    asked = retriever(server, {"KEY": value}, headers={"Authorization": "KEY"})
    [reason] = reasons(asked.retrieve(questions(texts=["a"]), 5))
    assert "***" in reason
    assert TOKEN not in reason


def test_parameters_of_the_url_are_sent(server: SearchServer) -> None:
    asked = retriever(server, params={"api-version": "2024-07-01", "pipeline": "a b"})
    assert len(ranked(asked.retrieve(questions(texts=["blue"]), 5))) == 1
    path, _, sent = server.requests[0].path.partition("?")
    assert (path, parse_qs(sent)) == (
        "/search", {"api-version": ["2024-07-01"], "pipeline": ["a b"]},
    )  # fmt: skip


@pytest.mark.parametrize(("location", "shown"), [
    (f"http://user:{TOKEN}@h.example/x", "a redirect to http://h.example, which"),
    ("http://[", "a redirect to what is no URL, which"),
])  # fmt: skip
def test_where_a_redirect_leads_is_said_without_secrets(
    server: SearchServer, location: str, shown: str
) -> None:
    server.default = refuse(302, Location=location)
    with pytest.raises(PermanentError) as raised:
        retriever(server).retrieve(questions(texts=["a"]), 5)
    assert shown in str(raised.value)
    assert TOKEN not in str(raised.value)


def test_a_server_that_breaks_off_over_one_question_fails_that_question(
    server: SearchServer,
) -> None:
    answer = server.default

    def reply(exchange: Exchange) -> None:
        if exchange.request.body["query"] == "poison":
            exchange.handler.close_connection = True
        else:
            answer(exchange)

    server.default = reply
    answers = retriever(server, attempts=2).retrieve(questions(texts=["blue", "poison", "red"]), 5)
    assert [isinstance(answer, Failure) for answer in answers] == [False, True, False]
    assert "cannot be reached, or broke off" in reasons(answers)[0]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 520, 529])
def test_what_may_pass_is_tried_again(server: SearchServer, status: int) -> None:
    server.script = [refuse(status), refuse(status)]
    [found] = ranked(retriever(server).retrieve(questions(texts=["moons"]), 1))
    assert list(found.keys) == ["https://b.example/p:0"]
    assert len(server.requests) == 3


def test_a_question_that_always_breaks_the_server_fails_alone(server: SearchServer) -> None:
    refuse_words(server, ["poison"], 500)
    answers = retriever(server).retrieve(questions(texts=["blue", "poison", "red"]), 5)
    assert [isinstance(answer, Failure) for answer in answers] == [False, True, False]
    assert reasons(answers)[0].endswith("answered 500: cannot parse this")


@pytest.mark.parametrize("reply", [refuse(500), refuse(429), hang()])
def test_a_server_that_answers_nothing_is_no_fault_of_the_questions(
    server: SearchServer, reply: Reply
) -> None:
    server.default = reply
    with pytest.raises(TransientError):
        retriever(server, timeout=0.2, attempts=2).retrieve(questions(texts=["a"] * 40), 5)
    assert len(server.requests) <= 2 * (call.GIVE_UP_AFTER + 8)


def test_a_longer_wait_than_a_task_has_is_handed_on(server: SearchServer) -> None:
    server.script = [refuse(429, Retry_After="90")]
    with pytest.raises(TransientError) as raised:
        retriever(server, max_wait=5).retrieve(questions(texts=["a"]), 5)
    assert raised.value.retry_after == 90
    server.script = [refuse(503, Retry_After="0")]
    assert len(ranked(retriever(server).retrieve(questions(texts=["blue"]), 5))) == 1


def test_nobody_listening_is_transient() -> None:
    closed = SearchServer(CHUNKS, own)
    with closed:
        asked = retriever(closed, attempts=1)
    with pytest.raises(TransientError, match="asked by strategy mine, cannot be reached"):
        asked.retrieve(questions(texts=["a"]), 5)


@pytest.mark.parametrize(("status", "requests"), [
    (401, 1), (405, 1), (403, call.GIVE_UP_AFTER), (404, call.GIVE_UP_AFTER),
])  # fmt: skip
def test_a_wrong_url_or_key_ends_the_run(server: SearchServer, status: int, requests: int) -> None:
    server.default = refuse(status, "no such thing")
    with pytest.raises(PermanentError, match=f"answered {status}: no such thing"):
        retriever(server, concurrency=1).retrieve(questions(texts=["a"] * 20), 5)
    assert len(server.requests) == requests
    with pytest.raises(PermanentError, match=f"answered {status}: no such thing"):
        retriever(server).retrieve(questions(texts=["a"]), 5)


@pytest.mark.parametrize("status", [403, 404])
def test_what_is_refused_of_one_question_is_its_failure(server: SearchServer, status: int) -> None:
    refuse_words(server, ["gone"], status)
    answers = retriever(server).retrieve(questions(texts=["gone", "blue", "red"]), 5)
    assert [isinstance(answer, Failure) for answer in answers] == [True, False, False]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server: SearchServer, status: int) -> None:
    with SearchServer(CHUNKS, own) as elsewhere:
        server.default = refuse(status, Location=f"{elsewhere.url}?token={TOKEN}")
        with pytest.raises(PermanentError) as raised:
            retriever(server).retrieve(questions(texts=["a"]), 5)
        assert elsewhere.requests == []
    assert f"a redirect to http://{elsewhere.host}, which is not followed" in str(raised.value)
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize(("body", "said"), [
    (b"<html>", "sent a reply that is no JSON"),
    (b"[]", "the reply has no list of results at results"),
    (b'{"results": {"key": "a"}}', "the reply has no list of results at results"),
    (b'{"results": [{"id": "a"}]}', "a result has no key at key"),
    (b'{"results": [{"key": null}]}', "a result has no key at key"),
    (b'{"results": [{"key": true}]}', "a result has no key at key"),
    (b'{"results": [{"key": "a", "score": "high"}]}', "a result has no number as score at score"),
    (b'{"results": [{"key": "a", "score": 1}, {"key": "b"}]}', "a result has no number as score"),
    (b'{"results": [{"key": "a", "score": 1e999}]}', "a result has no number as score"),
    (b'{"results": [{"key": "a", "score": 1' + b"0" * 400 + b"}]}", "has no number as score"),
    (b'{"results": [{"key": "a\\u0000"}]}', "a result's key at key holds what no text may"),
    (b'{"results": [{"key": "a\\ud800"}]}', "a result's key at key holds what no text may"),
    (b"[" * 100_000, "sent a reply that is no JSON"),
    (b'"' + b"x" * 2000 + b'"', "larger than 1,500 bytes"),
])  # fmt: skip
def test_a_reply_that_cannot_be_read_is_a_failure_not_a_miss(
    server: SearchServer, body: bytes, said: str
) -> None:
    server.default = raw(200, body)
    most = 1500 if body.startswith(b'"') else 200_000
    answers = retriever(server, max_reply=most).retrieve(questions(texts=["a", "b"]), 5)
    assert len(reasons(answers)) == 2
    assert all(said in reason for reason in reasons(answers))


def test_a_reply_that_drips_ends_with_the_time_limit(server: SearchServer) -> None:
    server.script = [drip(0.01)]
    answers = retriever(server, timeout=0.3, attempts=1, concurrency=1).retrieve(
        questions(texts=["a", "blue"]), 5
    )
    assert [isinstance(answer, Failure) for answer in answers] == [True, False]
    assert "did not answer within 0.3 s" in reasons(answers)[0]


def test_an_expression_that_a_reply_does_not_fit_quotes_nothing_of_it(
    server: SearchServer,
) -> None:
    server.default = raw(200, json.dumps({"results": [{"key": ["secret" * 999, 5]}]}).encode())
    asked = retriever(server, key="join(':', key)")
    [reason] = reasons(asked.retrieve(questions(texts=["a"]), 5))
    assert reason == (
        "the reply cannot be read: join(':', key) cannot be applied:"
        " join() takes array-string, not int"
    )


def test_results_are_cut_at_the_limit_and_without_scores_the_order_stands(
    server: SearchServer,
) -> None:
    server.default = raw(200, json.dumps({"results": [{"key": n} for n in range(9)]}).encode())
    [found] = ranked(retriever(server).retrieve(questions(texts=["a"]), 3))
    assert (list(found.keys), list(found.scores)) == (["0", "1", "2"], [1, 1 / 2, 1 / 3])


def test_no_more_requests_are_under_way_than_allowed(server: SearchServer) -> None:
    retriever(server, concurrency=3).retrieve(questions(texts=["blue"] * 60), 5)
    assert len(server.requests) == 60
    assert server.most_at_once <= 3


def test_an_expression_that_cannot_be_applied_says_so(server: SearchServer) -> None:
    asked = retriever(server, request="{query: length(k), q: question}")
    batch: Any = questions(texts=["a"])
    with pytest.raises(PermanentError, match=r"strategies\.mine\.request: .*cannot be applied"):
        asked.retrieve(batch, 5)
