"""The keyboard of a review: one key a decision, one line where words are needed."""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, Self

import click
from rich.console import Console

from cli.golden.review_screen import REASONS, Entry, entries, help_lines, print_screen
from db.reviews import Item
from pipeline.errors import InputError
from pipeline.types import Kind
from workers.looking import Look, Looker
from workers.reviewing import Review

_END_OF_FILE = b"\x04"
_INTERRUPT = b"\x03"
_ESCAPE = b"\x1b"
_ESCAPE_SECONDS = 0.075
_INTRODUCERS = (b"[", b"O")
_PARAMETERS = frozenset(range(0x20, 0x40))
"""Bytes that stand between the introducer of a control sequence and its end (ECMA-48, 5.4)."""

Act = Callable[[Item, Look], None]


class Keyboard(Protocol):
    """What a person answers with. Each raises KeyboardInterrupt or EOFError when they leave."""

    def key(self) -> str:
        """Return the next key."""

    def line(self, asked: str, present: str = "") -> str:
        """Return a line, beginning with what there is at present."""

    def text(self, present: str) -> str:
        """Return an edited text."""


class Terminal:
    """The keyboard of the terminal that the command runs in, within a `with`.

    All the while single keys are read and not echoed, so that one that is typed ahead of a screen
    is neither lost nor shown on it; only lines and editors get the terminal as it was.
    """

    def __init__(self) -> None:
        self._escaped = False

    def __enter__(self) -> Self:
        self._usual = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin, termios.TCSADRAIN)
        return self

    def __exit__(self, *_raised: object) -> None:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._usual)

    def key(self) -> str:
        """See `Keyboard.key`; an arrow key or the like is one key.

        Ctrl-C is read as any key: as a signal it could come just before the wait for a key, which
        it would not end.
        """
        with self._without_signals():
            typed = self._typed()
        if typed.endswith(_INTERRUPT):
            raise KeyboardInterrupt
        if typed in {b"", _END_OF_FILE}:
            raise EOFError
        return typed.decode(errors="replace")

    def _typed(self) -> bytes:
        """Read one key, which is several bytes where the first is an escape.

        Over a slow line the others come late: then they are no keys of their own either.
        """
        typed = os.read(sys.stdin.fileno(), 1)
        if self._escaped and typed in _INTRODUCERS:
            typed = _ESCAPE + typed
        while typed.endswith(_ESCAPE) and _comes_soon():
            typed += os.read(sys.stdin.fileno(), 1)
        self._escaped = typed.endswith(_ESCAPE)
        if typed[-2:-1] == _ESCAPE and typed[-1:] in _INTRODUCERS:
            typed += _rest_of_sequence()
        return typed

    @contextmanager
    def _without_signals(self) -> Iterator[None]:
        attributes = termios.tcgetattr(sys.stdin)
        attributes[tty.LFLAG] &= ~termios.ISIG
        termios.tcsetattr(sys.stdin, termios.TCSANOW, attributes)
        try:
            yield
        finally:
            attributes[tty.LFLAG] |= termios.ISIG
            termios.tcsetattr(sys.stdin, termios.TCSANOW, attributes)

    def line(self, asked: str, present: str = "") -> str:
        """See `Keyboard.line`."""
        import readline

        readline.set_startup_hook(lambda: readline.insert_text(present))
        try:
            with self._as_usual():
                return input(f"{asked}: ")
        finally:
            readline.set_startup_hook(None)

    def text(self, present: str) -> str:
        """See `Keyboard.text`: in the editor that the person has set, else on a line.

        Raises InputError where the editor cannot be run.
        """
        if not (os.environ.get("VISUAL") or os.environ.get("EDITOR") or "\n" in present):
            return self.line("question", present)
        try:
            with self._as_usual():
                edited = click.edit(present)
        except click.ClickException as error:
            raise InputError(f"{error.message}; see $VISUAL and $EDITOR") from error
        return present if edited is None else edited.rstrip("\n")

    @contextmanager
    def _as_usual(self) -> Iterator[None]:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._usual)
        try:
            yield
        finally:
            tty.setcbreak(sys.stdin, termios.TCSADRAIN)


def _comes_soon() -> bool:
    return bool(select.select([sys.stdin], [], [], _ESCAPE_SECONDS)[0])


def _rest_of_sequence() -> bytes:
    """Read on to the end of a control sequence; the console of Linux introduces F1 to F5 twice."""
    typed = os.read(sys.stdin.fileno(), 1)
    while typed[-1:] and (typed[-1] in _PARAMETERS or typed == b"["):
        more = os.read(sys.stdin.fileno(), 1)
        if not more:
            break
        typed += more
    return typed


def review_all(review: Review, looker: Looker, console: Console, keyboard: Keyboard) -> None:
    """Show question after question until there is no more, or the person leaves.

    Ctrl-C ends it at any time: what was decided is stored.
    """
    hand = _Hand(review, looker, console, keyboard)
    with suppress(KeyboardInterrupt):
        while hand.step():
            pass


