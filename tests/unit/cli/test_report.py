"""A run as a person reads it, from records of this version and of the one before."""

import io
from typing import Any

import pytest
from rich.console import Console

from cli.report import deeper, print_run, statistics, wider_note
from db.models import Batch, GoldenVersion, Run
from db.runs import RunContext
from pipeline.types import RunStatus, Verdict
from pipeline.verdict.compare import Change, Comparison, Pairing
from pipeline.verdict.gate import Finding, Rule

PAIRING = Pairing(shared=8, new=1, changed=0, gone=0, relived=0, unscored=0)


def printed(**fields: Any) -> str:  # noqa: ANN401 - columns of Run
    """Print a run of nine questions that fell from 0.9 to 0.8."""
    known: dict[str, Any] = {
        "id": 12,
        "strategy": "vector",
        "k": 5,
        "level": "chunk",
        "size": 9,
        "status": RunStatus.COMPLETED,
        "verdict": Verdict.REGRESSED,
        "n_scored": 9,
        "n_failed": 0,
        "n_ineligible": 0,
        "metrics": {"recall@5": 0.75},
    }
    run = Run(**(known | fields))
    file = io.StringIO()
    found = RunContext(run, Batch(), GoldenVersion(id=3, set_name="faq"))
    print_run(Console(file=file, width=80), found)
    return file.getvalue()


def compared(reference: int, *, p: float) -> dict[str, Any]:
    change = Change("recall@5", current=0.8, previous=0.9, interval=(-0.2, -0.0004), p=p)
    return Comparison(reference, PAIRING, [change], lost=1, won=0, corpus=[]).to_json()


def test_a_change_is_shown_with_its_interval_and_p_value() -> None:
    shown = printed(comparison=compared(11, p=0.0125), compared_to=11)

    assert "95 % interval" in shown
    row = next(line.split() for line in shown.splitlines() if "recall@5" in line)
    assert row == ["recall@5", "0.7500", "0.8000", "0.9000", "-0.1000", "-0.200", "-0.000", "0.013"]


def test_a_run_that_was_compared_before_there_were_intervals_can_still_be_shown() -> None:
    old = compared(11, p=0.5)
    for change in old["changes"]:
        del change["interval"], change["p"]

    row = next(
        line.split()
        for line in printed(comparison=old, compared_to=11).splitlines()
        if "recall@5" in line
    )

    assert row[:5] == ["recall@5", "0.7500", "0.8000", "0.9000", "-0.1000"]


def test_a_cancelled_run_is_called_so_and_says_who_did_it() -> None:
    finding = Finding(rule=Rule.CANCELLED, verdict=Verdict.UNMEASURED, text="cancelled by ann")
    nothing = dict.fromkeys(("n_scored", "n_failed", "n_ineligible", "metrics"))
    ended: dict[str, Any] = {"status": RunStatus.CANCELLED, "verdict": Verdict.UNMEASURED}

    lines = printed(**nothing, **ended, findings=[finding.to_json()]).splitlines()

    assert lines[0] == "run 12: vector, k=5, chunks, faq v3: cancelled"
    assert [line.strip() for line in lines[1:]] == ["cancelled by ann"]


def test_both_references_are_named() -> None:
    shown = " ".join(
        printed(
            comparison=compared(11, p=0.5),
            compared_to=11,
            baseline_comparison=compared(4, p=0.5),
            baseline_run=4,
        ).split()
    )

    assert "compared to run 11: 8 shared, 1 new; hits lost 1, won 0" in shown
    assert "compared to the baseline, run 4: 8 shared, 1 new; hits lost 1, won 0" in shown


@pytest.mark.parametrize(
    ("p", "shown"), [(1.0, "1.000"), (0.001, "0.001"), (0.0009, "<.001"), (1e-30, "<.001")]
)
def test_a_p_value_is_never_shown_as_zero(p: float, shown: str) -> None:
    assert statistics(Change("recall@5", 0, 0, interval=(0, 0), p=p))[1] == shown


def test_what_was_not_computed_is_left_empty() -> None:
    assert statistics(Change("recall@1", 0, 0)) == [None, None]


def test_a_rank_within_k_of_a_miss_is_marked_and_explained() -> None:
    ranks = [deeper(rank, 5) for rank in (None, 5, 6)]

    assert ranks == [None, "5*", 6]
    assert wider_note(ranks, 5) == "* a wider search finds it within 5: the index missed it"
    assert wider_note([None, 6], 5) is None


def group(scored: int, recall: float) -> dict[str, Any]:
    return {"scored": scored, "failed": 0, "ineligible": 1, "metrics": {"recall@5": recall}}


def rows_of(shown: str, *names: str) -> list[list[str]]:
    return [line.split() for line in shown.splitlines() if line.split()[:1] in [[n] for n in names]]


def test_a_run_that_mixes_sources_shows_each_beside_the_mean_over_all() -> None:
    shown = printed(by_source={"synthetic": group(6, 0.9), "manual": group(3, 0.45)})
    assert rows_of(shown, "source", "manual", "synthetic") == [
        ["source", "n/N", "hit@5", "recall@5", "mrr@5", "ndcg@5"],
        ["manual", "3/4", "-", "0.4500", "-", "-"],
        ["synthetic", "6/7", "-", "0.9000", "-", "-"],
    ]


def test_each_source_is_compared_with_the_reference_on_its_own() -> None:
    comparison = compared(11, p=0.5) | {
        "sources": [{"name": "manual", "metric": "recall@5", "difference": -0.25, "n": 2}]
    }
    shown = printed(
        by_source={"synthetic": group(6, 0.9), "manual": group(3, 0.45)},
        comparison=comparison,
        compared_to=11,
    )
    assert [row[-1] for row in rows_of(shown, "source", "manual", "synthetic")] == [
        "moved", "-0.2500", "-",
    ]  # fmt: skip


def test_a_run_of_questions_that_people_asked_says_nothing_of_sources() -> None:
    assert "source" not in printed(by_source={"manual": group(9, 0.75)})


def test_a_run_of_synthetic_questions_alone_says_so() -> None:
    assert "all questions are synthetic" in printed(by_source={"synthetic": group(9, 0.75)})


def test_the_table_of_sources_fits_a_narrow_terminal() -> None:
    sources = {name: group(12_345, 0.5) for name in ("manual", "log", "synthetic")}
    changes = [
        {"name": name, "metric": "precision@100", "difference": -0.25, "n": 2} for name in sources
    ]
    shown = printed(by_source=sources, comparison=compared(11, p=0.5) | {"sources": changes}, k=100)
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("12345/12346") == 3
