"""Judgments that stand apart from their questions, on disk, so that memory stays flat.

Qrels name the question on each of their lines, in any order. They are put into a table of SQLite's,
in a temporary file without a name, and taken out question by question.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.golden.formats import Read, ReadOptions, Record, Refused, refused
from pipeline.golden.readers.csv_rows import Row, Rows
from pipeline.golden.readers.ids import Ids
from pipeline.golden.readers.values import grade_from
from pipeline.golden.record import question_from
from pipeline.text import quoted
from pipeline.types import Kind

_SCHEMA = """
CREATE TABLE judgment (query TEXT NOT NULL, line INTEGER NOT NULL, document TEXT, grade TEXT,
    fault TEXT);
CREATE TABLE asked (query TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_ORPHANS = """
SELECT query FROM judgment WHERE query NOT IN (SELECT query FROM asked) AND fault IS NULL
GROUP BY query ORDER BY min(line)
"""
_FAULTS_OF_NOBODY = """
SELECT line, document, fault FROM judgment WHERE fault IS NOT NULL AND line NOT IN
    (SELECT line FROM judgment JOIN asked USING (query) WHERE fault IS NOT NULL)
GROUP BY line ORDER BY line
"""
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BATCH = 1_000
_MOST_CELLS_TOO_MANY = 8  # an id with more delimiters in it is not looked for


class Judged(NamedTuple):
    """One judgment as a file states it; without a document it says that the question exists.

    `fault`: why the line is no judgment. Its question is refused as a whole, with the line in the
    place of a document. Where nobody can tell which question it means there is one for each that
    it may.
    """

    query: str
    line: int
    document: str | None
    grade: str | None
    fault: str | None = None


class JudgmentTable:
    """The judgments of one file, `path`, and what was left out or said of them, counted.

    `repeated`: judgments that stand there twice, alike. `unjudged`: questions without one.
    `irrelevant`: questions whose judgments all say not relevant.
    """

    def __init__(self, path: Path, options: ReadOptions, table: sqlite3.Connection) -> None:
        self.path = path
        self.repeated = self.unjudged = self.irrelevant = 0
        self._options = options
        self._ids = Ids(all_documents=options.document_ids)
        self._table = table
        table.executescript(_SCHEMA)
        table.execute("BEGIN")

    def load(self, rows: Iterable[Judged | Refused]) -> Iterator[Refused]:
        """Take all judgments in, and yield what is none."""
        remaining = iter(rows)
        while batch := list(islice(remaining, _BATCH)):
            yield from (row for row in batch if isinstance(row, Refused))
            judged = (row for row in batch if isinstance(row, Judged))
            self._table.executemany("INSERT INTO judgment VALUES (?, ?, ?, ?, ?)", judged)
        self._table.execute("CREATE INDEX judgment_query ON judgment (query)")

    def queries(self) -> Iterator[tuple[str, int]]:
        """Yield each question that is judged and the first line it stands on, in that order."""
        yield from self._table.execute(
            "SELECT query, min(line) FROM judgment WHERE fault IS NULL"
            " GROUP BY query ORDER BY min(line)"
        )

    def claim(self, query: str) -> None:
        """Note that there is such a question, so that its judgments are no orphans."""
        self._table.execute("INSERT OR IGNORE INTO asked VALUES (?)", (query,))

    def record(self, query: str, place: str, fields: Mapping[str, object]) -> Record | None:
        """Claim the question of these fields and return it with its judgments as `expected`.

        Without a judgment it is counted in `unjudged`, unless its kind is unanswerable. With one
        that cannot be used it is refused as a whole, at that line.
        """
        self.claim(query)
        judged = self._judgments_of(query)
        fields = self._options.stated(fields)
        if not judged and fields.get("kind") != Kind.UNANSWERABLE:
            self.unjudged += 1
            return None
        raw = as_jsonl(fields, self._keyed(judged))
        try:
            question = question_from({**fields, "expected": self._expected(judged)})
        except _BadLineError as fault:
            return refused(f"{self.path}:{fault.line}", fault, raw, fields)
        except InputError as error:
            return refused(place, error, raw, fields)
        # Of one without a judgment the file said so itself.
        self.irrelevant += bool(judged) and question.kind is Kind.UNANSWERABLE
        return Read(place, question, raw)

    def orphans(self, where: str) -> Iterator[Refused]:
        """Yield what is judged, but was not asked for, and lines that no question is known for."""
        for (query,) in self._table.execute(_ORPHANS):
            judged = self._judgments_of(query)
            yield Refused(
                f"{self.path}:{judged[0].line}",
                f"{quoted(query)} is judged here, but {where} does not hold it: add it there, or"
                " take its judgments out",
                as_jsonl({"external_id": query, "question": ""}, self._keyed(judged)),
            )
        for line, whole, fault in self._table.execute(_FAULTS_OF_NOBODY):
            yield Refused(f"{self.path}:{line}", fault, as_notes(whole))

    def notices(self) -> list[str]:
        """Say what was left out; empty where nothing was."""
        found = []
        if self.unjudged:
            found.append(f"{self.unjudged:,} questions have no judgment and were left out")
        if self.irrelevant:
            found.append(
                f"{self.irrelevant:,} questions have judgments, but none of a relevant document:"
                " taken as unanswerable"
            )
        if self.repeated:
            found.append(f"{self.repeated:,} judgments repeat an earlier line: counted once")
        return found + self._ids.notices()

    def _judgments_of(self, query: str) -> list[Judged]:
        rows = self._table.execute(
            "SELECT * FROM judgment WHERE query = ? AND document IS NOT NULL ORDER BY rowid",
            (query,),
        )
        return [Judged(*row) for row in rows]

    def _keyed(self, judged: Sequence[Judged]) -> Iterable[tuple[str, str]]:
        """Return key and grade of each as JSON lines have them; twice where they are not alike."""
        keyed = (
            (self._ids.uncounted(row.document or "") if row.fault is None else row.document or "",
             _json_grade(row.grade))
            for row in judged
        )  # fmt: skip
        return dict.fromkeys(keyed)

    def _expected(self, judged: Sequence[Judged]) -> dict[str, int]:
        expected: dict[str, int] = {}
        lines: dict[str, int] = {}
        for _, line, document, stated, fault in judged:
            if fault is not None:
                raise _BadLineError(fault, line)
            key = self._ids.key(document or "")
            try:
                grade = grade_from(stated or "")
            except InputError as error:
                raise _BadLineError(f"{quoted(key)}: {error}", line) from None
            if expected.setdefault(key, grade) != grade:
                raise _BadLineError(
                    f"{quoted(key)} has grade {grade} here and {expected[key]} at line"
                    f" {lines[key]}: keep one",
                    line,
                )
            self.repeated += key in lines
            lines.setdefault(key, line)
        return expected


class _BadLineError(Exception):
    """A judgment that cannot be used, and the line it stands on."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


@contextmanager
def judgment_table(path: Path, options: ReadOptions) -> Iterator[JudgmentTable]:
    """Give an empty table for the judgments of a file; it is gone in the end."""
    with closing(sqlite3.connect("", isolation_level=None)) as table:
        yield JudgmentTable(path, options, table)


def judged_by_fault(rows: Rows, row: Row, column: int) -> Iterator[Judged]:
    """Yield what refuses each question that a row with a fault may judge; its id is in `column`.

    Raises InputError where the row may have taken others in, which would lose their questions keys.
    """
    if not row.cells:
        raise InputError(
            f"{rows.path}:{row.line}: {row.fault}; it holds judgments of nobody knows which"
            " questions, so that no part of the file can be imported"
        )
    # A delimiter too many stands before the id, in it or behind it.
    more = min(max(len(row.cells) - len(rows.columns), 0), _MOST_CELLS_TOO_MANY)
    ends = range(column, column + more + 1)
    may_be = {rows.delimiter.join(row.cells[start : end + 1]) for end in ends for start in ends}
    for query in may_be:
        yield Judged(query, row.line, row.raw.strip(), None, row.fault)


def as_jsonl(fields: Mapping[str, object], judged: Iterable[tuple[str, str]] = ()) -> str:
    """Return the line of JSONL that says the same, faults included, for a person to correct.

    `judged` are keys, and grades as JSON. By hand: a key that is judged twice stands twice.
    """
    keys = (f"{_json(key)}: {grade}" for key, grade in judged)
    stated = _json(dict(fields))[:-1]
    return f'{stated}, "expected": {{{", ".join(keys)}}}}}\n'


def as_notes(line: str) -> str:
    """Return a line of JSONL for what is no question, so that a person sees what stood there."""
    return as_jsonl({"question": "", "notes": line})


def _json_grade(stated: str | None) -> str:
    if stated is None or _NUMBER.fullmatch(stated):
        return stated or "null"
    with suppress(InputError):
        return str(grade_from(stated))
    return _json(stated)


def _json(value: object) -> str:
    """Return JSON that can be written as UTF-8: half of a surrogate pair stays an escape."""
    written = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _SURROGATE.search(written) else written
