"""The screen of a review: all that a decision hangs on, in the width of the terminal."""

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from cli.golden.review_screen import KEYS, entries, help_lines, print_screen
from db.edits import Judged, State
from db.reviews import Item, ProposedKey
from pipeline.corpus.neighbours import Neighbour
from pipeline.types import Failure
from workers.looking import Look

STATE = State(
    text="How do I reset it?", kind="answerable", status="proposed", category="how",
    tenant="acme", language="en", source="synthetic", must_pass=True, external_id=None,
    notes=None, judgments={"manual:3": Judged(1), "faq:0": Judged(2)},
)  # fmt: skip
ITEM = Item(17, STATE, [ProposedKey("faq:9", "near-duplicate", 0.973)], {"model": "a-model"})
LOOK = Look(
    contents={"manual:3": "Hold the button.", "faq:9": "Keep the button pressed.", "x:1": "Else."},
    near=[Neighbour("manual:3", "copy:1", "Hold the button!", 0.99)],
    served={"vector": ["x:1", "manual:3"], "fulltext": ["manual:3"], "broken": Failure("no key")},
    notes=["the corpus is slow"],
)


def shown(
    item: Item = ITEM, look: Look = LOOK, *, width: int = 80, full: bool = False, message: str = ""
) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, markup=False, highlight=False)
    print_screen(console, item, look, (3, 12), full=full, message=message)
    return file.getvalue()


def test_a_screen_shows_all_that_a_decision_hangs_on() -> None:
    text = " ".join(shown(message="question 16 accepted").split())
    for part in (
        "question 17 (proposed), 3 of 12", "How do I reset it?", "category how", "tenant acme",
        "language en", "synthetic, written by a-model", "must pass", "Hold the button.",
        "proposed: near-duplicate, 0.97", "like manual:3, 0.99", "broken: no key",
        "the corpus is slow", "question 16 accepted",
    ):  # fmt: skip
        assert part in text


def test_chunks_are_numbered_best_grade_first_and_each_once_with_all_its_ranks() -> None:
    found = [(each.number, each.key, each.grade, list(each.tags)) for each in entries(ITEM, LOOK)]
    assert found == [
        (1, "faq:0", 2, []),
        (2, "manual:3", 1, ["fulltext 1", "vector 2"]),
        (3, "faq:9", None, ["proposed: near-duplicate, 0.97"]),
        (4, "copy:1", None, ["like manual:3, 0.99"]),
        (5, "x:1", None, ["vector 1"]),
    ]


def test_a_key_that_is_not_in_the_corpus_is_shown_so() -> None:
    lines = shown().splitlines()
    at = next(number for number, line in enumerate(lines) if "faq:0" in line)
    assert lines[at + 1].strip() == "not in the corpus"


def test_a_rejected_question_says_why_and_by_whom() -> None:
    state = replace(
        STATE, status="rejected", rejection="too vague", reviewed_by="ann",
        reviewed_at="2026-03-02T06:00:00+00:00",
    )  # fmt: skip
    text = " ".join(shown(replace(ITEM, state=state)).split())
    assert "reviewed by ann on 2026-03-02, rejected: too vague" in text


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("unit", ["word ", "unbroken", "漢字", "ก็"])
def test_no_line_is_wider_than_the_terminal(width: int, full: bool, unit: str) -> None:
    text = unit * 400
    state = replace(STATE, text=text, judgments={unit.strip() * 60 + ":0": Judged(1)})
    look = Look(contents=dict.fromkeys(state.judgments, text), notes=[text])
    for line in shown(replace(ITEM, state=state), look, width=width, full=full).splitlines():
        assert cell_len(line) <= width


def test_a_long_chunk_is_cut_unless_it_is_to_be_seen_in_full() -> None:
    text = "\n".join(f"line {number}" for number in range(300))
    look = Look(contents={"manual:3": text})
    assert "line 299" not in shown(look=look)
    assert "…" in shown(look=look)
    assert "line 299" in shown(look=look, full=True)
    assert "…" not in shown(look=look, full=True)


def test_texts_of_strangers_send_nothing_to_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x9b2J\u202etext"
    state = replace(STATE, text=evil, category=evil, judgments={f"{evil}:0": Judged(1)})
    look = Look(contents={f"{evil}:0": evil}, served={evil: Failure(evil)}, notes=[evil])
    item = Item(17, state, [ProposedKey("a:0", evil, None)], {"model": evil})
    for full in (False, True):
        text = shown(item, look, full=full, message=evil)
        assert not set("\x1b\x07\x9b\u202e") & set(text)


def test_every_key_is_on_the_screen_and_in_the_help() -> None:
    text, helped = " ".join(shown().split()), "\n".join(help_lines())
    for key, name, what in KEYS:
        assert f"{key} {name}" in text
        assert f"{key}  {name}" in helped
        assert what in helped
