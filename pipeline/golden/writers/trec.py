"""A golden set as TREC topics and qrels, for trec_eval and its kin.

    topics.tsv   id <tab> text
    qrels.txt    id <tab> 0 <tab> chunk key <tab> grade

A question without an external id gets its number in recallwatch as id.
"""

import re
from collections.abc import Container, Iterable
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import InputError
from pipeline.golden.jsonl import record_of
from pipeline.golden.readers.topics import Topic, topic_in
from pipeline.golden.readers.trec import judgment_in
from pipeline.golden.writers.losses import Losses
from pipeline.golden.writers.naming import name_of
from pipeline.types import Question
from pipeline.whole_files import whole_folder

TOPICS = "topics.tsv"
QRELS = "qrels.txt"
READ = ("topics*", "qrels*")
"""What a reader takes for topics and judgments in a folder."""
_HELD = {"question", "expected", "external_id", "kind"}
_MARKS = ("#", "<", "\ufeff")
_BLANK = re.compile(r"\s")


def write(
    numbered: Iterable[tuple[int, Question]], folder: Path, *, taken: Container[str] = ()
) -> list[str]:
    """Write both files into a folder, made where it is not there, whole or not at all.

    Returns warnings, one line each: what TREC cannot hold is counted in them, other fields,
    questions without a judgment, and ids, texts and keys with a tab or a line break.
    `naming.name_of` gives the id of a question. Raises OSError.
    """
    losses = Losses("TREC")
    with_blanks = renamed = 0
    with whole_folder(folder, TOPICS, QRELS) as (topics, qrels):
        for number, question in numbered:
            query = name_of(number, question.external_id, taken)
            if reason := _cannot_hold(query, question):
                losses.leave_out(reason)
                continue
            losses.leave_behind(record_of(question).keys() - _HELD)
            with_blanks += any(map(_BLANK.search, (query, *question.expected)))
            renamed += query != name_of(number, question.external_id)
            _write_question(query, question, topics, qrels)
    return losses.warnings() + _said(with_blanks, renamed)


def _said(with_blanks: int, renamed: int) -> list[str]:
    found = []
    if with_blanks:
        found.append(
            f"TREC: {with_blanks:,} questions have blanks in an id or key: recallwatch reads them"
            " back, trec_eval does not"
        )
    if renamed:
        found.append(
            f"TREC: {renamed:,} questions without an external id have a number that is the"
            " external id of another: their topics are the number with _ after it"
        )
    return found


def _write_question(query: str, question: Question, topics: BinaryIO, qrels: BinaryIO) -> None:
    topics.write(_topic(query, question))
    qrels.writelines(_judgment(query, key, grade) for key, grade in question.expected.items())


def _topic(query: str, question: Question) -> bytes:
    return f"{query}\t{question.text}\n".encode()


def _judgment(query: str, key: str, grade: int) -> bytes:
    return f"{query}\t0\t{key}\t{grade}\n".encode()


def _cannot_hold(query: str, question: Question) -> str | None:
    """Say why a question is not written; None where import reads it back as it is."""
    if not question.expected:
        return "they have no judgment"
    if query.startswith(_MARKS):
        return "the id begins with #, < or a byte order mark, which have another meaning there"
    topic = _topic(query, question)
    if topic.count(b"\n") > 1 or topic_in(0, topic) != Topic(0, query, question.text):
        return "the id or text holds a tab, a line break, or a blank at an end"
    if not all(_reads_back(query, *judgment) for judgment in question.expected.items()):
        return "an id or key holds a tab, a line break, or a blank at an end"
    return None


def _reads_back(query: str, key: str, grade: int) -> bool:
    line = _judgment(query, key, grade)
    try:
        return line.count(b"\n") == 1 and judgment_in(line.decode()) == (query, key, str(grade))
    except InputError:
        return False
