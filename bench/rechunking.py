"""What becomes of judged keys when a corpus is cut into chunks anew: found, against the truth.

Two collections are cut in many ways. Where each judged text is afterwards is known, for every
chunk is a span of its document; `pipeline.golden.rechunking` only sees keys and texts.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bench.page import with_section
from pipeline.golden.rechunking import PIECE, Evidence, Found, Search
from pipeline.types import KeyState

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = REPOSITORY.parent / "shared" / "data"
PAGE = REPOSITORY / "docs" / "results.md"
COLLECTIONS = ("faquad-pt", "anthropic-docs-en")

TOLERANCE = 0.05
"""A share may be off by so much: a piece that near to `PIECE` may be proposed or left out."""


@dataclass(frozen=True, slots=True)
class Span:
    """A chunk: its key, its text, and its place in its document's text, white space not counted.

    `edited`: its text is not quite that of the place.
    """

    key: str
    text: str
    document: str
    first: int
    last: int
    edited: bool = False


Corpus = Mapping[str, Sequence[str]]
"""Document id -> the texts of its chunks, in order."""


def spans(document: str, parts: Sequence[str], name: str | None = None) -> Iterator[Span]:
    """Yield the chunks of a document that is cut into parts which follow each other."""
    place = 0
    for number, part in enumerate(parts):
        length = _length(part)
        yield Span(f"{name or document}:{number}", part, document, place, place + length)
        place += length


def _length(text: str) -> int:
    return len("".join(text.split()))


def windows(document: str, text: str, size: int, offset: int, overlap: int) -> Iterator[Span]:
    """Yield chunks of `size` characters, the first shorter by `offset`, cut wherever that falls."""
    starts = [0, *range(size - offset, len(text), size - overlap)]
    ends = [size - offset, *(start + size for start in starts[1:])]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        piece = text[start:end]
        first = _length(text[:start])
        if piece.strip():
            yield Span(f"{document}:{number}", piece, document, first, first + _length(piece))


def _inserted(corpus: Corpus) -> Iterator[Span]:
    for document, parts in corpus.items():
        yield Span(f"{document}:0", "A new paragraph of this page.", document, -1, -1)
        for number, each in enumerate(spans(document, parts), start=1):
            yield Span(f"{document}:{number}", each.text, document, each.first, each.last)


def _renamed(corpus: Corpus) -> Iterator[Span]:
    for document, parts in corpus.items():
        yield from spans(document, parts, name=f"v2/{document}")


def _joined(corpus: Corpus) -> Iterator[Span]:
    for document, parts in corpus.items():
        pairs = ["\n\n".join(parts[start : start + 2]) for start in range(0, len(parts), 2)]
        yield from spans(document, pairs)


def _edited(corpus: Corpus) -> Iterator[Span]:
    for document, parts in corpus.items():
        for each in spans(document, parts):
            words = each.text.split(" ")
            words[len(words) // 2] = "2027"
            text = " ".join(words)
            yield Span(each.key, text, document, each.first, each.last, edited=text != each.text)


def _deleted(corpus: Corpus) -> Iterator[Span]:
    for number, (document, parts) in enumerate(corpus.items()):
        if number % 3:
            yield from spans(document, parts)


def _cut(size: int, offset: int = 0, overlap: int = 0) -> Callable[[Corpus], Iterator[Span]]:
    def cut(corpus: Corpus) -> Iterator[Span]:
        for document, parts in corpus.items():
            yield from windows(document, "\n\n".join(parts), size, offset, overlap)

    return cut


WAYS: Mapping[str, Callable[[Corpus], Iterator[Span]]] = {
    "a chunk inserted before each document's first": _inserted,
    "documents renamed": _renamed,
    "chunks joined in pairs": _joined,
    "a word of each chunk replaced": _edited,
    "every third document deleted": _deleted,
    "cut at 400 characters": _cut(400),
    "cut at 800 characters": _cut(800),
    "cut at 800, offset 300": _cut(800, offset=300),
    "cut at 800, overlap 200": _cut(800, overlap=200),
    "cut at 2,000 characters": _cut(2000),
    "cut at 2,000, offset 700, overlap 400": _cut(2000, offset=700, overlap=400),
    "cut at 8,000, overlap 1,000": _cut(8000, overlap=1000),
}


def truth(judged: Span, chunks: Sequence[Span]) -> tuple[KeyState, Mapping[str, float]]:
    """Return what became of a judged span, and chunk -> the share of it that the chunk holds."""
    length = judged.last - judged.first
    shares = {
        chunk.key: shared / length
        for chunk in chunks
        if (shared := min(chunk.last, judged.last) - max(chunk.first, judged.first)) > 0
    }
    same = {c.key: c for c in chunks if (c.first, c.last) == (judged.first, judged.last)}
    if same:
        if judged.key not in same:
            return KeyState.MOVED, shares
        return KeyState.CHANGED if same[judged.key].edited else KeyState.LIVE, shares
    if any(share == 1 for share in shares.values()):
        return KeyState.MERGED, shares
    return (KeyState.SPLIT if shares else KeyState.LOST), shares


def is_remapped(state: KeyState, shares: Mapping[str, float], found: Found) -> bool:
    """Say whether the chunks that are proposed are those that hold the judged text.

    Of a split text those with `PIECE` or more, each with its share.
    """
    proposed = {place.key: place.share for place in found.places}
    if state is not KeyState.SPLIT:
        return set(proposed) == {key for key, share in shares.items() if share == 1}
    needed = {key for key, share in shares.items() if share >= PIECE + TOLERANCE}
    return needed <= set(proposed) and all(
        shares.get(key, 0) >= PIECE - TOLERANCE and abs(shares[key] - share) <= TOLERANCE
        for key, share in proposed.items()
    )


@dataclass(slots=True)
class Tally:
    """What was found, by what became of the judged text in truth."""

    of: Counter[KeyState]
    classified: Counter[KeyState]
    remapped: Counter[KeyState]

    @classmethod
    def empty(cls) -> "Tally":
        """Return a tally of nothing."""
        return cls(Counter(), Counter(), Counter())

    def __iadd__(self, other: Self) -> Self:
        self.of += other.of
        self.classified += other.classified
        self.remapped += other.remapped
        return self


REMAPPED = (KeyState.MOVED, KeyState.MERGED, KeyState.SPLIT)


def trial(judgments: Sequence[str], corpus: Corpus, chunks: Sequence[Span]) -> Tally:
    """Search for the text of each judgment's key among the chunks, and count what was right."""
    before = {each.key: each for name, parts in corpus.items() for each in spans(name, parts)}
    by_document: dict[str, list[Span]] = {}
    for chunk in chunks:
        by_document.setdefault(chunk.document, []).append(chunk)
    times = Counter(judgments)
    search = Search([Evidence(key, before[key].text) for key in times])
    for chunk in chunks:
        search.see(chunk.key, chunk.text)
    tally = Tally.empty()
    for (key, count), found in zip(times.items(), search.found(), strict=True):
        state, shares = truth(before[key], by_document.get(before[key].document, []))
        tally.of[state] += count
        tally.classified[state] += count * (found.state is state)
        if state in REMAPPED:
            tally.remapped[state] += count * is_remapped(state, shares, found)
    return tally


