"""Verdicts as the reducer stores them: by the noise rule, its companions and the baseline."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from db import baselines, calibrations, runs
from db.models import Run
from db.results import ResultRow
from db.session import Database
from pipeline.verdict.calibration import Figures
from tests.integration.db.building import import_set, ineligible, questions, scored
from tests.integration.workers.working import finished
from workers.context import Context

N = 40
INDEX: dict[str, Any] = {"chunks": 9, "embedded": 9, "dimension": 4, "texts": "a", "vectors": "b",
         "index": {"name": "i", "method": "hnsw", "definition": "d", "file": 1}}  # fmt: skip


@pytest.fixture
def name(db: Database) -> str:
    """Give a set of 40 questions; the first two must pass, ten are of a category."""
    set_name = f"set-{uuid4()}"
    asked = [
        replace(question, must_pass=number < 2, category="billing" if number < 10 else None)
        for number, question in enumerate(questions(N))
    ]
    import_set(db, asked, set_name)
    return set_name


def missing(*lost: int) -> Iterator[ResultRow]:
    """Yield results of all questions, of which some are lost."""
    for position in range(N):
        yield scored(position, *([0.0] * 3 if position in lost else [1.0] * 3))


def judged(
    ctx: Context, name: str, rows: Iterable[ResultRow], **gate: Any  # noqa: ANN401 - any of the gate
) -> Run:  # fmt: skip
    return finished(ctx, name, rows, None, **({"rule": "noise", "must_pass": False} | gate))


def rules_of(run: Run) -> list[tuple[str, str]]:
    """Return the rules that the verdict hangs on, and what they say."""
    return [(each["rule"], each["verdict"]) for each in run.findings or [] if each["counts"]]


def test_three_of_forty_is_watched_and_four_is_a_regression(ctx: Context, name: str) -> None:
    judged(ctx, name, missing())
    three = judged(ctx, name, missing(20, 21, 22))
    seven = judged(ctx, name, missing(*range(20, 27)))

    assert (three.verdict, rules_of(three)) == ("watch", [("noise", "watch")])
    assert (seven.verdict, rules_of(seven)) == ("regressed", [("noise", "regressed")])
    assert seven.cause == "corpus"
    assert seven.reasons is not None
    assert seven.reasons[0].startswith("net 4 of 40 questions lost (4 lost, 0 won)")
    plain = [each for each in three.findings or [] if each["rule"] == "threshold"]
    assert {each["verdict"] for each in plain} == {"regressed"}


def test_ten_runs_that_each_lose_too_little_are_caught_by_the_baseline(
    ctx: Context, db: Database, name: str
) -> None:
    first = judged(ctx, name, missing())
    with db.begin() as session:
        baselines.pin(session, runs.get(session, first.id), by=None)

    drifting = [judged(ctx, name, missing(*range(2 * step))) for step in range(1, 11)]

    against_last = [
        each["verdict"]
        for run in drifting
        for each in run.findings or []
        if each["rule"] == "noise" and each["reference"] == run.compared_to != first.id
    ]
    assert "regressed" not in against_last
    assert len(against_last) == 9
    assert [run.verdict for run in drifting] == ["watch"] + ["regressed"] * 9
    assert drifting[1].reasons is not None
    assert drifting[1].reasons[0].startswith("against the baseline: net 4 of 40 questions lost")


def by_index(file: int) -> dict[str, Any]:
    """Return a plan of a run that this build of an index serves."""
    index = INDEX["index"] | {"file": file}
    settings = {
        "strategy": {"name": "vector", "kind": "vector", "exact": False},
        "corpus": {"table": "docs"},
        "embedding": {"provider": "local", "model": "", "dimensions": 4, "base_url": None},
    }
    return {"corpus_fingerprint": INDEX | {"index": index}, "settings": settings}


def test_a_rebuilt_index_of_unknown_noise_is_judged_by_the_plain_rule_and_it_is_said(
    ctx: Context, name: str
) -> None:
    finished(ctx, name, missing(), by_index(1), rule="noise", must_pass=False)
    one = finished(ctx, name, missing(30), by_index(2), rule="noise", must_pass=False)

    assert one.verdict == "regressed"
    assert one.cause is None
    assert set(rules_of(one)) == {("threshold", "regressed")}
    assert any(reason.startswith("uncalibrated: ") for reason in one.reasons or [])


def test_an_index_that_nobody_touched_answers_as_it_did(ctx: Context, name: str) -> None:
    finished(ctx, name, missing(), by_index(1), rule="noise", must_pass=False)
    one = finished(ctx, name, missing(30), by_index(1), rule="noise", must_pass=False)
    five = finished(ctx, name, missing(*range(30, 35)), by_index(1), rule="noise", must_pass=False)

    assert (one.verdict, rules_of(one)) == ("ok", [("noise", "ok")])
    assert five.verdict == "regressed"


def test_a_missed_must_pass_question_regresses_even_the_first_run(ctx: Context, name: str) -> None:
    first = judged(ctx, name, missing(1), must_pass=True)

    assert first.verdict == "regressed"
    assert first.reasons is not None
    assert first.reasons[0] == "1 of 2 must-pass questions missed: question 1"


def test_a_floor_and_a_category_speak_with_their_figures(ctx: Context, name: str) -> None:
    judged(ctx, name, missing())

    run = judged(
        ctx, name, missing(0, 1, 2), floor={"recall@5": 0.95}, category_max_drop=0.2,
        category_min=10,
    )  # fmt: skip

    assert run.verdict == "regressed"
    assert rules_of(run)[:2] == [("floor", "regressed"), ("category_max_drop", "regressed")]
    assert run.reasons is not None
    assert run.reasons[0] == "recall@5 is 0.9250, under its floor 0.95"
    assert run.reasons[1].startswith("category billing: recall@5 fell by 0.3000 over 10 shared")


def test_a_golden_set_that_does_not_fit_the_corpus_is_unmeasured(ctx: Context, name: str) -> None:
    rows = [ineligible(p, [f"d{p}:0"]) if p < 30 else scored(p) for p in range(N)]

    run = judged(ctx, name, rows)

    assert run.verdict == "unmeasured"
    assert run.reasons is not None
    assert "30 of 40 answerable questions have no expected key" in run.reasons[0]


@pytest.mark.parametrize(
    ("file", "verdict", "source"), [(1, "regressed", "untouched"), (2, "ok", "calibrated")]
)
def test_the_noise_of_rebuilds_is_only_that_of_a_rebuilt_index(
    ctx: Context, db: Database, name: str, file: int, verdict: str, source: str
) -> None:
    first = finished(ctx, name, missing(), by_index(1), rule="noise", must_pass=False)
    rounds = [30.0, 35.0] * 6 + [33.0]
    noisy = Figures(
        n=N, pairs=12, flips=12, largest_net=5, differences={}, totals={"hit@5": rounds}
    )
    with db.begin() as session:
        found = runs.get(session, first.id)
        calibrations.add(session, found.version, found.run, noisy, reindexed=True)

    run = finished(
        ctx, name, missing(*range(30, 36)), by_index(file), rule="noise", must_pass=False
    )

    (noise,) = [each for each in run.findings or [] if each["rule"] == "noise"]
    assert (run.verdict, noise["figures"]["source"]) == (verdict, source)
