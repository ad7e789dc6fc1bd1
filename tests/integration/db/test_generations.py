"""Candidates of a generation: filtered by one worker at a time, kept as golden questions."""

import math
import threading

import pytest
from sqlalchemy.exc import IntegrityError

from db import (
    candidates,
    forgotten_requests,
    generation_figures,
    generations,
    golden,
    golden_import,
    message_batches,
)
from db.candidates import Alternative, CandidateRow
from db.session import Database
from pipeline.errors import InputError
from pipeline.types import Question, Status
from tests.integration.db.building import SET, execute, fetch, snapshot
from tests.integration.db.generating import (
    answer,
    answered,
    asked,
    asks,
    create,
    expire,
    states,
    status,
    store,
)


@pytest.fixture
def screening(db: Database) -> int:
    """Start a generation of two answered requests: three candidates wait."""
    generation_id = create(db, asks(2))
    answered(db, generation_id, 1, "a?", "b?")
    answered(db, generation_id, 2, "c?")
    return generation_id


def drafted(db: Database, generation_id: int, limit: int = 10) -> list[CandidateRow]:
    with db.begin() as session:
        return candidates.drafted(session, generation_id, limit)


def keep(db: Database, row: CandidateRow, *proposed: Alternative) -> int | None:
    with db.begin() as session:
        return candidates.keep(session, row, {"rank": 3}, proposed, Status.PROPOSED)


def reject(db: Database, row: CandidateRow) -> bool:
    with db.begin() as session:
        return candidates.reject(session, row, "too_long", "51 words")


def claim(db: Database, generation_id: int, lease: float = 60) -> int | None:
    with db.begin() as session:
        return generations.claim_screening(session, generation_id, lease=lease, attempts=2)


def renew(db: Database, generation_id: int, token: int) -> bool:
    with db.begin() as session:
        return generations.renew_screening(session, generation_id, token, lease=60)


def finish(db: Database, generation_id: int) -> bool:
    with db.begin() as session:
        return generations.finish(session, generation_id)


def test_candidates_come_in_order_with_the_chunks_they_are_from(
    db: Database, screening: int
) -> None:
    rows = drafted(db, screening)

    assert [(row.text, row.number, row.ordinal) for row in rows] == [
        ("a?", 1, 1), ("b?", 1, 2), ("c?", 2, 1),
    ]  # fmt: skip
    assert rows[2].ask == asks(2)[1]
    assert len(drafted(db, screening, limit=2)) == 2


def test_a_kept_candidate_is_a_synthetic_question_with_evidence(
    db: Database, screening: int
) -> None:
    row = drafted(db, screening)[0]

    question_id = keep(db, row, Alternative("x:1", "near-duplicate", 0.97), Alternative("d:1", "-"))

    assert fetch(db, "SELECT id, text, source, status, provenance FROM recallwatch.question") == [
        (question_id, "a?", "synthetic", "proposed", {
            "generation": screening, "request": 1, "ordinal": 1, "model": "claude-haiku-4-5",
            "prompt_version": "questions-1", "facts": {"rank": 3},
        })
    ]  # fmt: skip
    assert fetch(db, "SELECT key, grade, e.text, judged_by FROM recallwatch.judgment"
                     " JOIN recallwatch.evidence e ON e.hash = evidence_hash"
                 ) == [("d:1", 1, "what d:1 says", "claude-haiku-4-5")]  # fmt: skip
    assert fetch(db, "SELECT key, reason, similarity FROM recallwatch.proposed_key"
                 ) == [("x:1", "near-duplicate", 0.97)], "what is expected is none"  # fmt: skip
    assert [each.text for each in drafted(db, screening)] == ["b?", "c?"]


def test_a_question_that_the_set_has_is_not_added_again(db: Database, screening: int) -> None:
    keep(db, drafted(db, screening)[0])
    again = create(db, asks(1))
    answered(db, again, 1, "a?")

    assert keep(db, drafted(db, again)[0]) is None

    assert len(drafted(db, again)) == 1, "the filter decides what becomes of it"


def test_a_candidate_is_decided_on_once(db: Database, screening: int) -> None:
    row = drafted(db, screening)[0]
    assert reject(db, row)

    assert not reject(db, row)
    assert keep(db, row) is None
    assert fetch(db, "SELECT count(*) FROM recallwatch.question") == [0]


def test_one_worker_filters_at_a_time(db: Database, screening: int) -> None:
    token = claim(db, screening)

    assert token is not None
    assert claim(db, screening) is None
    assert renew(db, screening, token)


def test_a_worker_that_was_late_stores_nothing(db: Database, screening: int) -> None:
    late = claim(db, screening, lease=-1)
    token = claim(db, screening)
    assert late is not None
    assert token is not None

    assert not renew(db, screening, late)
    assert renew(db, screening, token)


def test_filtering_that_gets_nowhere_fails_and_one_that_gets_on_does_not(
    db: Database, screening: int
) -> None:
    for _ in range(3):
        token = claim(db, screening, lease=-1)
        assert token is not None
        assert renew(db, screening, token)
        execute(db, "UPDATE recallwatch.generation SET screen_next_at = NULL")
    assert claim(db, screening, lease=-1) is not None

    assert claim(db, screening) is None
    with db.begin() as session:
        assert generations.fail_unscreened(session, attempts=2) == [screening]
    assert status(db, screening) == "failed"


def test_a_released_generation_waits_and_keeps_what_went_wrong(
    db: Database, screening: int
) -> None:
    token = claim(db, screening)
    assert token is not None
    with db.begin() as session:
        assert generations.release_screening(session, screening, token, error="no", wait=60)

    assert claim(db, screening) is None
    assert fetch(db, "SELECT screen_error FROM recallwatch.generation") == ["no"]


