"""A second stage: candidates reranked, both rankings kept, and whose fault a failure is."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import ValidationError

from pipeline.errors import PermanentError, TransientError
from pipeline.retrieval.build import Resources, build
from pipeline.retrieval.http import endpoint
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import (
    HybridStrategy,
    RerankStrategy,
    SqlStrategy,
    Strategy,
    check_parts,
    variables_of,
)
from pipeline.retrieval.strategies.rerank import HttpReranker
from pipeline.retrieval.tree import StrategyTree, tree_of
from pipeline.types import Failure, QueryBatch, Ranking
from tests.integration.pipeline.retrieval.corpora import Passage, fill, questions, ranked
from tests.loopback.rerank_server import RerankServer, zness
from tests.loopback.scripted import raw

Connection = psycopg.Connection[Any]

BODIES = ["word", "word zz zz", "word zzzzzz", "word z", "word zz and more", "other zzz"]

HTTP: dict[str, object] = {"kind": "http", "model": "m", "key_env": "RERANK_KEY"}

WORDS = SqlStrategy(
    statement="""SELECT doc || ':' || "Part" AS key, 1.0 / (1 + "Part") AS score FROM "Passages"
    WHERE body LIKE :question || '%' AND (:tenant IS NULL OR customer = :tenant)
    ORDER BY "Part" LIMIT :k"""
)

OWN = """
import asyncio

CALLS = []

class ByLength:
    def __init__(self, sign):
        self.sign = sign

    def rerank(self, question, documents):
        CALLS.append((question, documents))
        return [self.sign * len(text) for text in documents]


async def by_z(question, documents):
    return [text.count("z") for text in documents]


def breaks(question, documents):
    if question == "word z":
        raise KeyError("no score")
    return [1] * len(documents)


def short(question, documents):
    return [1]


def no_number(question, documents):
    return [float("nan")] * len(documents)


def generated(question, documents):
    yield 1
    raise KeyError("no model")


class Client:
    loop = None

    async def rerank(self, question, documents):
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop() or self.loop.is_closed():
            raise RuntimeError("Event loop is closed")
        return [len(text) for text in documents]


def odd(question, documents, keys):
    return []
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "FIRST_WAIT", 0.001)


@pytest.fixture
def session(conn: Connection) -> CorpusSession:
    passages = [Passage("d", n, body, "ab"[n % 2]) for n, body in enumerate(BODIES)]
    return CorpusSession(conn, fill(conn, passages))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "own_reranker.py").write_text(OWN)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    sys.modules.pop("own_reranker", None)


def strategies(reranker: Mapping[str, object], **settings: object) -> dict[str, Strategy]:
    second = {"candidates": "words", "reranker": reranker} | settings
    return {"words": WORDS, "second": RerankStrategy.model_validate(second)}


def ask(
    session: CorpusSession,
    named: dict[str, Strategy],
    batch: QueryBatch,
    limit: int,
    folder: Path | None = None,
) -> list[Ranking | Failure]:
    resources = Resources(session, environment={"RERANK_KEY": "canary"}, host=PythonHost(folder))
    return build(tree_of("second", named), resources).retrieve(batch, limit)


def over_http(server: RerankServer, shape: str) -> dict[str, object]:
    return {
        "kind": "http",
        "shape": shape,
        "url": server.url,
        "model": "m",
        "key_env": "RERANK_KEY",
    }


@pytest.mark.parametrize("shape", ["cohere", "jina", "voyage", "tei"])
def test_candidates_come_back_in_the_rerankers_order_with_both_rankings(
    session: CorpusSession, shape: str
) -> None:
    with RerankServer(shape) as server:
        named = strategies(over_http(server, shape), depth=4)
        word, other, nothing = ranked(
            ask(session, named, questions(texts=["word", "other", "none"]), 3)
        )
        assert len(server.requests) == 2
        assert server.requests[0].headers["authorization"] == "Bearer canary"
    best = sorted(range(4), key=lambda n: (-zness(BODIES[n]), n))[:3]
    assert list(word.keys) == [f"d:{n}" for n in best]
    assert list(word.scores) == pytest.approx([zness(BODIES[n]) for n in best])
    assert list(word.stages["candidates"].keys) == ["d:0", "d:1", "d:2", "d:3"]
    assert list(word.stages["candidates"].scores) == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert (list(other.keys), list(nothing.keys)) == (["d:5"], [])


def test_as_many_candidates_are_asked_for_as_results(session: CorpusSession) -> None:
    with RerankServer("tei") as server:
        [found] = ranked(ask(session, strategies(over_http(server, "tei"), depth=1),
                             questions(texts=["word"]), 5))  # fmt: skip
    assert sorted(found.keys) == ["d:0", "d:1", "d:2", "d:3", "d:4"]


