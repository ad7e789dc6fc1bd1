"""Review by file: proposals to a CSV file that a spreadsheet opens, and the decisions back from it.

A row is a question. `decision` is accept, reject or change; what the editable cells say is taken
over with it. `mark` says which state of the question the row shows, so that a row that is out of
date is told, and begins with a character that an encoding which loses any would lose too.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TextIO

from pipeline.errors import InputError
from pipeline.golden.csv_cells import guard, unguard
from pipeline.golden.readers.expected_cells import expected_cell, expected_from
from pipeline.golden.readers.ids import Ids
from pipeline.golden.readers.values import flag_from
from pipeline.golden.record import question_from
from pipeline.lines import MAX_LINE_BYTES, decoded, raw_lines
from pipeline.text import is_blank, quoted, storable
from pipeline.types import Question

COLUMNS = (
    "id", "decision", "reason", "question", "expected", "category", "tenant", "language",
    "must_pass", "notes", "source", "proposed_keys", "chunks", "mark",
)  # fmt: skip

_NEEDED = COLUMNS[:10] + COLUMNS[-1:]
_CANARY = "✓"

LONGEST_CELL = 30_000
"""Characters of the chunks in a row: a cell of a spreadsheet holds 32,767, and spills over."""

_LONGEST_CHUNK = 2_000
_DELIMITERS = (",", ";", "\t")
_EXCEL_SEPARATOR = re.compile(r"\s*sep=[,;\t]\s*", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"[0-9]+(?::[0-9]+){1,2}")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")


class Decision(StrEnum):
    """What a reviewer says of a question."""

    ACCEPT = "accept"
    REJECT = "reject"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A question as a reviewer gets it to see.

    `mark` stands for all of its state; `proposed` are keys that may be expected too, each with a
    reason; `chunks` maps a key to its text in the corpus.
    """

    id: int
    mark: str
    question: Question
    proposed: Mapping[str, str]
    chunks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Decided:
    """A row as it came back. `decision` None: the reviewer left it open.

    `place` is the file and the line in which the row begins, and the spreadsheet's row where that
    is another; `reason` is why it is rejected. `keyless`: the cell of the expected keys is blank,
    which is not yet to say that nothing answers it.
    """

    place: str
    id: int
    mark: str
    decision: Decision | None
    reason: str | None
    question: Question
    keyless: bool


def write_proposals(proposals: Iterable[Proposal], stream: TextIO) -> int:
    """Write a row a question and return how many; open the stream with `newline=""`.

    The byte order mark tells a spreadsheet that the file is UTF-8.
    """
    stream.write("\ufeff")
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    written = 0
    for proposal in proposals:
        writer.writerow(map(guard, _cells(proposal)))
        written += 1
    return written


def _cells(proposal: Proposal) -> Sequence[str]:
    question = proposal.question
    return (
        str(proposal.id),
        "",
        "",
        question.text,
        _expected(question.expected),
        question.category or "",
        question.tenant or "",
        question.language or "",
        "TRUE" if question.must_pass else "FALSE",
        question.notes or "",
        question.source.value,
        "\n".join(f"{key} ({reason})" for key, reason in proposal.proposed.items()),
        _chunks(proposal.chunks),
        _CANARY + proposal.mark,
    )


def _expected(expected: Mapping[str, int]) -> str:
    """Return the cell of the expected keys; a spreadsheet would take 12:3 for a time of day."""
    cell = expected_cell(expected)
    return f"{cell}=1" if _TIME_OF_DAY.fullmatch(cell) else cell


def _chunks(chunks: Mapping[str, str]) -> str:
    texts = (f"[{key}] {_cut(text, _LONGEST_CHUNK)}" for key, text in chunks.items())
    return _cut("\n\n".join(texts), LONGEST_CELL)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def read_decisions(path: Path) -> Iterator[Decided | InputError]:
    """Yield what each row says, or what is wrong with it; columns may stand in any order.

    Blank rows are passed over. Raises InputError for a file that is no such table at all: not
    UTF-8, or without one of the columns.
    """
    rows = _rows(path)
    header = next(rows, None)
    place, names = (f"{path}:1", []) if header is None else (header[0], list(map(_name, header[1])))
    missing = next((name for name in _NEEDED if name not in names), None)
    if missing is not None:
        raise InputError(
            f"{place}: there is no column {missing}: keep the columns of recallwatch golden"
            " review --export"
        )
    for place, cells in rows:
        if any(map(str.strip, cells)):
            yield _decided_at(place, dict(zip(names, cells, strict=False)))


