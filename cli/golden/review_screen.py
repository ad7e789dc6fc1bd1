"""One question a screen, as a reviewer sees it: 80 columns are enough."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from cli.output import clean, one_line
from db.reviews import Item
from pipeline.types import Failure
from workers.looking import Look

WIDEST = 100
"""Columns of text: longer lines are hard to read."""

EXPECTED_LINES = 5
OTHER_LINES = 2
"""Lines that are shown of an expected chunk, and of any other."""

_MARGIN = "     "
_GOES_ON = " …"

KEYS = (
    ("a", "accept", "it becomes active"),
    ("e", "edit", "its text, in $EDITOR or on a line"),
    ("k", "keys", "expect a chunk by its number or key, or no longer"),
    ("g", "grade", "of a chunk, as 2=3: relevant from 1 on"),
    ("c", "category", "blank takes it away"),
    ("r", "reject", "with a reason"),
    ("s", "skip", "it stays as it is, for another time"),
    ("u", "undo", "your last decision; of an earlier review only after asking"),
    ("v", "view", "the texts in full, or cut again"),
    ("?", "help", "this list"),
    ("q", "quit", "what was decided is stored; go on any time"),
)

REASONS = (
    "not answered by its chunks",
    "too vague",
    "copies the text",
    "nobody would ask this",
    "same as another question",
)
"""Reasons for rejecting, to be chosen by their number."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk on the screen. `grade` None: it is not expected; `content` None: not in the corpus.

    `tags` say what it has to do with the question.
    """

    number: int
    key: str
    grade: int | None
    tags: Sequence[str]
    content: str | None


def entries(item: Item, look: Look) -> list[Entry]:
    """Return the chunks to show: expected ones, proposed ones, their like, what is served now."""
    judged = item.state.judgments
    best_first = sorted(judged, key=lambda key: (-judged[key].grade, key))
    tags: dict[str, list[str]] = {key: [] for key in best_first}
    for proposed in item.proposed:
        tags.setdefault(proposed.key, []).append(_reason(proposed.reason, proposed.similarity))
    for near in look.near:
        like = f"like {near.of}, {near.similarity:.2f}"
        tags.setdefault(near.key, []).append(like)
    for key, ranks in served_at(look.served).items():
        tags.setdefault(key, []).extend(ranks)
    return [
        Entry(number, key, judged[key].grade if key in judged else None, said,
              look.contents.get(key))
        for number, (key, said) in enumerate(tags.items(), start=1)
    ]  # fmt: skip


def _reason(reason: str, similarity: float | None) -> str:
    return f"proposed: {reason}" + ("" if similarity is None else f", {similarity:.2f}")


def served_at(served: Mapping[str, Sequence[str] | Failure]) -> dict[str, list[str]]:
    """Return key -> "strategy rank" for each strategy that serves it, the best ranks first."""
    ranks = [
        (rank, strategy, key)
        for strategy, keys in served.items()
        if not isinstance(keys, Failure)
        for rank, key in enumerate(keys, start=1)
    ]
    found: dict[str, list[str]] = {}
    for rank, strategy, key in sorted(ranks):
        found.setdefault(key, []).append(f"{strategy} {rank}")
    return found


def print_screen(
    console: Console,
    item: Item,
    look: Look,
    place: tuple[int, int],
    *,
    message: str = "",
    full: bool = False,
) -> None:
    """Print the whole screen; `full`: texts are not cut. `message`: what the last key did."""
    page = _Page(console)
    state = item.state
    page.add(f"question {item.id} ({state.status}), {place[0]} of {place[1]}", "dim")
    page.add("")
    page.add(clean(state.text), "bold")
    page.add("")
    page.add(", ".join(_facts(item)), "dim")
    shown = entries(item, look)
    _print_entries(page, "expected", [e for e in shown if e.grade is not None], full=full)
    _print_entries(page, "not expected", [e for e in shown if e.grade is None], full=full)
    for note in _notes(look):
        page.add(note, "red")
    page.add("")
    page.add("   ".join(f"{key} {name}" for key, name, _ in KEYS), "cyan")
    if message:
        page.add(one_line(message), "yellow")


class _Page:
    """Prints lines that are wrapped by how wide their characters are."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.width = min(console.width, WIDEST)

    def wrap(self, text: str, indent: str = "") -> list[str]:
        """Return the lines of a text that leave room for an indent."""
        lines = Text(text).wrap(self._console, self.width - len(indent), overflow="fold")
        return [line.plain.rstrip() for line in lines]

    def add(self, text: str, style: str = "", indent: str = "") -> None:
        """Print a text; lines after the first are indented."""
        for number, line in enumerate(self.wrap(text, indent)):
            self._console.print(Text((indent if number else "") + line, style=style))

    def add_indented(self, lines: Sequence[str]) -> None:
        """Print lines that are wrapped already."""
        for line in lines:
            self._console.print(Text(_MARGIN + line))


def _print_entries(page: _Page, title: str, group: Sequence[Entry], *, full: bool) -> None:
    page.add("")
    page.add(title if group else f"{title}: no chunk", "bold")
    for entry in group:
        expected = entry.grade is not None
        tags = [f"grade {entry.grade}"] if expected else []
        said = "; ".join([*tags, *map(one_line, entry.tags)])
        head = f"{entry.number:>3}  {one_line(entry.key)}  ({said})"
        page.add(head, "green" if expected else "", _MARGIN)
        if entry.content is None:
            page.add(f"{_MARGIN}not in the corpus", "red")
        elif full:
            page.add_indented(page.wrap(clean(entry.content), _MARGIN))
        else:
            limit = EXPECTED_LINES if expected else OTHER_LINES
            page.add_indented(_excerpt(page, entry.content, limit))


def _excerpt(page: _Page, content: str, limit: int) -> list[str]:
    """Return the first lines of a text on one line, and a mark where it goes on."""
    head = content[: (limit + 1) * page.width * 2]
    lines = page.wrap(one_line(head), _MARGIN + _GOES_ON)
    return lines if len(lines) <= limit else [*lines[: limit - 1], lines[limit - 1] + _GOES_ON]


def _facts(item: Item) -> Iterator[str]:
    state = item.state
    yield state.source
    if model := item.provenance.get("model"):
        yield f"written by {one_line(str(model))}"
    yield state.kind
    for name in ("category", "tenant", "language", "external_id"):
        if value := getattr(state, name):
            yield f"{name.replace('_', ' ')} {one_line(value)}"
    if state.must_pass:
        yield "must pass"
    if state.reviewed_at:
        yield f"reviewed by {one_line(state.reviewed_by or 'somebody')} on {state.reviewed_at[:10]}"
    if state.rejection:
        yield f"rejected: {one_line(state.rejection)}"
    if state.notes:
        yield f"notes: {one_line(state.notes)}"


def _notes(look: Look) -> Iterator[str]:
    for strategy, found in look.served.items():
        if isinstance(found, Failure):
            yield one_line(f"{strategy}: {found.reason}")
        elif not found:
            yield one_line(f"{strategy}: nothing came back")
    yield from map(one_line, look.notes)


def help_lines() -> Iterator[str]:
    """Say what each key does."""
    for key, name, what in KEYS:
        yield f"  {key}  {name:<9} {what}"
