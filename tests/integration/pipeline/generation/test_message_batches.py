"""The same asks as a message batch: submitted once, looked at, and read when it is over."""

import json
from collections.abc import Mapping

import pytest

from pipeline.errors import PermanentError, TransientError
from pipeline.generation.base import (
    MOST_ASKS,
    Answer,
    Ask,
    BatchGoneError,
    NotBilled,
    UnknownOutcomeError,
)
from pipeline.generation.build import build_batch_generator
from pipeline.generation.message_batches import _LARGEST_RESULTS
from pipeline.generation.sizes import size
from tests.integration.pipeline.generation.conftest import (
    ASK,
    KEY,
    RETURNS,
    Build,
    BuildBatches,
    failing,
    settings_for,
)
from tests.loopback.anthropic_server import (
    AnthropicServer,
    Reply,
    hang,
    key_of,
    raw,
    refuse,
)

ASKS = {"g1-1": ASK, "g1-2": Ask([RETURNS], ["factual"])}

SHOWN = raw(200, b'{"id": "msgbatch_1", "processing_status": "ended", "results_url": "there"}')
"""A batch that has ended."""


def test_a_batch_holds_the_requests_that_would_be_sent_one_by_one(
    server: AnthropicServer, build: Build, build_batches: BuildBatches
) -> None:
    build().ask(ASK)
    batch_id = build_batches().submit(ASKS)

    alone, batch = server.requests
    assert (batch.path, key_of(batch)) == ("/v1/messages/batches", KEY)
    assert [request["custom_id"] for request in batch.body["requests"]] == ["g1-1", "g1-2"]
    assert batch.body["requests"][0]["params"] == alone.body
    assert list(server.batches) == [batch_id]


def test_answers_come_by_id_once_the_batch_has_ended_and_are_billed_once(
    server: AnthropicServer, build_batches: BuildBatches
) -> None:
    generator = build_batches()
    batch_id = generator.submit(ASKS)

    early = generator.poll(batch_id, ASKS)
    server.end_batches()
    answers, again = generator.poll(batch_id, ASKS), generator.poll(batch_id, ASKS)

    assert early is None
    assert answers is not None
    assert answers == again
    first, second = answers["g1-1"], answers["g1-2"]
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert [len(first.drafts), len(second.drafts)] == [2, 1]
    billed = {paid.usage["input_tokens"] for paid in server.paid}
    assert {first.usage.input_tokens, second.usage.input_tokens} == billed
    assert len(server.paid) == 2


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"type": "expired"}, "the batch's day was over before this request"),
        ({"type": "canceled"}, "the batch was cancelled before this request"),
        (
            {"type": "errored", "error": {"type": "error", "error": {"message": f"no\n{KEY}"}}},
            "the provider refused it: no ***",
        ),
        ({"type": "errored", "error": None}, "the provider refused it"),
    ],
)
def test_an_ask_that_was_not_billed_has_a_reason_in_the_place_of_an_answer(
    server: AnthropicServer, build_batches: BuildBatches, result: Mapping[str, object], said: str
) -> None:
    server.ends_at_once = True
    server.results.instead = {"g1-2": result}
    generator = build_batches()

    answers = generator.poll(generator.submit(ASKS), ASKS)

    assert answers is not None
    assert isinstance(answers["g1-1"], Answer)
    assert answers["g1-2"] == NotBilled(said)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"type": "succeeded"}, "the provider says no more than: succeeded"),
        ({"type": f"put\noff by {KEY}"}, "the provider says no more than: put off by ***"),
        ({"state": "lost"}, "the batch's results do not tell of it"),
    ],
)
def test_an_ask_of_which_the_results_say_nothing_known_may_have_been_billed(
    server: AnthropicServer, build_batches: BuildBatches, result: Mapping[str, object], said: str
) -> None:
    server.ends_at_once = True
    server.results.instead = {"g1-2": result}
    generator = build_batches()

    answers = generator.poll(generator.submit(ASKS), ASKS)

    assert answers is not None
    assert isinstance(answers["g1-1"], Answer)
    assert isinstance(answers["g1-2"], UnknownOutcomeError)
    assert str(answers["g1-2"]) == said


def test_an_ask_that_the_results_leave_out_and_one_they_add_are_no_answers(
    server: AnthropicServer, build_batches: BuildBatches
) -> None:
    server.ends_at_once = True
    generator = build_batches()
    batch_id = generator.submit({**ASKS, "g9-9": ASK})

    answers = generator.poll(batch_id, {"g1-1": ASK, "g1-7": ASK})

    assert answers is not None
    assert answers.keys() == {"g1-1", "g1-7"}
    assert isinstance(answers["g1-7"], UnknownOutcomeError)
    assert str(answers["g1-7"]) == "the batch's results do not tell of it"


def test_the_last_answers_of_a_large_batch_can_be_read_alone(
    server: AnthropicServer, build_batches: BuildBatches
) -> None:
    server.ends_at_once = True
    generator = build_batches()
    batch_id = generator.submit({f"g1-{i}": ASK for i in range(MOST_ASKS)})

    answers = generator.poll(batch_id, {"g1-7": ASK})

    assert answers is not None
    assert isinstance(answers["g1-7"], Answer)


