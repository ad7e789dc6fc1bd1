"""Message batches, over a loopback server that bills: sent once, looked at until they are done."""

import pytest

from db import message_batches
from tests.integration.db.building import execute
from tests.integration.workers.generating import begin, cost_of, let_leases_end, seen, wanted, work
from tests.integration.workers.working import Bell
from tests.loopback.anthropic_server import AnthropicServer, refuse
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