class _Hand:
    """What is on the screen, and what each key does to it."""

    def __init__(
        self, review: Review, looker: Looker, console: Console, keyboard: Keyboard
    ) -> None:
        self._review = review
        self._looker = looker
        self._console = console
        self._keyboard = keyboard
        self._message = ""
        self._full = False
        self._keys: dict[str, Act] = {
            "a": self._accept, "e": self._edit, "k": self._toggle, "g": self._grade,
            "c": self._categorise, "r": self._reject, "s": self._skip, "u": self._undo,
            "v": self._view, "?": self._help,
        }  # fmt: skip

    def step(self) -> bool:
        """Show the question, and do what one key says; False: the review is over."""
        item = self._review.current()
        if item is None:
            return self._end()
        look = self._looker.look(item.state.question, [each.key for each in item.proposed])
        self._console.clear()
        print_screen(self._console, item, look, self._review.place,
                     message=self._message, full=self._full)  # fmt: skip
        self._message = ""
        try:
            key = self._keyboard.key().lower()
        except (KeyboardInterrupt, EOFError):
            return False
        if key == "q":
            return False
        self._do(key, item, look)
        return True

    def _end(self) -> bool:
        """Say that nothing is left, which an undo changes."""
        self._console.print(self._message)
        self._console.print("nothing more to review; u undoes, any other key ends")
        try:
            if self._keyboard.key().lower() != "u":
                return False
            self._message = self._undone()
        except (KeyboardInterrupt, EOFError, InputError):
            return False
        return True

    def _do(self, key: str, item: Item, look: Look) -> None:
        act = self._keys.get(key)
        if act is None:
            self._message = "press ? for what the keys do"
            return
        try:
            act(item, look)
        except InputError as error:
            self._message = str(error)
        except (KeyboardInterrupt, EOFError):
            self._message = "left as it was"

    def _accept(self, item: Item, _look: Look) -> None:
        if item.state.kind == Kind.UNANSWERABLE:
            self._console.print("no chunk answers it: accept it as unanswerable? y, or any other")
            if self._keyboard.key().lower() != "y":
                return
        self._review.accept(item)
        self._message = f"question {item.id} accepted"

    def _reject(self, item: Item, _look: Look) -> None:
        for number, reason in enumerate(REASONS, start=1):
            self._console.print(f"  {number}  {reason}")
        said = self._keyboard.line("reason, or its number").strip()
        chosen = said.isdecimal() and 1 <= int(said) <= len(REASONS)
        self._review.reject(item, REASONS[int(said) - 1] if chosen else said)
        self._message = f"question {item.id} rejected"

    def _skip(self, _item: Item, _look: Look) -> None:
        self._review.skip()

    def _edit(self, item: Item, _look: Look) -> None:
        self._review.reword(item, self._keyboard.text(item.state.text))

    def _categorise(self, item: Item, _look: Look) -> None:
        self._review.categorise(item, self._keyboard.line("category", item.state.category or ""))

    def _toggle(self, item: Item, look: Look) -> None:
        shown = entries(item, look)
        said = self._keyboard.line("number or key of the chunk").strip()
        if said:
            key = _key(said, shown)
            self._review.toggle(item, key, self._contents(item, look, key))

    def _grade(self, item: Item, look: Look) -> None:
        shown = entries(item, look)
        said = self._keyboard.line("chunk=grade, as 2=3").strip()
        name, equals, grade = said.rpartition("=")
        if not said:
            return
        if not equals or not grade.strip().removeprefix("-").isdecimal():
            raise InputError("a grade looks like 2=3: chunk 2 gets grade 3")
        key = _key(name.strip(), shown)
        self._review.grade(item, key, int(grade), self._contents(item, look, key))

    def _contents(self, item: Item, look: Look, key: str) -> dict[str, str]:
        """Return the texts of chunks, that of a key which is not on the screen too."""
        if key in look.contents:
            return dict(look.contents)
        return dict(self._looker.look(item.state.question, [key]).contents)

    def _undo(self, _item: Item, _look: Look) -> None:
        self._message = self._undone()

    def _undone(self) -> str:
        """Undo, and say what; what was decided in an earlier review only if that is meant."""
        if earlier := self._review.earlier():
            self._console.print(f"undo {earlier}, of an earlier review? y, or any other")
            if self._keyboard.key().lower() != "y":
                return "left as it was"
        return self._review.undo()

    def _view(self, _item: Item, _look: Look) -> None:
        self._full = not self._full

    def _help(self, _item: Item, _look: Look) -> None:
        for line in help_lines():
            self._console.print(line)
        self._console.print("press any key")
        self._keyboard.key()


def _key(said: str, shown: list[Entry]) -> str:
    """Return the key that a number on the screen stands for, or the key itself."""
    if not said.isdecimal():
        return said
    for entry in shown:
        if entry.number == int(said):
            return entry.key
    raise InputError(f"no chunk on the screen has the number {said}")