def read(folder: Path) -> tuple[Corpus, list[str]]:
    """Return a collection's chunks by document, and the key of each judgment."""
    corpus: dict[str, list[str]] = {}
    for line in _lines(folder / "chunks.jsonl"):
        corpus.setdefault(line["document_id"], []).append(line["content"])
    return corpus, [key for line in _lines(folder / "golden.jsonl") for key in line["expected"]]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def _share(part: int, of: int) -> str:
    return f"{part / of:.1%} of {of:,}" if of else "-"


def page(names: Sequence[str] = COLLECTIONS) -> Iterator[str]:
    """Yield the lines of the section."""
    yield "# Keys after re-chunking\n"
    yield (
        "Judged keys of two collections, looked for after the corpus was cut into chunks anew, by"
        " what\nbecame of each in truth (every chunk is a known span of its document). Made by\n"
    )
    yield "    python -m bench.rechunking --write\n"
    yield (
        "Classified: `golden check` names the right state. Remapped: `golden remap` proposes"
        " exactly the\nchunks that hold the whole judged text; of a split one, those that hold"
        f" {PIECE:.0%} of it or more\n(± {TOLERANCE:.0%}), each with its share (± {TOLERANCE:.0%})."
        " Where several\nrenamed documents hold the same text, all are named and nothing is"
        " written: that counts as wrong.\n"
    )
    whole = Tally.empty()
    for name in names:
        corpus, judgments = read(DATA / name)
        yield f"## {name}: {len(judgments):,} judgments\n"
        yield "| corpus | live | changed | moved | split | merged | lost | classified | remapped |"
        yield f"|---|{'---:|' * 8}"
        for way, cut in WAYS.items():
            tally = trial(judgments, corpus, list(cut(corpus)))
            yield _row(way, tally)
            whole += tally
        yield ""
    yield from _totals(whole)


def _row(way: str, tally: Tally) -> str:
    counts = " | ".join(f"{tally.of[state]:,}" for state in KeyState)
    classified = _share(tally.classified.total(), tally.of.total())
    remapped = _share(tally.remapped.total(), sum(tally.of[state] for state in REMAPPED))
    return f"| {way} | {counts} | {classified} | {remapped} |"


def _totals(tally: Tally) -> Iterator[str]:
    yield "## Both, by what became of the text\n"
    yield "| in truth | classified right | remapped right |"
    yield "|---|---:|---:|"
    for state in KeyState:
        of = tally.of[state]
        remapped = _share(tally.remapped[state], of) if state in REMAPPED else "-"
        yield f"| {state} | {_share(tally.classified[state], of)} | {remapped} |"


def main() -> None:
    """Print the section, or write it into docs/results.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put it into docs/results.md")
    text = "\n".join(page())
    if parser.parse_args().write:
        written = with_section(PAGE.read_text(encoding="utf-8"), "bench.rechunking", text)
        PAGE.write_text(written, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
