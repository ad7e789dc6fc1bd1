"""The trend of a metric, as a person and as a program reads it."""

import io
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from cli.trend import CANCELLED, SYMBOLS, Series, _check, _print, _record, _series
from db.baselines import Pinned
from db.models import Baseline
from db.runs import RunContext
from pipeline.errors import UsageError
from pipeline.types import RunStatus, Verdict
from tests.unit.cli.finished import CREATED, run


def runs(*values: float | None, **fields: Any) -> list[RunContext]:  # noqa: ANN401 - columns of Run
    """Return a run a week with these recalls; None was not measured."""
    made = []
    for n, value in enumerate(values):
        verdict = Verdict.UNMEASURED if value is None else Verdict.OK
        metrics = None if value is None else {"recall@5": value, "recall@3": value / 2}
        day = CREATED + timedelta(weeks=n)
        made.append(run(verdict, id=n + 1, metrics=metrics, created_at=day, **fields))
    return made


def pin(found: RunContext) -> Pinned:
    return Pinned(Baseline(set_name=found.version.set_name, run_id=found.run.id), found.run)


def printed(drawn: list[Series], encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    _print(Console(file=file, width=80), drawn)
    file.seek(0)
    return file.read().splitlines()


def test_a_series_is_headed_charted_dated_and_explained() -> None:
    found = runs(0.9, None, 0.5)
    lines = printed([*_series("recall", found, [pin(found[0])])])

    assert lines[0] == "faq / vector: recall@5, chunks, 0.5000 to 0.9000"
    assert lines[1].startswith("0.9000 ┤█")
    assert lines[6].startswith("0.5000 ┤█")
    assert lines[7:] == [
        "        . x .",
        "run 1, 2026-03-02, to run 3, 2026-03-16",
        "── baseline, run 1: 0.9000",
        "",
        ". ok  x unmeasured",
    ]
    assert max(map(len, lines)) <= 80


def test_a_cancelled_run_is_a_gap_with_a_mark_of_its_own() -> None:
    found = runs(0.9, None, None)
    found[1].run.status = RunStatus.CANCELLED
    lines = printed([*_series("recall", found, [])])

    assert lines[7] == "        . c x"
    assert lines[-1] == ". ok  x unmeasured  c cancelled"


def test_an_encoding_without_blocks_gets_ascii() -> None:
    found = runs(0.9, None, 0.5)
    drawn = [*_series("recall", found, [pin(found[0])])]
    lines = printed(drawn, "ascii")

    assert all(line.isascii() for line in lines)
    assert lines[1].startswith("0.9000 +#-")
    assert len(lines) == len(printed(drawn))


def test_each_verdict_has_a_symbol_of_its_own() -> None:
    assert SYMBOLS.keys() == set(Verdict)
    assert len({*SYMBOLS.values(), CANCELLED}) == len(Verdict) + 1
    assert all(symbol.isascii() and len(symbol) == 1 for symbol in SYMBOLS.values())


def test_more_runs_than_fit_are_the_newest() -> None:
    lines = printed([*_series("recall", runs(*[0.5] * 100), [])])

    assert max(map(len, lines)) <= 80
    assert lines[8].startswith("run 30, ")
    assert ", to run 100, " in lines[8]


def test_runs_that_were_never_measured_are_said_to_be_so() -> None:
    assert printed([*_series("recall", runs(None, None), [])]) == [
        "faq / vector: recall@5, chunks: never measured",
        "run 1, 2026-03-02, to run 2, 2026-03-09",
        "",
        "x unmeasured",
    ]


def test_an_unmeasured_run_is_a_gap_whatever_it_scored() -> None:
    (found,) = runs(0.9)
    found.run.verdict = Verdict.UNMEASURED

    (series,) = _series("recall", [found], [])

    assert series.value(found.run) is None


def test_runs_at_another_k_make_a_series_of_their_own() -> None:
    found = [*runs(0.9, 0.8), *runs(0.7, k=3)]

    drawn = [*_series("recall", found, [pin(found[0])])]

    assert [(each.metric, len(each.found)) for each in drawn] == [("recall@5", 2), ("recall@3", 1)]
    assert [each.baseline is not None for each in drawn] == [True, False]


def test_a_cutoff_is_taken_at_its_word_and_the_runs_k_said() -> None:
    (series,) = _series("recall@3", runs(0.9), [])

    assert series.value(series.last.run) == 0.45
    assert printed([series])[0] == "faq / vector: recall@3, k 5, chunks, 0.4500 to 0.4500"


def test_what_differs_from_the_usual_is_in_the_heading() -> None:
    (series,) = _series("recall", runs(0.9, relevance_threshold=2, convention="rw-0"), [])

    assert "chunks, threshold 2, rw-0, 0.9000" in printed([series])[0]


def test_json_holds_every_point_and_the_baseline() -> None:
    found = runs(0.9, None)
    (series,) = _series("recall", found, [pin(found[0])])

    record = _record(series)

    assert record["baseline"] == {"run": 1, "value": 0.9}
    assert (record["set"], record["strategy"], record["metric"]) == ("faq", "vector", "recall@5")
    assert record["runs"] == [
        {"id": 1, "created_at": CREATED, "verdict": "ok", "status": "completed", "value": 0.9},
        {"id": 2, "created_at": CREATED + timedelta(weeks=1), "verdict": "unmeasured",
         "status": "completed", "value": None},
    ]  # fmt: skip
    (bare,) = _series("recall", found, [])
    assert _record(bare)["baseline"] is None


@pytest.mark.parametrize(("metric", "value"), [("recall", 0.5), ("recall@3", 0.25)])
def test_a_known_metric_is_let_through_and_drawn_at_its_cutoff(metric: str, value: float) -> None:
    _check(metric)
    (series,) = _series(metric, runs(0.5), [])

    assert [series.value(each.run) for each in series.found] == [value]


@pytest.mark.parametrize("metric", ["recal", "recall@0", "recall@", "@5", ""])
def test_an_unknown_metric_is_told_which_are_known(metric: str) -> None:
    with pytest.raises(UsageError, match="the metrics are hit, recall, precision, mrr, map, ndcg"):
        _check(metric)