def test_a_tenants_question_is_reranked_over_its_own_texts(session: CorpusSession) -> None:
    with RerankServer("tei") as server:
        batch = questions(texts=["word", "word"], tenants=["b", None])
        own, whole = ranked(ask(session, strategies(over_http(server, "tei")), batch, 5))
        sent = sorted(len(request.body["texts"]) for request in server.requests)
    assert (sorted(own.keys), len(whole.keys), sent) == (["d:1", "d:3"], 5, [2, 5])


def test_equal_scores_keep_the_order_of_the_candidates(session: CorpusSession) -> None:
    with RerankServer("tei") as server:
        reply = [{"index": n, "score": 1} for n in (4, 2, 3, 0, 1)]
        server.default = raw(200, json.dumps(reply).encode())
        [found] = ranked(ask(session, strategies(over_http(server, "tei")),
                             questions(texts=["word"]), 5))  # fmt: skip
    assert list(found.keys) == ["d:0", "d:1", "d:2", "d:3", "d:4"]
    assert {type(score) for score in found.scores} == {float}  # as integers they cannot be stored


@pytest.mark.parametrize(("most", "sent"), [(2, [2, 2, 1]), (4, [4, 1]), (5, [5]), (None, [5])])
def test_more_documents_than_a_request_holds_are_asked_about_in_several(
    session: CorpusSession, most: int | None, sent: list[int]
) -> None:
    with RerankServer("tei") as server:
        reranker = over_http(server, "tei") | {"max_documents": most, "concurrency": 1}
        [found] = ranked(ask(session, strategies(reranker), questions(texts=["word"]), 5))
        assert [len(request.body["texts"]) for request in server.requests] == sent
    best = sorted(range(5), key=lambda n: (-zness(BODIES[n]), n))
    assert list(found.keys) == [f"d:{n}" for n in best]


def test_where_a_part_of_the_documents_is_refused_the_question_fails(
    session: CorpusSession,
) -> None:
    with RerankServer("tei") as server:
        server.script = [raw(413, b"too many")]
        reranker = over_http(server, "tei") | {"max_documents": 3, "concurrency": 1}
        first, second = ask(session, strategies(reranker), questions(texts=["word", "word"]), 5)
    assert isinstance(first, Failure)
    assert first.reason.endswith("answered 413: too many")
    assert len(ranked([second])[0].keys) == 5


def test_text_embeddings_inference_gets_no_more_than_it_takes_by_default() -> None:
    tei = HttpReranker.model_validate({"shape": "tei", "url": "http://localhost/rerank"})
    jina = HttpReranker.model_validate({"shape": "jina", "url": "http://localhost/r", "model": "m"})
    assert (tei.documents_at_once, jina.documents_at_once) == (32, 1000)


@pytest.mark.parametrize("reply", [
    {"results": []}, [], [{"index": 0}], "no", None, [{"index": 9, "score": 1}],
    [{"index": 0, "score": 1}, {"index": 0, "score": 2}], [{"index": 0, "score": "high"}],
    [{"index": True, "score": 1}], [{"index": 0, "score": True}],
    [{"index": 0, "score": 10**400}],
])  # fmt: skip
def test_a_reply_that_cannot_be_read_is_a_failure_of_its_stage(
    session: CorpusSession, reply: object
) -> None:
    with RerankServer("tei") as server:
        server.default = raw(200, json.dumps(reply).encode())
        [failed] = ask(session, strategies(over_http(server, "tei")),
                       questions(texts=["other"]), 5)  # fmt: skip
    if reply == []:
        assert failed == Ranking([], [], failed.stages if isinstance(failed, Ranking) else {})
    else:
        assert isinstance(failed, Failure)
        assert failed.reason.startswith("reranker: the reranker's reply ")


def test_a_reranker_that_is_down_is_no_fault_of_the_questions(session: CorpusSession) -> None:
    with RerankServer("tei") as server:
        server.default = raw(500, b"out of memory")
        with pytest.raises(TransientError, match="asked by strategy second, answered 500: out of"):
            ask(session, strategies(over_http(server, "tei")), questions(texts=["word"] * 9), 5)


def test_a_failure_says_in_which_stage_it_was(session: CorpusSession, folder: Path) -> None:
    named = strategies({"kind": "python", "path": "own_reranker:breaks"})
    batch = questions(texts=["word", "word z", "a\0b"])
    first, second, third = ask(session, named, batch, 2, folder)
    assert len(ranked([first])[0].keys) == 2
    assert second == Failure("reranker: KeyError: 'no score'")
    assert isinstance(third, Failure)
    assert third.reason.startswith("candidates: ")