def test_a_generation_ends_when_no_candidate_is_left(db: Database, screening: int) -> None:
    first, *rest = drafted(db, screening)
    keep(db, first)
    assert not finish(db, screening)

    for row in rest:
        reject(db, row)

    assert finish(db, screening)
    assert status(db, screening) == "completed"
    assert not finish(db, screening), "once"


def test_figures_add_up(db: Database, screening: int) -> None:
    first, *rest = drafted(db, screening)
    keep(db, first)
    for row in rest:
        reject(db, row)

    with db.begin() as session:
        seen = generation_figures.figures(session, screening)

    assert seen.counts.requests == {"answered": 2}
    assert seen.counts.candidates == {"kept": 1, "rejected": 2}
    assert seen.rejections == {"too_long": 2}
    assert (seen.input_tokens, seen.output_tokens) == (200, 40)
    assert seen.spent == pytest.approx(0.08)


def test_a_generation_that_is_not_there_is_told(db: Database) -> None:
    with (
        db.begin() as session,
        pytest.raises(
            InputError, match="no generation 0; see: recallwatch golden generations list"
        ),
    ):
        generations.get(session, 0)


def test_a_message_batch_is_looked_at_once_in_a_while_until_it_is_answered(db: Database) -> None:
    generation_id = create(db, asks(2), message_batches=True)
    holds = [asked(db, generation_id, number) for number in (1, 2)]
    with db.begin() as session:
        message_batches.note(session, holds, "batch_1")
    expire(db)

    def at_work(quiet: float = 60) -> list[tuple[int, int]]:
        with db.begin() as session:
            return message_batches.at_work(session, quiet=quiet)

    assert at_work() == [(generation_id, 1)]
    assert at_work() == []
    with db.begin() as session:
        assert message_batches.holding(session, generation_id, 1) == "batch_1"
        awaited = message_batches.awaited(session, generation_id, "batch_1")
    assert awaited == holds
    for hold in holds:
        store(db, hold, answer("q?"))
    assert at_work(quiet=-1) == []


def test_a_batch_given_up_while_it_was_sent_is_looked_at_all_the_same(db: Database) -> None:
    generation_id = create(db, asks(1), message_batches=True)
    hold = asked(db, generation_id)
    expire(db)
    with db.begin() as session:
        forgotten_requests.look_after(session, generation_id)
    assert states(db, generation_id) == ["unknown"]

    with db.begin() as session:
        message_batches.note(session, [hold], "batch_1")

    assert states(db, generation_id) == ["asked"]


def kept(db: Database, row: CandidateRow) -> None:
    with db.begin() as session:
        candidates.keep(session, row, {}, [], Status.ACTIVE)


def test_a_question_kept_while_a_version_is_made_is_in_the_next_one(
    db: Database, screening: int
) -> None:
    first, second, _ = drafted(db, screening)
    kept(db, first)
    with db.begin() as session:
        version = golden.snapshot(session, SET)
        keeping = threading.Thread(target=kept, args=(db, second))
        keeping.start()
        keeping.join(0.3)
        assert keeping.is_alive(), "it waits for the version"
    keeping.join(10)

    assert (version.size, snapshot(db).size) == (1, 2)
    assert snapshot(db).fingerprint != version.fingerprint


def test_an_import_and_a_filtering_of_the_same_questions_do_not_wait_for_each_other(
    db: Database, screening: int
) -> None:
    first, second, _ = drafted(db, screening)
    both = [
        Question(row.text, row.expected, category=row.category, language=row.language)
        for row in (first, second)
    ]
    reports: list[object] = []

    def bring_in() -> None:
        with db.begin() as session:
            reports.append(golden_import.import_questions(session, SET, both))

    with db.begin() as session:
        candidates.keep(session, second, {}, [], Status.PROPOSED)
        importing = threading.Thread(target=bring_in)
        importing.start()
        importing.join(0.3)
        assert candidates.keep(session, first, {}, [], Status.PROPOSED) is not None
    importing.join(10)

    assert len(reports) == 1
    assert fetch(db, "SELECT count(*) FROM recallwatch.question") == [2]


@pytest.mark.parametrize("amount", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE recallwatch.generation SET max_cost = :amount",
        "UPDATE recallwatch.generation SET spent = :amount",
        "UPDATE recallwatch.generation_request SET reserved = :amount",
    ],
)
@pytest.mark.usefixtures("screening")
def test_what_is_no_amount_of_money_is_not_stored(
    db: Database, statement: str, amount: float
) -> None:
    with pytest.raises(IntegrityError, match="is_an_amount"):
        execute(db, statement, {"amount": amount})


def test_what_could_not_be_checked_is_counted(db: Database, screening: int) -> None:
    first, second, third = drafted(db, screening)
    for row, facts in (
        (first, {"notes": ["no room"], "not_asked": {"vector": "no vectors"}}),
        (second, {"notes": ["no room"]}),
        (third, {}),
    ):
        with db.begin() as session:
            candidates.keep(session, row, facts, [], Status.PROPOSED)

    with db.begin() as session:
        seen = generation_figures.figures(session, screening)

    assert seen.unchecked == {"no room": 2, "vector could not be asked: no vectors": 1}


def test_who_notes_a_batch_hears_that_the_generation_was_cancelled_meanwhile(db: Database) -> None:
    generation_id = create(db, asks(2), message_batches=True)
    holds = [asked(db, generation_id, number) for number in (1, 2)]
    with db.begin() as session:
        assert message_batches.note(session, holds[:1], "batch_1")
        assert generations.cancel(session, generation_id) == ["batch_1"]

    with db.begin() as session:
        assert not message_batches.note(session, holds[1:], "batch_2")
