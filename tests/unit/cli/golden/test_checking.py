"""What `golden check` and `golden remap` print of a judgment."""

import pytest
from rich.console import Console

from cli.golden.checking import judgments_table, places, record
from db.evidence import JudgedKey, StoredJudgment
from pipeline.golden.rechunking import Found, Place
from pipeline.types import KeyState
from workers.remapping import Checked

SPLIT = Found(KeyState.SPLIT, [Place("d:4", 0.254), Place("d:5", 0.746)], 0.1)
QUOTED = Found(KeyState.MERGED, [Place("d:4", 1.0), Place("d:9", 1.0)], ambiguous=True)


def checked(found: Found) -> Checked:
    return Checked(StoredJudgment(7, JudgedKey("d:1", "hash"), 2), found)


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (Found(KeyState.LOST), None),
        (Found(KeyState.MOVED, [Place("d:4", 1.0)]), "d:4"),
        (SPLIT, "d:4 (25%), d:5 (75%)"),
        (QUOTED, "one of d:4, d:9"),
    ],
)
def test_places_are_shown_with_the_shares_they_hold(found: Found, shown: str | None) -> None:
    assert places(found) == shown


def test_a_row_fits_eighty_columns() -> None:
    console = Console(width=80, color_system=None)
    with console.capture() as capture:
        console.print(judgments_table([checked(SPLIT), checked(Found(KeyState.LOST))]))

    lines = [line.split() for line in capture.get().splitlines()[2:]]
    assert lines == [
        ["7", "d:1", "split", "d:4", "(25%),", "d:5", "(75%)"], ["7", "d:1", "lost", "-"],
    ]  # fmt: skip


def test_a_record_says_what_is_scored_and_what_is_safe() -> None:
    assert record(checked(SPLIT)) == {
        "question": 7, "key": "d:1", "grade": 2, "state": "split", "scored": False, "safe": False,
        "places": [Place("d:4", 0.254), Place("d:5", 0.746)],
    }  # fmt: skip
    assert record(checked(Found(KeyState.MOVED, [Place("d:4", 1.0)])))["safe"]


def test_only_safe_ones_move_unless_more_is_asked_for() -> None:
    found = [SPLIT, QUOTED, Found(KeyState.MERGED, [Place("d:4", 1.0)]), Found(KeyState.LOST)]

    assert [checked(each).moves([]) for each in found] == [False, False, True, False]
    assert [checked(each).moves([KeyState.SPLIT]) for each in found] == [True, False, True, False]
