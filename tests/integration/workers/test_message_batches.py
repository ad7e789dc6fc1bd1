"""Message batches, over a loopback server that bills: sent once, looked at until they are done."""

from typing import Any

import pytest

from db import generation_requests, message_batches
from db.generation_requests import Claim
from pipeline.generation.message_batches import ClaudeBatches
from tests.integration.db.building import execute, fetch
from tests.integration.workers.generating import begin, cost_of, let_leases_end, seen, wanted, work
from tests.integration.workers.working import Bell
from tests.loopback.anthropic_server import AnthropicServer, refuse
from workers.asking import NOT_STORED
from workers.context import Context
from workers.generating import prepare, resume
from workers.generation import cancel
from workers.generation_sweeping import sweep_generations


def test_a_message_batch_is_sent_once_polled_and_costs_half(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, message_batches=True)
    assert work(asker, bell) == []
    assert len(claude.batches) == 1
    sweep_generations(asker, quiet=0, poll_every=0)
    assert work(asker, bell) == []
    assert seen(asker, generation_id)[0].status == "running"

    claude.end_batches()
    sweep_generations(asker, quiet=0, poll_every=0)

    assert work(asker, bell) == [generation_id]
    figures = seen(asker, generation_id)[1]
    assert figures.counts.requests == {"answered": 3}
    assert figures.spent == pytest.approx(cost_of(claude) / 2)
    assert len(claude.batches) == 1


def test_a_batch_that_cannot_be_looked_at_for_a_while_is_looked_at_again(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, message_batches=True)
    work(asker, bell)
    claude.end_batches()
    for script in ([refuse(401, "authentication_error")], [refuse(529, "overloaded_error")]):
        claude.script = script
        sweep_generations(asker, quiet=0, poll_every=0)
        assert work(asker, bell) == []

    sweep_generations(asker, quiet=0, poll_every=0)

    assert work(asker, bell) == [generation_id]


def test_a_batch_that_is_not_done_by_the_deadline_is_given_up_and_looked_at_by_a_resume(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, message_batches=True)
    work(asker, bell)
    execute(asker.database, "UPDATE recallwatch.generation SET deadline_at = now()")
    sweep_generations(asker, quiet=0, poll_every=0)
    work(asker, bell)
    found, figures = seen(asker, generation_id)
    assert (found.status, figures.counts.requests) == ("failed", {"unknown": 3})

    claude.end_batches()
    resume(asker, generation_id, ask_again=False, max_cost=None)

    assert work(asker, bell) == [generation_id]
    assert len(claude.batches) == 1


def test_of_a_message_batch_only_what_fits_the_cap_is_sent_and_the_rest_later(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, message_batches=True)
    most = prepare(asker, wanted(asker, again=True, message_batches=True)).estimate.most
    assert most is not None
    execute(asker.database, "UPDATE recallwatch.generation SET max_cost = :cap",
            {"cap": 0.7 * most})  # fmt: skip
    work(asker, bell)
    assert seen(asker, generation_id)[1].counts.requests == {"asked": 2, "pending": 1}

    claude.end_batches()
    sweep_generations(asker, quiet=0, poll_every=0)
    work(asker, bell)
    let_leases_end(asker)
    sweep_generations(asker, quiet=0, poll_every=0)
    work(asker, bell)
    claude.end_batches()
    sweep_generations(asker, quiet=0, poll_every=0)

    assert work(asker, bell) == [generation_id]
    assert seen(asker, generation_id)[1].counts.requests == {"answered": 3}
    assert len(claude.batches) == 2


