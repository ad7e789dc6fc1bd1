"""What reports are made of, as it is read back from the database."""

from dataclasses import asdict, replace

import pytest

from cli.evidence import Evidence, gather
from db import run_states, runs
from db.session import Database
from pipeline.types import Question, Verdict
from pipeline.verdict.gate import Cause, Finding, Gate, Judgement, Rule
from tests.integration.db.building import (
    GATE,
    end_run,
    failed,
    import_set,
    ineligible,
    scored,
    start_run,
    store_all,
)

QUESTIONS = [
    Question(text=f"question {n}", expected={f"d{n}:0": 1}, must_pass=n != 1) for n in range(4)
]


def evidence(db: Database, run_id: int) -> Evidence:
    with db.begin() as session:
        (found,) = gather(session, [runs.get(session, run_id)])
    return found


def complete(db: Database, run_id: int, *findings: Finding, compared_to: int | None = None) -> None:
    with db.begin() as session:
        run = runs.get(session, run_id).run
        run.compared_to = compared_to
        run.n_scored, run.n_failed, run.n_ineligible = run.size, 0, 0
        judgement = Judgement(verdict=Verdict.REGRESSED, findings=findings, cause=Cause.INDEX)
        run_states.complete(run, judgement)


def lost(rule: Rule, reference: int, verdict: Verdict = Verdict.REGRESSED) -> Finding:
    return Finding(rule=rule, verdict=verdict, text="it fell", reference=reference)


@pytest.fixture
def measured(db: Database) -> Database:
    import_set(db, QUESTIONS)
    return db


def run(db: Database, *hits: float, gate: Gate = GATE) -> int:
    """Start a run whose questions have these hits."""
    made = start_run(db, {"gate": asdict(gate)})
    store_all(db, made, [scored(n, hit, hit, hit) for n, hit in enumerate(hits)])
    return made


def test_lost_questions_are_those_since_the_reference_that_the_verdict_hangs_on(
    measured: Database,
) -> None:
    baseline = end_run(measured, run(measured, 1, 1, 1, 1))
    last = end_run(measured, run(measured, 1, 1, 0, 0))
    now = run(measured, 0, 1, 0, 1)
    fine = lost(Rule.NOISE, last, Verdict.OK)
    complete(measured, now, lost(Rule.THRESHOLD, baseline), fine, compared_to=last)

    found = evidence(measured, now)

    assert [row.text for row in found.lost] == ["question 0", "question 2"]
    assert found.reasons == ["it fell"]
    assert found.findings == [lost(Rule.THRESHOLD, baseline), fine]


def test_a_verdict_that_no_reference_made_is_shown_with_the_last_run(measured: Database) -> None:
    last = end_run(measured, run(measured, 1, 1, 1, 1))
    now = run(measured, 1, 1, 1, 0)
    floor = Finding(rule=Rule.FLOOR, verdict=Verdict.REGRESSED, text="under its floor")
    complete(measured, now, floor, compared_to=last)

    assert [row.text for row in evidence(measured, now).lost] == ["question 3"]


def test_must_pass_questions_are_there_with_their_results(measured: Database) -> None:
    now = start_run(measured)
    store_all(measured, now, [scored(0), scored(1), failed(2), ineligible(3)])
    complete(measured, now)

    rows = evidence(measured, now).must_pass

    assert [(row.text, row.outcome) for row in rows] == [
        ("question 0", "scored"), ("question 2", "failed"), ("question 3", "ineligible"),
    ]  # fmt: skip


def test_a_gate_that_does_not_ask_for_them_has_no_must_pass_questions(measured: Database) -> None:
    now = run(measured, 1, 1, 1, 1, gate=replace(GATE, must_pass=False))
    complete(measured, now)

    assert evidence(measured, now).must_pass == ()


def test_a_run_that_was_failed_says_why(measured: Database) -> None:
    now = start_run(measured)
    with measured.begin() as session:
        run_states.fail(session, [now], "past its deadline")

    found = evidence(measured, now)

    assert (found.verdict, found.reasons) == (Verdict.UNMEASURED, ["past its deadline"])
