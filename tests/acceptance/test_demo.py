"""`recallwatch demo`: what a new user sees first."""

import re
import time

from tests.acceptance.command import Project

LIMIT = 90
"""Seconds that the demo may take on two cores."""


def test_the_demo_catches_the_defect_in_time_and_starts_clean(
    fresh: Project,
) -> None:
    left = fresh.state / "demo" / "left-by-an-earlier-one"
    left.mkdir(parents=True)
    started = time.monotonic()
    first = fresh.run("demo")
    assert time.monotonic() - started < LIMIT
    assert first.err == ""
    assert fresh.processes() == []
    for words in ("chunk texts unchanged", "vectors changed", "Worst lost questions"):
        assert words in first.out
    (shown,) = re.findall(r"recallwatch (--config \S+) runs show 4", first.out)
    assert "run 4: vector, k=5" in fresh.run(*shown.split(), "runs", "show", "4").out
    for words in ("Caught", "4  vector", "5  fulltext", "6  hybrid", "run 4 against run 1"):
        assert words in first.out
    assert not left.exists()
    assert [entry.name for entry in fresh.state.iterdir()] == ["demo"]
