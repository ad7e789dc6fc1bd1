"""The keys of a terminal: one press is one key, however its bytes arrive."""

import os
import pty
import sys
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from cli.golden.review_keys import Terminal
from pipeline.errors import InputError

LATE = 0.2
"""Seconds after which a byte no longer comes with the one before it."""


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Give the other end of the terminal that standard input is."""
    screen, inside = pty.openpty()
    with os.fdopen(inside) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield screen
    os.close(screen)


def keys(screen: int, parts: Sequence[str], wait: float, n: int) -> list[str]:
    """Return n keys that are read while the parts are typed, with a wait between."""

    def type_all() -> None:
        for part in parts:
            os.write(screen, part.encode())
            time.sleep(wait)

    with Terminal() as terminal:
        typing = threading.Thread(target=type_all)
        typing.start()
        read = [terminal.key() for _ in range(n)]
        typing.join()
    return read


@pytest.mark.parametrize("sequence", [
    "\x1b[A", "\x1bOA", "\x1b[1;5A", "\x1b[200~", "\x1b[[A", "\x1b\x1b[A",
])  # fmt: skip
@pytest.mark.parametrize("wait", [0, 0.03])
def test_a_sequence_is_one_key_though_its_bytes_come_one_by_one(
    screen: int, sequence: str, wait: float
) -> None:
    assert keys(screen, [*sequence, "a"], wait, 2) == [sequence, "a"]


@pytest.mark.parametrize("parts", [["\x1b", "[A"], ["\x1b", "[", "A"], ["\x1b", "[1;5", "A"]])
def test_a_late_rest_of_a_sequence_is_no_key_of_its_own(screen: int, parts: list[str]) -> None:
    assert keys(screen, [*parts, "a"], LATE, 3) == ["\x1b", "".join(parts), "a"]


def test_escape_alone_is_a_key_and_the_next_one_counts(screen: int) -> None:
    assert keys(screen, ["\x1b", "a", "["], LATE, 3) == ["\x1b", "a", "["]


def test_ctrl_c_ends_even_a_sequence_that_does_not(screen: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        keys(screen, ["\x1b[", "\x03"], 0, 1)


@pytest.mark.parametrize("editor", ["false", "no-such-editor"])
def test_an_editor_that_fails_is_an_error_of_the_input(
    screen: int, editor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    with Terminal() as terminal, pytest.raises(InputError, match=r"see \$VISUAL and \$EDITOR"):
        terminal.text("A question?")
    assert keys(screen, ["a"], 0, 1) == ["a"]
