"""Two runs side by side, as a person and as a pull request reads them."""

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from cli.compare import _check, _groups, _markdown, _notes, _record
from db.models import Run
from pipeline.errors import UsageError
from pipeline.verdict.compare import CategoryChange, Change, Comparison, ExactComparison, Pairing

PAIRING = Pairing(shared=8, new=0, changed=0, gone=0, relived=0, unscored=0)


def run(run_id: int, **fields: Any) -> Run:  # noqa: ANN401 - columns of Run
    known = {"k": 5, "level": "chunk", "relevance_threshold": 1, "convention": "rw-1"}
    return Run(id=run_id, **{**known, "metrics": {}, "status": "completed", **fields})


def moved(**fields: Any) -> SimpleNamespace:  # noqa: ANN401 - columns of a row
    known = {"position": 3, "text": "a?", "was_rank": 1, "first_rank": None}
    return SimpleNamespace(**{**known, "was_retrieved": ["a", "b"], "retrieved": [], **fields})


@pytest.mark.parametrize(
    ("name", "other"),
    [("k", 10), ("level", "document"), ("relevance_threshold", 2), ("convention", "rw-2")],
)
def test_runs_that_measured_something_else_are_refused(name: str, other: object) -> None:
    with pytest.raises(UsageError, match=f"run 1 has {name} .* and run 2 has {other}: they cannot"):
        _check(run(1), run(2, **{name: other}))


def test_a_run_without_results_is_refused() -> None:
    _check(run(1), run(2))
    with pytest.raises(UsageError, match="run 2 is running: there is nothing to compare"):
        _check(run(1), run(2, metrics=None, status="running"))


def test_a_question_says_which_keys_came_in_and_went_out_in_order() -> None:
    record = _record(moved(was_retrieved=["a", "b", "c"], retrieved=["d", "b", "e"]))

    assert (record["entered"], record["left"]) == (["d", "e"], ["a", "c"])


def test_markdown_shows_questions_as_they_are() -> None:
    change = Change("recall@5", current=0.5, previous=0.75, interval=(-0.5, 0.0), p=0.0004)
    found = Comparison(1, PAIRING, [change], lost=2, won=0, corpus=[])
    trouble = "<b>*bold*</b>\n| `x` [y](z) # \\"
    rows = [moved(text=trouble), moved(text="b?", was_rank=2, first_rank=3)]

    assert _markdown(run(2), found, {"lost": rows, "won": []}).splitlines() == [
        "| metric | run 1 | run 2 | difference | 95 % interval | p |",
        "|---|---:|---:|---:|---:|---:|",
        "| recall@5 | 0.7500 | 0.5000 | -0.2500 | -0.500 +0.000 | <.001 |",
        "",
        "lost:",
        "",
        r"- \<b\>\*bold\*\</b\> \| \`x\` \[y\](z) \# \\ (1 -> -)",
        "- b? (2 -> 3*)",
        "",
        r"\* a wider search finds it within 5: the index missed it",
    ]


def test_groups_are_shown_by_kind_with_their_worst_first() -> None:
    groups = [CategoryChange(f"c{n}", "recall@5", n / 10 - 0.5, 4) for n in range(7)]
    found = Comparison(
        1, PAIRING, [], lost=0, won=0, corpus=[], categories=groups,
        sources=[CategoryChange("log", "recall@5", 0.25, 8)],
    )  # fmt: skip

    shown = _groups(found)

    assert shown is not None
    file = io.StringIO()
    Console(file=file, width=80).print(shown)
    rows = [line.split() for line in file.getvalue().splitlines()]
    assert ["category", "c0", "-0.5000", "4"] in rows
    assert ["source", "log", "+0.2500", "8"] in rows
    assert sum(row[:1] == ["category"] for row in rows) == 5
    assert _groups(Comparison(1, PAIRING, [], lost=0, won=0, corpus=[])) is None


def test_what_rests_and_what_exact_search_says_is_noted() -> None:
    exact = ExactComparison(
        shared=8, changes=[], lost=1, won=0, loss_now=0.06, loss_before=0.031, missed_now=1,
        missed_before=0,
    )  # fmt: skip
    found = Comparison(
        1, PAIRING, [], lost=2, won=1, corpus=["vectors changed"], setup=["strategy.k 1 -> 2"],
        exact=exact,
    )  # fmt: skip

    assert list(_notes(found)) == [
        "compared to run 1: 8 shared; hits lost 2, won 1",
        "settings since then: strategy.k 1 -> 2",
        "corpus since then: vectors changed",
        "exact search: hits lost 1, won 0 of 8; index loss 3.1 -> 6.0 points of recall",
    ]