def _name(cell: str) -> str:
    return cell.strip().casefold()


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of the table, and where each begins."""
    csv.field_size_limit(MAX_LINE_BYTES)
    lines = _lines(path)
    first = next(lines, "")
    skipped = 0
    if _EXCEL_SEPARATOR.fullmatch(first):
        first, skipped = next(lines, ""), 1
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    begin = 1 + skipped
    try:
        for row, cells in enumerate(reader, start=1 + skipped):
            yield f"{path}:{begin}" + (f" (row {row})" if row != begin else ""), cells
            begin = 1 + skipped + reader.line_num
    except csv.Error as error:
        raise InputError(f"{path}:{begin}: not a row of a CSV file ({error})") from None


def _lines(path: Path) -> Iterator[str]:
    for number, line in raw_lines(path):
        try:
            yield decoded(line)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None


def _decided_at(place: str, cells: Mapping[str, str]) -> Decided | InputError:
    try:
        return _decided(place, {name: unguard(cell) for name, cell in cells.items() if name})
    except InputError as error:
        return InputError(f"{place}: {error}")


def _decided(place: str, cells: Mapping[str, str]) -> Decided:
    absent = next((name for name in _NEEDED if name not in cells), None)
    if absent is not None:
        raise InputError(f"the row ends before the column {absent}")
    decision = _decision(cells["decision"])
    reason = storable("reason", cells["reason"].strip()) or None
    if decision is Decision.REJECT and (reason is None or is_blank(reason)):
        raise InputError("decision is reject: say why in the column reason")
    return Decided(
        place=place,
        id=_number(cells["id"]),
        mark=_mark(cells["mark"]),
        decision=decision,
        reason=reason,
        question=_question(cells),
        keyless=not cells["expected"].strip(),
    )


def _decision(cell: str) -> Decision | None:
    word = cell.strip().casefold()
    if not word:
        return None
    try:
        return Decision(word)
    except ValueError:
        raise InputError(
            f"decision is {quoted(cell)}: accept, reject, change or nothing is needed"
        ) from None


def _number(cell: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(cell.strip()):
        raise InputError(f"id is {quoted(cell)}: the number of a question is needed")
    return int(cell)


def _mark(cell: str) -> str:
    mark = cell.strip()
    if not mark.startswith(_CANARY):
        raise InputError(
            f"mark is {quoted(cell)}, not as it was exported: save the file as CSV UTF-8, else"
            " characters are lost, and leave this column as it is"
        )
    return mark.removeprefix(_CANARY)


def _question(cells: Mapping[str, str]) -> Question:
    expected = expected_from(cells["expected"], Ids())
    labels = {name: cells[name] or None for name in ("category", "tenant", "language", "notes")}
    record: dict[str, object] = {"question": cells["question"], "expected": expected, **labels}
    if cells["must_pass"].strip():
        record["must_pass"] = flag_from("must_pass", cells["must_pass"])
    return question_from({name: value for name, value in record.items() if value is not None})


def taken_over(stored: Question, row: Question) -> dict[str, object]:
    """Return the fields of a question that a row says otherwise, by name.

    Line ends alone are no difference: a spreadsheet writes those that it likes.
    """
    labels = ("text", "category", "tenant", "language", "notes")
    changes: dict[str, object] = {
        name: getattr(row, name)
        for name in labels
        if _one_end(getattr(row, name)) != _one_end(getattr(stored, name))
    }
    if row.must_pass != stored.must_pass:
        changes["must_pass"] = row.must_pass
    if dict(row.expected) != dict(stored.expected):
        changes["expected"] = dict(row.expected)
    return changes


def _one_end(text: str | None) -> str:
    return (text or "").replace("\r\n", "\n").replace("\r", "\n")
