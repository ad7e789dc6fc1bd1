"""The keys of a terminal: one press is one key, however its bytes arrive."""

import os
import pty
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest

from cli.golden import review_keys
from cli.golden.review_keys import Terminal
from pipeline.errors import InputError

END_OF_FILE = "\x04"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Give the other end of the terminal that standard input is."""
    screen, inside = pty.openpty()
    with os.fdopen(inside) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield screen
    os.close(screen)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what follows an escape come soon, however busy the machine is."""
    monkeypatch.setattr(review_keys, "_ESCAPE_SECONDS", 30)


@pytest.fixture
def slow_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what follows an escape come too late to belong to it."""
    monkeypatch.setattr(review_keys, "_comes_soon", lambda: False)


def keys(screen: int, parts: Sequence[str], *, wait: float = 0) -> list[str]:
    """Return the keys that are read while the parts are typed, with a wait between, to the end."""

    def type_all() -> None:
        for part in [*parts, END_OF_FILE]:
            os.write(screen, part.encode())
            time.sleep(wait)

    read = []
    with Terminal() as terminal:
        typing = threading.Thread(target=type_all)
        typing.start()
        try:
            with suppress(EOFError):
                while True:
                    read.append(terminal.key())
        finally:
            # Else it would type into whatever has the screen's number next.
            typing.join()
    return read


@pytest.mark.parametrize("sequence", [
    "\x1b[A", "\x1bOA", "\x1b[1;5A", "\x1b[200~", "\x1b[[A", "\x1b\x1b[A",
])  # fmt: skip
@pytest.mark.parametrize("wait", [0, 0.03])
@pytest.mark.usefixtures("patient")
def test_a_sequence_is_one_key_though_its_bytes_come_one_by_one(
    screen: int, sequence: str, wait: float
) -> None:
    assert keys(screen, [*sequence, "a"], wait=wait) == [sequence, "a"]


@pytest.mark.parametrize("parts", [["\x1b", "[A"], ["\x1b", "[", "A"], ["\x1b", "[1;5", "A"]])
@pytest.mark.usefixtures("slow_line")
def test_a_late_rest_of_a_sequence_is_no_key_of_its_own(screen: int, parts: list[str]) -> None:
    assert keys(screen, [*parts, "a"]) == ["\x1b", "".join(parts), "a"]


@pytest.mark.usefixtures("slow_line")
def test_escape_alone_is_a_key_and_the_next_one_counts(screen: int) -> None:
    assert keys(screen, ["\x1b", "a", "["]) == ["\x1b", "a", "["]


@pytest.mark.usefixtures("patient")
def test_ctrl_c_ends_even_a_sequence_that_does_not(screen: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        keys(screen, ["\x1b[", "\x03"])


@pytest.mark.parametrize("editor", ["false", "no-such-editor"])
def test_an_editor_that_fails_is_an_error_of_the_input(
    screen: int, editor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    with Terminal() as terminal, pytest.raises(InputError, match=r"see \$VISUAL and \$EDITOR"):
        terminal.text("A question?")
    assert keys(screen, ["a"]) == ["a"]
