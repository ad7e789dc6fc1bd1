"""What is said of a run under its table."""

from typing import Any

from cli.notes import Note, run_notes
from db.models import Run
from pipeline.types import Verdict
from pipeline.verdict.gate import Finding, Rule


def notes(**fields: Any) -> list[Note]:  # noqa: ANN401 - columns of Run
    return list(run_notes(Run(id=12, k=5, size=9, **fields)))


def test_findings_come_in_their_order_and_show_what_they_weigh() -> None:
    findings = [
        Finding(rule=Rule.NOISE, verdict=Verdict.REGRESSED, text="fell"),
        Finding(rule=Rule.BLIND_SPOT, verdict=Verdict.OK, text="blind", counts=False, warning=True),
        Finding(rule=Rule.THRESHOLD, verdict=Verdict.REGRESSED, text="beside", counts=False),
    ]

    assert notes(findings=[finding.to_json() for finding in findings]) == [
        Note("fell", "red"),
        Note("warning: blind", "yellow"),
        Note("beside", "dim"),
    ]


def exact(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any figure
    figures = {
        "n": 9, "of": 9, "sampled": False, "error": None, "index_loss": 0.25, "ef_search": None,
        "served": {"recall@5": 0.5}, "metrics": {"recall@5": 0.75},
    }  # fmt: skip
    return figures | changes


def test_served_and_exact_stand_side_by_side() -> None:
    assert notes(exact=exact()) == [
        Note("recall@5 served 0.5000, by exact search 0.7500: index loss 25.0 points")
    ]
    (sampled,) = notes(exact=exact(sampled=True, n=1200, of=5000))
    assert sampled.text.endswith("index loss 25.0 points (sample of 1,200 of 5,000)")


def test_exact_search_that_failed_is_no_figure() -> None:
    (said,) = notes(exact=exact(error="out of memory", n=0))

    assert said.text.startswith("exact search failed, so index and corpus are not told apart")


def test_a_part_of_exact_search_that_failed_leaves_the_figures_of_the_rest() -> None:
    failed, figures = notes(exact=exact(error="out of memory", n=4, sampled=True))

    assert failed.text == "a part of exact search failed: out of memory"
    assert "index loss 25.0 points" in figures.text


def test_the_ef_search_that_would_help_is_given_with_its_price() -> None:
    ladder = [
        {"ef_search": 40, "loss": 0.25, "ms": 1.0},
        {"ef_search": 80, "loss": 0.02, "ms": 1.75},
        {"ef_search": 160, "loss": 0.005, "ms": 3.25},
    ]

    helped = notes(exact=exact(ef_search={"ladder": ladder, "suggested": 160}))[-1]
    hopeless = notes(exact=exact(ef_search={"ladder": ladder[:2], "suggested": None}))[-1]

    assert helped.text == (
        "ef_search 160 would bring it under a point (3.2 ms a question, now 1.0)"
    )
    assert "ef_search 80 still loses 2.0 points" in hopeless.text
    assert hopeless.text.endswith("nothing wider was tried in time")
    widest = [ladder[0], ladder[1] | {"ef_search": 1000}]
    rebuild = notes(exact=exact(ef_search={"ladder": widest, "suggested": None}))[-1]
    assert "rebuild the index" in rebuild.text
    assert len(notes(exact=exact(ef_search={"ladder": ladder[:1], "suggested": None}))) == 1


def test_percentiles_stand_beside_those_of_the_run_before_with_what_was_timed() -> None:
    now = {"n": 100, "p50": 1.04, "p95": 12.0, "p99": 30.5}
    before = {"n": 80, "p50": 0.96, "p95": 8.0, "p99": 9.0}

    alone = " ".join(each.text for each in notes(latency={"search_ms": now}))
    beside = " ".join(
        each.text for each in notes(latency={"search_ms": now, "search_ms_before": before})
    )

    assert "p50 1.0, p95 12.0, p99 30.5 ms" in alone
    assert "100" in alone
    assert "before" not in alone
    assert "p50 1.0, p95 12.0, p99 30.5 ms; before 1.0, 8.0, 9.0" in beside


def test_nothing_is_said_of_times_that_were_not_taken() -> None:
    assert notes(latency={"search_ms": None, "search_ms_before": {"p50": 1.0}}) == []
