"""Golden sets as CSV or TSV: a header, then a question a row.

    question,expected,category
    How do I reset it?,"manual.html:3=2; manual.html:4",procedural

The columns are the fields of `pipeline.golden.record`; `expected` is a list
(`pipeline.golden.readers.expected_cells`), or several columns `expected_1`, `expected_2`, ..., each
with a `grade_1`, ... if need be. `evidence` is JSON. In what our own export wrote, which its header
tells, a leading apostrophe that keeps a spreadsheet from running a cell as a formula is taken off.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from pipeline.errors import InputError
from pipeline.golden.csv_cells import unguard
from pipeline.golden.formats import (
    Header,
    Notice,
    Read,
    ReadOptions,
    Record,
    refuse_options,
    refused,
)
from pipeline.golden.jsonl import parse_object
from pipeline.golden.readers.csv_rows import Row, Rows
from pipeline.golden.readers.expected_cells import expected_from, refuse_nothing
from pipeline.golden.readers.ids import Ids
from pipeline.golden.readers.values import flag_from, grade_from
from pipeline.golden.record import FIELDS, question_from
from pipeline.text import is_blank, quoted

_OTHER_NAMES = {"query": "question", "id": "external_id"}
_EXPECTED = re.compile(r"expected(?:_keys?)?(?:_?(\d+))?")
_GRADE = re.compile(r"grade(?:_?(\d+))?")


def read(source: str, *, options: ReadOptions) -> Iterator[Record]:
    """Yield the questions of a CSV or TSV file, and what was guessed of it.

    Raises InputError, which names file and line, for a header that cannot be used.
    """
    refuse_options(source, options, "document_ids")
    path = Path(source)
    rows = Rows(path, _is_known)
    fields = _fields(rows)
    ids = Ids(all_documents=options.document_ids)
    yield Header(rows.head)
    yield from map(Notice, rows.notices)
    is_ours = [name for name in rows.columns if name] == list(FIELDS)
    for row in rows:
        place = f"{path}:{row.line}"
        cells = dict(zip(fields, map(unguard, row.cells) if is_ours else row.cells, strict=False))
        try:
            _refuse_unusable(row, fields)
            yield Read(place, question_from(options.stated(_record(cells, ids))), row.raw)
        except InputError as error:
            yield refused(place, error, row.raw, cells)
    yield from map(Notice, ids.notices())


def field_of(name: str) -> str:
    """Return the field that a column's name means: `expected:2` and `grade:2` for several."""
    name = re.sub(r"[\s-]+", "_", name.strip().casefold())
    for kind, pattern in (("expected", _EXPECTED), ("grade", _GRADE)):
        if found := pattern.fullmatch(name):
            return f"{kind}:{found[1] or ''}"
    return _OTHER_NAMES.get(name, name)


def _is_known(name: str) -> bool:
    field = field_of(name)
    return field in FIELDS or field.partition(":")[0] in {"expected", "grade"}


def _fields(rows: Rows) -> list[str]:
    """Return the field of each column; "" where it has no name."""
    unknown = [name for name in rows.columns if name and not _is_known(name)]
    fields = [field_of(name) if name else "" for name in rows.columns]
    if "question" not in fields:
        raise InputError(
            f"{rows.path}: the first line has no column question: a header is needed, such as"
            " question,expected,category"
        )
    if unknown:
        raise InputError(
            f"{rows.path}: column {', '.join(map(quoted, unknown))} is not known: delete it or"
            f" rename it; columns are {', '.join(FIELDS)}, and grade"
        )
    twice = next((field for field in fields if field and fields.count(field) > 1), None)
    if twice is not None:
        same = [n for n, field in zip(rows.columns, fields, strict=True) if field == twice]
        raise InputError(f"{rows.path}: columns {' and '.join(same)} are one field: delete one")
    return fields


def _record(cells: Mapping[str, str], ids: Ids) -> Mapping[str, object]:
    record = {field: _value(field, cell) for field, cell in cells.items() if field in FIELDS}
    record["expected"] = expected = _expected(cells, ids)
    refuse_nothing(expected, record.get("kind"))
    return record


def _refuse_unusable(row: Row, fields: list[str]) -> None:
    if row.fault is not None:
        raise InputError(row.fault)
    for number, (field, cell) in enumerate(zip(fields, row.cells, strict=True), start=1):
        if not field and not is_blank(cell):
            raise InputError(
                f"column {number} has no name in the header, but holds {quoted(cell)}: name the"
                " column or delete it"
            )


def _value(field: str, cell: str) -> object:
    """Return a cell as the record takes it; what is left blank is absent, but for the question."""
    if field == "question" or not is_blank(cell):
        return _PARSERS.get(field, str)(cell)
    return cell if field == "notes" and cell else None


_PARSERS: Mapping[str, Callable[[str], object]] = {
    "must_pass": partial(flag_from, "must_pass"),
    "kind": lambda cell: cell.strip().lower(),
    "source": lambda cell: cell.strip().lower(),
    "evidence": parse_object,
}
"""What is no text as it stands in the cell."""


def _expected(cells: Mapping[str, str], ids: Ids) -> dict[str, object]:
    """Put the columns of expected keys together, each with its column of grades."""
    expected: dict[str, object] = {}
    for field, cell in cells.items():
        kind, _, number = field.partition(":")
        if kind == "expected":
            found = _graded(expected_from(cell, ids), cells.get(f"grade:{number}"), number)
            if twice := expected.keys() & found.keys():
                raise InputError(f"expected names the key {quoted(min(twice))} twice: keep one")
            expected |= found
        elif kind == "grade" and f"expected:{number}" not in cells and not is_blank(cell):
            raise InputError(f"grade {number} holds {quoted(cell)}, but has no column of keys")
    return expected


def _graded(found: dict[str, object], cell: str | None, number: str) -> dict[str, object]:
    if cell is None:
        return found
    if not found:
        if is_blank(cell):
            return found
        raise InputError(f"grade {number} is {quoted(cell)}, but the cell of its keys is empty")
    if any(grade != 1 for grade in found.values()):
        raise InputError(f"grades stand both behind the keys and in grade {number}: keep one")
    return dict.fromkeys(found, grade_from(cell))
