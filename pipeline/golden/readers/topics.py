"""TREC topics: a line `id<TAB>text` each, or SGML blocks of which number and title are read.

A block begins with <top> and ends with </top>; in it, <num> Number: 301 and <title> are each
followed by their text, up to the next tag of TREC's or at a line's beginning. Entities, as &amp;,
are read as their characters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

from pipeline.errors import InputError
from pipeline.golden.line_ends import split_lines
from pipeline.lines import decoded
from pipeline.text import quoted

# A file of blocks may be wrapped as XML is.
_BEGINS_BLOCKS = re.compile(
    rb"\s*<(?:(?:top|topics|xml)\b[^\t>]*>|\?xml\b|!doctype\b|!--)", re.IGNORECASE
)
_WRAPPING = re.compile(r"\s*<(?:/?(?:topics|xml)\b|\?xml\b|!doctype\b|!--)[^\t]*", re.IGNORECASE)
_NEXT_BLOCK = re.compile(r"(?=<top\b)", re.IGNORECASE)
_OPENING = re.compile(r"<top\b[^>]*>", re.IGNORECASE)
_CLOSING = re.compile(r"</top\s*>", re.IGNORECASE)

# "a < b" and "a<b" are text, but what looks like a tag in the middle of a text is refused: nobody
# can tell whether it ends there.
_TAG = r"</?[A-Za-z][\w-]*(?:\s+[\w-]+\s*=[^<>]*)?>"
_KNOWN = r"</?(?:top|head|num|dom|title|desc|smry|narr|con|fac|def|nat|time)\b[^<>]*>"
_TEXT = rf"(.*?)(?=\n\s*{_TAG}|{_KNOWN}|\Z)"
_NUMBER = re.compile(rf"<num\b[^>]*>\s*(?:number\s*:)?{_TEXT}", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(rf"<title\b[^>]*>\s*(?:topic\s*:)?{_TEXT}", re.IGNORECASE | re.DOTALL)
_ENTITY = re.compile(r"&(?:#[0-9]+|#x[0-9a-f]+|[a-z][a-z0-9]*);", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic and the line it begins at; `fault` says why it is none, `line` where then."""

    line: int
    query: str
    text: str
    fault: str | None = None


def read_topics(path: Path) -> Iterator[Topic]:
    """Yield the topics of a file, in either form; lines that begin with # are comments.

    Raises InputError for a file that cannot be read or holds no topic.
    """
    number = 0
    for number, topic in enumerate(_topics(path), start=1):  # noqa: B007 - the count is used below
        yield topic
    if not number:
        raise InputError(f"{path}: holds no topic: a line id<TAB>text each, or <top> blocks")


def _topics(path: Path) -> Iterator[Topic]:
    lines = ((number, line) for number, line in split_lines(path) if line.strip())
    in_lines = False
    for number, line in lines:
        if not in_lines and _BEGINS_BLOCKS.match(line):
            yield from _blocks(number, line, lines)
        elif topic := topic_in(number, line):
            in_lines = True
            yield topic


def topic_in(number: int, line: bytes) -> Topic | None:
    """Return the topic on a line; None for a comment."""
    try:
        text = decoded(line).removesuffix("\n").removesuffix("\r")
    except InputError as error:
        return Topic(number, _first_field(line), "", str(error))
    query, tab, question = text.partition("\t")
    query = query.strip(" ")
    if query.startswith("#"):
        if not tab or " " in query:
            return None
        return Topic(number, query, question, "the id begins with #, which marks a comment in TREC")
    if not tab or not query:
        return Topic(number, query, text, "a topic is id<TAB>text: the line has no id and tab")
    if "\r" in text:
        return Topic(number, query, question, "the text holds a carriage return: take it out")
    return Topic(number, query, question)


def _first_field(line: bytes) -> str:
    return line.partition(b"\t")[0].decode(errors="replace").strip(" ")


@dataclass
class _Block:
    """A block that is being read; `start` is 0 where none is open."""

    start: int = 0
    pieces: list[str] = field(default_factory=list)
    fault: tuple[int, str] | None = None

    def add(self, number: int, piece: str, fault: str | None) -> None:
        """Take in a line, or its part that belongs to this block."""
        self.start = self.start or number
        self.pieces.append(piece)
        if fault and self.fault is None:
            self.fault = (number, fault)

    def topic(self, fault: str | None = None) -> Topic:
        """Return the topic that the block holds, with its own fault or this one."""
        text = "".join(self.pieces).replace("\r", "\n")
        query, title = _field(_NUMBER, text), _field(_TITLE, text)
        if self.fault is not None:
            return Topic(self.fault[0], query, title, self.fault[1])
        return Topic(self.start, query, _characters(title), fault or _fault_of(query, title))


def _blocks(first: int, line: bytes, lines: Iterator[tuple[int, bytes]]) -> Iterator[Topic]:
    """Yield the topics of an SGML file whose first line has been read already."""
    block = _Block()
    number = first
    while number:
        fault = _fault_in(line)
        for piece in _NEXT_BLOCK.split(line.decode(errors="replace")):
            if _OPENING.match(piece) and block.start:
                yield block.topic("the topic has no </top>")
                block = _Block()
            if block.start or _OPENING.match(piece):
                block.add(number, piece, fault)
            elif topic := _outside(number, piece):
                yield topic
            if block.start and _CLOSING.search(piece):
                yield block.topic()
                block = _Block()
        number, line = next(lines, (0, b""))
    if block.start:
        yield block.topic("the topic has no </top>")


def _outside(number: int, text: str) -> Topic | None:
    if not text.strip() or text.lstrip().startswith("#") or _WRAPPING.fullmatch(text.rstrip()):
        return None
    return Topic(number, text.partition("\t")[0].strip(), text.strip(),
                 "stands between the <top> blocks: write it as one, or delete it")  # fmt: skip


def _fault_in(line: bytes) -> str | None:
    try:
        decoded(line)
    except InputError as error:
        return str(error)
    return None


def _field(pattern: re.Pattern[str], block: str) -> str:
    found = pattern.search(block)
    return " ".join(found[1].split()) if found else ""


def _fault_of(query: str, title: str) -> str | None:
    if not query or not title:
        return f"the topic has no {'<title>' if query else '<num>'}"
    if tag := re.search(_TAG, title):
        return f"the title holds {quoted(tag[0])}: write &lt; where it is text, else take it out"
    return None


def _characters(text: str) -> str:
    return _ENTITY.sub(lambda entity: unescape(entity[0]), text)