def test_own_python_reranks_by_its_numbers(session: CorpusSession, folder: Path) -> None:
    longest = {"kind": "python", "path": "own_reranker:ByLength", "settings": {"sign": 1}}
    [found] = ranked(ask(session, strategies(longest), questions(texts=["word"]), 2, folder))
    by_length = sorted(range(5), key=lambda n: (-len(BODIES[n]), n))
    assert list(found.keys) == [f"d:{n}" for n in by_length[:2]]
    assert [("word", BODIES[:5])] == sys.modules["own_reranker"].CALLS
    by_z = {"kind": "python", "path": "own_reranker:by_z"}
    [found] = ranked(ask(session, strategies(by_z), questions(texts=["word"]), 1, folder))
    assert list(found.keys) == ["d:2"]


def test_a_client_of_an_event_loop_is_kept_between_questions(
    session: CorpusSession, folder: Path
) -> None:
    named = strategies({"kind": "python", "path": "own_reranker:Client"})
    first, second = ranked(ask(session, named, questions(texts=["word"] * 2), 3, folder))
    assert list(first.keys) == list(second.keys)
    assert list(first.scores) == sorted((len(text) for text in BODIES[:5]), reverse=True)[:3]


@pytest.mark.parametrize(("name", "said"), [
    ("short", "own_reranker:short returned no list of 5 scores"),
    ("no_number", "own_reranker:no_number returned a score that is no number"),
    ("generated", "KeyError: 'no model'"),
])  # fmt: skip
def test_what_is_no_score_for_each_text_is_a_failure(
    session: CorpusSession, folder: Path, name: str, said: str
) -> None:
    named = strategies({"kind": "python", "path": f"own_reranker:{name}"})
    assert ask(session, named, questions(texts=["word"]), 5, folder) == [
        Failure(f"reranker: {said}")
    ]


def test_code_that_takes_something_else_stops_the_run(session: CorpusSession, folder: Path) -> None:
    named = strategies({"kind": "python", "path": "own_reranker:odd"})
    with pytest.raises(PermanentError, match="takes keys, which there is not; it may take by name"):
        ask(session, named, questions(texts=["word"]), 5, folder)


def test_candidates_that_the_corpus_does_not_hold_cannot_be_reranked(
    session: CorpusSession, folder: Path
) -> None:
    elsewhere = SqlStrategy(statement="SELECT k AS key FROM unnest(ARRAY['d:1', 'x:9']) AS k WHERE"
                            " :question <> '' LIMIT :k")  # fmt: skip
    nowhere = SqlStrategy(statement="SELECT 'x:9' AS key WHERE :question <> ''")
    named = strategies({"kind": "python", "path": "own_reranker:by_z"})
    [found] = ranked(ask(session, named | {"words": elsewhere}, questions(texts=["a"]), 5, folder))
    assert list(found.keys) == ["d:1"]
    assert list(found.stages["candidates"].keys) == ["d:1", "x:9"]
    failed = ask(session, named | {"words": nowhere}, questions(texts=["a"]), 5, folder)
    assert failed == [Failure("none of the candidates, as x:9, is in the corpus")]


def test_its_tree_is_stored_and_read_back(session: CorpusSession) -> None:
    reranker = {
        "kind": "http",
        "shape": "tei",
        "url": "http://localhost/r",
        "key_env": "RERANK_KEY",
    }
    named: dict[str, Strategy] = strategies(reranker) | {
        "both": HybridStrategy(arms={"second": 1.0, "words": 2.0})
    }
    check_parts(named)
    tree = tree_of("both", named)
    assert StrategyTree.from_json(json.loads(json.dumps(tree.to_json()))) == tree
    assert (tree.reranks, tree_of("words", named).reranks) == (True, False)
    assert [each.name for each in tree.searches()] == ["words", "words"]
    assert variables_of(named) == ["RERANK_KEY"]
    assert session.place


def test_a_circle_and_a_missing_model_are_refused() -> None:
    circle = {"second": RerankStrategy.model_validate({
        "candidates": "second", "reranker": {"kind": "python", "path": "a:b"}})}  # fmt: skip
    with pytest.raises(ValueError, match="it asks itself in the end: second -> second"):
        check_parts(circle)
    with pytest.raises(ValidationError, match="model is required with shape cohere"):
        strategies({"kind": "http", "shape": "cohere", "url": "http://localhost/r"})