@pytest.mark.parametrize("message", [None, {}, {"type": "message"}, {"usage": "free"}])
def test_a_done_request_that_does_not_say_its_cost_is_counted_at_its_most(
    server: AnthropicServer, build_batches: BuildBatches, message: object
) -> None:
    server.ends_at_once = True
    server.results.instead = {"g1-1": {"type": "succeeded", "message": message}}
    generator = build_batches()

    answers = generator.poll(generator.submit(ASKS), ASKS)

    assert answers is not None
    answer = answers["g1-1"]
    assert isinstance(answer, Answer)
    assert answer.usage == size(ASK)[1]
    assert "an answer of no use" in str(answer.refusal)


def test_a_results_url_of_another_host_is_not_followed(
    server: AnthropicServer, build_batches: BuildBatches
) -> None:
    generator = build_batches()
    batch_id = generator.submit(ASKS)
    server.end_batches()
    with AnthropicServer() as elsewhere:
        shown = {
            "id": batch_id,
            "processing_status": "ended",
            "results_url": f"{elsewhere.url}/v1/messages/batches/{batch_id}/results",
        }
        server.script = [raw(200, json.dumps(shown).encode())]

        answers = generator.poll(batch_id, ASKS)

    assert answers is not None
    assert elsewhere.requests == []


def test_results_that_the_provider_dropped_are_told_for_good(
    server: AnthropicServer, build_batches: BuildBatches
) -> None:
    shown = {"id": "msgbatch_1", "processing_status": "ended", "results_url": None}
    server.script = [raw(200, json.dumps(shown).encode())]

    error = failing(lambda: build_batches().poll("msgbatch_1", ASKS))

    assert isinstance(error, BatchGoneError)
    assert "the results of message batch msgbatch_1 are gone" in str(error)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refuse(429, "rate_limit_error", headers={"retry-after": "4"}), TransientError),
        (refuse(529, "overloaded_error"), TransientError),
        (raw(502, b""), UnknownOutcomeError),
        (raw(200, b"{}"), UnknownOutcomeError),
        (raw(200, b'{"id": "../../keys", "processing_status": "ended"}'), UnknownOutcomeError),
        (
            raw(200, b'{"id": "b", "processing_status": "in_progress"', missing=1),
            UnknownOutcomeError,
        ),
        (hang(), UnknownOutcomeError),
        (refuse(401, "authentication_error", KEY), PermanentError),
        (refuse(400, said="requests.0.params.model: Field required"), PermanentError),
        (refuse(413, "request_too_large"), PermanentError),
    ],
)
def test_a_batch_that_may_have_been_made_is_told_apart_from_one_that_was_not(
    server: AnthropicServer, build_batches: BuildBatches, reply: Reply, kind: type[Exception]
) -> None:
    server.script = [reply]

    error = failing(lambda: build_batches(timeout=0.5).submit(ASKS))

    assert type(error) is kind
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        ([raw(502, b"")], TransientError),
        ([hang()], TransientError),
        ([raw(200, b"not JSON")], TransientError),
        ([raw(200, b'{"id": "msgbatch_1", "processing_status": "sleeping"}')], TransientError),
        ([refuse(401, "authentication_error")], PermanentError),
        ([refuse(404, "not_found_error")], BatchGoneError),
        ([SHOWN, raw(502, b"")], TransientError),
        ([SHOWN, raw(200, b"not JSON\n")], TransientError),
        ([SHOWN, raw(200, b'{"custom_id": 7}\n')], TransientError),
        ([SHOWN, raw(200, b" " * (_LARGEST_RESULTS + 1))], TransientError),
        ([SHOWN, raw(307, b"", headers={"Location": "http://127.0.0.1:1/"})], PermanentError),
    ],
)
def test_looking_at_a_batch_costs_nothing_so_that_it_may_be_done_again(
    server: AnthropicServer,
    build_batches: BuildBatches,
    replies: list[Reply],
    kind: type[Exception],
) -> None:
    server.script = list(replies)

    error = failing(lambda: build_batches(timeout=0.5).poll("msgbatch_1", ASKS))

    assert type(error) is kind


def test_a_cancelled_batch_ends_with_nothing_billed(
    server: AnthropicServer, build_batches: BuildBatches
) -> None:
    generator = build_batches()
    batch_id = generator.submit(ASKS)

    generator.cancel(batch_id)
    while_it_ends = generator.poll(batch_id, ASKS)
    server.end_batches()
    answers = generator.poll(batch_id, ASKS)

    assert while_it_ends is None
    assert answers is not None
    assert set(answers.values()) == {NotBilled("the batch was cancelled before this request")}
    assert server.paid == []


def test_cancelling_a_batch_that_is_over_changes_nothing(
    server: AnthropicServer, build_batches: BuildBatches
) -> None:
    generator = build_batches()
    batch_id = generator.submit(ASKS)
    server.end_batches()

    generator.cancel(batch_id)

    assert generator.poll(batch_id, ASKS) is not None


@pytest.mark.parametrize(
    ("reply", "kind"),
    [(refuse(401, "authentication_error"), PermanentError), (raw(502, b""), TransientError)],
)
def test_a_cancellation_that_was_not_taken_is_said(
    server: AnthropicServer, build_batches: BuildBatches, reply: Reply, kind: type[Exception]
) -> None:
    generator = build_batches()
    batch_id = generator.submit(ASKS)
    server.script = [reply]

    assert type(failing(lambda: generator.cancel(batch_id))) is kind


def test_a_server_on_this_machine_takes_batches_without_a_key(server: AnthropicServer) -> None:
    build_batch_generator(settings_for(server), None).submit(ASKS)

    assert key_of(server.requests[0]) == "no-key"
