"""`recallwatch demo`: what a new user sees first."""

import time

from tests.acceptance.command import Project

LIMIT = 90
"""Seconds that the demo may take on two cores."""


def test_the_demo_catches_the_defect_in_time_and_a_second_one_starts_clean(
    fresh: Project,
) -> None:
    started = time.monotonic()
    first = fresh.run("demo")
    assert time.monotonic() - started < LIMIT
    assert first.err == ""
    assert "chunk texts unchanged, vectors changed" in first.out
    assert fresh.processes() == []
    second = fresh.run("demo").out
    # The index is built at random, so figures differ in the third digit; run numbers begin anew.
    for words in ("Caught", "run 4: vector", "run 5: fulltext", "run 6: hybrid"):
        assert words in first.out
        assert words in second
    assert [entry.name for entry in fresh.state.iterdir()] == ["demo"]
