"""The trial of re-chunking: its truth by hand, and its aims on a real collection."""

import pytest

from bench.rechunking import DATA, WAYS, Span, is_remapped, read, spans, trial, truth
from pipeline.golden.rechunking import Found, Place
from pipeline.types import KeyState
from tests.shared import needs_shared

JUDGED = Span("d:0", "", "d", 100, 200)


@pytest.mark.parametrize(
    ("chunks", "state"),
    [
        ([("d:0", 100, 200)], KeyState.LIVE),
        ([("d:0", 0, 100), ("d:1", 100, 200)], KeyState.MOVED),
        ([("d:0", 0, 300)], KeyState.MERGED),
        ([("d:0", 0, 150), ("d:1", 150, 300)], KeyState.SPLIT),
        ([("d:0", 0, 100)], KeyState.LOST),
    ],
)
def test_what_became_of_a_span_is_known(
    chunks: list[tuple[str, int, int]], state: KeyState
) -> None:
    assert (
        truth(JUDGED, [Span(key, "", "d", first, last) for key, first, last in chunks])[0] is state
    )


def test_places_are_counted_without_white_space() -> None:
    found = [(each.first, each.last) for each in spans("d", ["a b", " c\n"])]

    assert found == [(0, 2), (2, 3)]


def test_a_split_is_remapped_right_only_with_each_piece_and_its_share() -> None:
    shares = {"d:0": 0.5, "d:1": 0.47, "d:2": 0.03}

    def right(**proposed: float) -> bool:
        places = [Place(f"d:{key[1:]}", share) for key, share in proposed.items()]
        return is_remapped(KeyState.SPLIT, shares, Found(KeyState.SPLIT, places))

    assert right(k0=0.52, k1=0.45)
    assert not right(k0=0.5)
    assert not right(k0=0.5, k1=0.3)
    assert not right(k0=0.5, k1=0.47, k2=0.03)


@needs_shared
@pytest.mark.parametrize(
    ("way", "state", "aim"),
    [
        ("a chunk inserted before each document's first", KeyState.MOVED, 0.99),
        ("cut at 800, offset 300", KeyState.SPLIT, 0.95),
        ("cut at 8,000, overlap 1,000", KeyState.MERGED, 0.99),
    ],
)
def test_keys_of_a_real_collection_are_remapped_right(
    way: str, state: KeyState, aim: float
) -> None:
    corpus, judgments = read(DATA / "faquad-pt")

    tally = trial(judgments, corpus, list(WAYS[way](corpus)))

    assert tally.of[state] > 500
    assert tally.remapped[state] / tally.of[state] >= aim
