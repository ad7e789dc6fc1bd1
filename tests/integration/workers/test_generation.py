"""Asking the model, over a loopback server that bills: nothing is paid for twice."""

import signal
import time
from typing import Any

import pytest

from db import generation_requests
from db.generation_requests import Claim
from pipeline.errors import InputError, TransientError
from tests.integration.db.building import execute
from tests.integration.workers.conftest import Opener
from tests.integration.workers.dying import asking
from tests.integration.workers.generating import (
    KEY,
    begin,
    cost_of,
    let_leases_end,
    seen,
    wanted,
    work,
)
from tests.integration.workers.working import Bell
from tests.loopback.anthropic_server import AnthropicServer, hang, message, refuse
from workers.asking import NOT_STORED
from workers.context import Context
from workers.generating import prepare, resume
from workers.generation import ask
from workers.generation_sweeping import sweep_generations


def test_each_request_is_sent_once_and_what_was_billed_is_what_is_stored(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, per_chunk=2)

    assert work(asker, bell) == [generation_id]

    found, figures = seen(asker, generation_id)
    assert found.status == "screening"
    assert figures.counts.requests == {"answered": 3}
    assert figures.counts.candidates == {"drafted": 6}
    assert len(claude.paid) == 3
    assert figures.spent == pytest.approx(cost_of(claude))


def test_messages_that_come_twice_or_late_send_nothing(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker)
    bell.messages *= 2
    work(asker, bell)

    ask(asker, generation_id, 1)

    assert len(claude.paid) == 3