def test_a_worker_lost_before_the_batchs_id_was_stored_sends_no_second_one(
    asker: Context, bell: Bell, claude: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation_id = begin(asker, message_batches=True)

    def lost(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(message_batches, "note", lost)
        with pytest.raises(SystemExit):
            work(asker, bell)
    let_leases_end(asker)
    sweep_generations(asker, quiet=0, poll_every=0)
    work(asker, bell)

    assert seen(asker, generation_id)[1].counts.requests == {"unknown": 3}
    assert len(claude.batches) == 1


def test_cancelling_ends_the_message_batch_too_and_keeps_what_was_paid_for(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, message_batches=True)
    work(asker, bell)

    assert cancel(asker, generation_id) == []

    assert all(batch.is_cancelled for batch in claude.batches.values())
    claude.end_batches()
    sweep_generations(asker, quiet=0, poll_every=0)
    work(asker, bell)
    found, figures = seen(asker, generation_id)
    assert found.status == "cancelled"
    assert figures.spent == pytest.approx(cost_of(claude) / 2)


def end_and_poll(ctx: Context, bell: Bell, claude: AnthropicServer) -> list[int]:
    claude.end_batches()
    sweep_generations(ctx, quiet=0, poll_every=0)
    return work(ctx, bell)


def test_asked_again_a_batch_whose_answers_are_there_is_read_and_not_paid_for_twice(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, message_batches=True)
    work(asker, bell)
    execute(asker.database, "UPDATE recallwatch.generation SET deadline_at = now()")
    sweep_generations(asker, quiet=0, poll_every=0)
    work(asker, bell)
    claude.end_batches()

    resume(asker, generation_id, ask_again=True, max_cost=None)
    work(asker, bell)

    assert seen(asker, generation_id)[1].counts.requests == {"answered": 3}
    assert (len(claude.batches), len(claude.paid)) == (1, 3)


def test_a_batch_that_is_gone_is_given_up_at_once_and_sent_again_only_by_a_person(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, message_batches=True)
    work(asker, bell)
    claude.batches.clear()
    sweep_generations(asker, quiet=0, poll_every=0)
    work(asker, bell)
    figures = seen(asker, generation_id)[1]
    assert figures.counts.requests == {"unknown": 3}
    assert "has no message batch" in next(iter(figures.faults))

    resume(asker, generation_id, ask_again=True, max_cost=None)
    work(asker, bell)

    assert end_and_poll(asker, bell, claude) == [generation_id]
    assert seen(asker, generation_id)[1].counts.requests == {"answered": 3}


def test_a_batch_submitted_while_the_generation_is_cancelled_is_cancelled_too(
    asker: Context, bell: Bell, claude: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation_id = begin(asker, message_batches=True)
    submit = ClaudeBatches.submit

    def slowly(*arguments: Any) -> str:  # noqa: ANN401 - passed on
        found = submit(*arguments)
        assert cancel(asker, generation_id) == []
        return found

    monkeypatch.setattr(ClaudeBatches, "submit", slowly)
    work(asker, bell)

    assert [batch.is_cancelled for batch in claude.batches.values()] == [True]


def test_only_what_the_provider_says_is_not_billed_is_free(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, message_batches=True)
    work(asker, bell)
    claude.results.instead = {
        f"g{generation_id}-r1-t1": {"type": "expired"},
        f"g{generation_id}-r2-t1": {"type": "put off"},
    }
    (reserved,) = fetch(
        asker.database,
        "SELECT reserved FROM recallwatch.generation_request WHERE generation_id = :id"
        " AND number = 2",
        {"id": generation_id},
    )

    end_and_poll(asker, bell, claude)

    figures = seen(asker, generation_id)[1]
    assert figures.counts.requests == {"failed": 1, "unknown": 1, "answered": 1}
    assert figures.spent == pytest.approx(reserved + cost_of(claude) / 2)


@pytest.mark.parametrize("change", ["store", "fail"])
def test_one_answer_that_cannot_be_stored_keeps_no_other_from_being_stored(
    asker: Context, bell: Bell, claude: AnthropicServer, monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:  # fmt: skip
    generation_id = begin(asker, message_batches=True)
    work(asker, bell)
    if change == "fail":
        claude.results.instead = {f"g{generation_id}-r1-t1": {"type": "expired"}}
    true = getattr(generation_requests, change)

    def poisoned(session: Any, claim: Claim, *rest: Any) -> object:  # noqa: ANN401 - passed on
        if claim.number == 1:
            raise ValueError("a character that the database does not take")
        return true(session, claim, *rest)

    monkeypatch.setattr(generation_requests, change, poisoned)

    assert end_and_poll(asker, bell, claude) == [generation_id]

    figures = seen(asker, generation_id)[1]
    assert figures.counts.requests == {"unknown": 1, "answered": 2}
    assert list(figures.faults) == [NOT_STORED]
