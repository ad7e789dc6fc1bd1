"""TREC topics: a line `id<TAB>text` each, or SGML blocks of which number and title are read.

A block begins with <top> and ends with </top>; in it, <num> Number: 301 and <title> are each
followed by their text, up to the next tag.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path

from pipeline.errors import InputError
from pipeline.lines import decoded, raw_lines

_OPENING = re.compile(r"<top\b[^>]*>", re.IGNORECASE)
_CLOSING = re.compile(r"</top\s*>", re.IGNORECASE)
# Up to the next tag: "a < b" is text.
_FIELD = r"(.*?)(?=</?[A-Za-z]|$)"
_NUMBER = re.compile(rf"<num\b[^>]*>\s*(?:number\s*:)?{_FIELD}", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(rf"<title\b[^>]*>\s*(?:topic\s*:)?{_FIELD}", re.IGNORECASE | re.DOTALL)
_BEGINS_BLOCKS = re.compile(rb"\s*<(top|\?xml|!|docs?|topics?|xml)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic and the line it begins at; `fault` says why it is none."""

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
    lines = ((number, line) for number, line in raw_lines(path) if line.strip())
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
        return Topic(number, "", "", str(error))
    query, tab, question = text.partition("\t")
    query = query.strip(" ")
    if query.startswith("#"):
        if not tab or " " in query:
            return None
        return Topic(number, query, question, "the id begins with #, which marks a comment in TREC")
    if not tab or not query:
        return Topic(number, query, text, "a topic is id<TAB>text: the line has no id and tab")
    return Topic(number, query, question)


def _blocks(first: int, line: bytes, lines: Iterator[tuple[int, bytes]]) -> Iterator[Topic]:
    """Yield the topics of an SGML file whose first line has been read already."""
    block: list[str] = []
    start, fault = 0, None
    number = first
    while True:
        text = line.decode(errors="replace")
        try:
            decoded(line)
        except InputError as error:
            fault = fault or str(error)
        if _OPENING.search(text):
            if block:
                yield Topic(start, "", "", "the topic has no </top>")
            block, start = [], number
        if start:
            block.append(text)
        if start and _CLOSING.search(text):
            topic = _from_block(start, " ".join(block))
            yield replace(topic, fault=topic.fault or fault)
            block, start, fault = [], 0, None
        number, line = next(lines, (0, b""))
        if not number:
            break
    if block:
        yield Topic(start, "", "", "the topic has no </top>")


def _from_block(line: int, block: str) -> Topic:
    number, title = _NUMBER.search(block), _TITLE.search(block)
    query = " ".join(number[1].split()) if number else ""
    text = unescape(" ".join(title[1].split())) if title else ""
    if not query or not text:
        return Topic(line, query, text, f"the topic has no {'<title>' if query else '<num>'}")
    return Topic(line, query, text)