def test_a_server_that_is_overloaded_is_asked_again_and_a_refusal_is_kept(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    claude.script = [refuse(529, "overloaded_error"), message(stop_reason="refusal")]
    generation_id = begin(asker)
    assert work(asker, bell) == []

    let_leases_end(asker)
    sweep_generations(asker, quiet=0)

    assert work(asker, bell) == [generation_id]
    figures = seen(asker, generation_id)[1]
    assert figures.counts.requests == {"answered": 2, "refused": 1}
    assert figures.spent == pytest.approx(cost_of(claude))


def test_a_wrong_key_stops_the_generation_and_says_so(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    claude.script = [refuse(401, "authentication_error")]
    generation_id = begin(asker)
    work(asker, bell)

    found, figures = seen(asker, generation_id)
    assert found.status == "failed"
    assert found.error is not None
    assert "ANTHROPIC_API_KEY" in found.error
    assert KEY not in found.error
    assert (figures.counts.requests, figures.spent) == ({"failed": 3}, 0)
    assert len(claude.requests) == 1


def test_without_a_key_nothing_is_sent(
    asker: Context, open_context: Opener, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker)
    keyless = open_context(
        generation=asker.settings.generation.model_copy(
            update={"base_url": "https://api.anthropic.com"}
        )
    )
    execute(asker.database, "UPDATE recallwatch.generation SET settings = jsonb_set(settings,"
                            " '{generation,base_url}', 'null')")  # fmt: skip
    work(keyless, bell)

    assert seen(asker, generation_id)[0].status == "failed"
    assert claude.requests == []


def test_an_answer_that_never_comes_is_unknown_stays_spent_and_is_not_asked_again(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, sample=1)
    execute(asker.database, "UPDATE recallwatch.generation SET settings = jsonb_set(settings,"
                            " '{generation,timeout}', '0.3')")  # fmt: skip
    claude.script = [hang()]
    work(asker, bell)
    let_leases_end(asker)
    sweep_generations(asker, quiet=0)
    work(asker, bell)

    found, figures = seen(asker, generation_id)
    assert (found.status, figures.counts.requests) == ("failed", {"unknown": 1})
    assert figures.spent > 0
    assert len(claude.requests) == 1
    with pytest.raises(InputError, match="--ask-again"):
        resume(asker, generation_id, ask_again=False, max_cost=None)


def test_the_cap_holds_and_more_is_asked_when_it_is_raised(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    each = prepare(asker, wanted(asker, sample=1)).estimate.most
    assert each is not None
    generation_id = begin(asker, sample=5)
    execute(asker.database, "UPDATE recallwatch.generation SET max_cost = :cap",
            {"cap": 1.1 * each})  # fmt: skip
    work(asker, bell)

    found, figures = seen(asker, generation_id)
    assert cost_of(claude) <= 1.1 * each
    assert figures.counts.requests["failed"] >= 1
    assert found.error is not None
    assert "cost cap" in found.error
    paid = len(claude.paid)

    resume(asker, generation_id, ask_again=False, max_cost=1)
    work(asker, bell)

    assert seen(asker, generation_id)[1].counts.requests == {"answered": 5}
    assert len(claude.paid) == 5 > paid


@pytest.mark.parametrize("dies_with_answer", [False, True])
def test_a_worker_killed_between_request_and_answer_pays_once(
    asker: Context, bell: Bell, claude: AnthropicServer, *, dies_with_answer: bool
) -> None:
    generation_id = begin(asker, sample=1)
    bell.take()
    claude.script = [] if dies_with_answer else [hang()]
    worker = asking(asker.settings, generation_id, dies_with_answer=dies_with_answer)
    if not dies_with_answer:
        until = time.monotonic() + 20
        while not claude.requests and time.monotonic() < until:
            time.sleep(0.02)
        worker.kill()
    worker.join(20)
    assert worker.exitcode == -signal.SIGKILL
    assert len(claude.requests) == 1

    for _ in range(2):
        ask(asker, generation_id, 1)
        let_leases_end(asker)
        sweep_generations(asker, quiet=0)
        work(asker, bell)

    found, figures = seen(asker, generation_id)
    assert (found.status, figures.counts.requests) == ("failed", {"unknown": 1})
    assert figures.spent >= cost_of(claude), "what may have been billed stays spent"
    assert len(claude.requests) == 1


def test_asked_again_by_a_person_an_unknown_request_is_sent(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker, sample=1)
    claude.script = [refuse(500, "weird_error")]
    work(asker, bell)
    reserved = seen(asker, generation_id)[1].spent
    assert reserved > 0

    resume(asker, generation_id, ask_again=True, max_cost=None)

    assert work(asker, bell) == [generation_id]
    assert seen(asker, generation_id)[1].spent == pytest.approx(reserved + cost_of(claude))


def test_an_answer_is_kept_though_the_database_is_away_for_a_while(
    asker: Context, bell: Bell, claude: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation_id = begin(asker, sample=1)
    store, waits = generation_requests.store, list[float]()

    def away_twice(*arguments: Any) -> object:  # noqa: ANN401 - passed on
        if len(waits) < 2:
            raise TransientError("the database restarts")
        return store(*arguments)

    monkeypatch.setattr(generation_requests, "store", away_twice)
    monkeypatch.setattr("workers.asking.time.sleep", waits.append)

    assert work(asker, bell) == [generation_id]
    assert len(claude.paid) == 1


def test_a_request_past_its_deadline_is_not_sent_at_all(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker)
    bell.take()
    execute(asker.database, "UPDATE recallwatch.generation SET deadline_at = now()")
    sweep_generations(asker, quiet=0)
    work(asker, bell)

    assert seen(asker, generation_id)[0].status == "failed"
    assert claude.requests == []


def test_an_answer_that_cannot_be_stored_is_given_up_and_ends_nothing_else(
    asker: Context, bell: Bell, claude: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation_id = begin(asker)
    store = generation_requests.store

    def poisoned(session: Any, claim: Claim, *rest: Any) -> object:  # noqa: ANN401 - passed on
        if claim.number == 1:
            raise ValueError("a character that the database does not take")
        return store(session, claim, *rest)

    monkeypatch.setattr(generation_requests, "store", poisoned)

    assert work(asker, bell) == [generation_id]
    figures = seen(asker, generation_id)[1]
    assert figures.counts.requests == {"unknown": 1, "answered": 2}
    assert list(figures.faults) == [NOT_STORED]
    assert figures.spent >= cost_of(claude)
