"""Golden sets as CSV or TSV, for a spreadsheet to open and for import to read again.

UTF-8 with a byte order mark, without which Excel takes it for the encoding of its country; cells
that it would run as formulas are guarded (`pipeline.golden.csv_cells`).
"""

import codecs
import csv
import io
import json
from collections.abc import Iterable
from typing import BinaryIO

from pipeline.golden.csv_cells import guard
from pipeline.golden.jsonl import record_of
from pipeline.golden.readers.expected_cells import expected_cell
from pipeline.golden.record import FIELDS
from pipeline.types import Question

_LONGEST_CELL = 32_767
"""Characters that Excel keeps of a cell:
https://support.microsoft.com/en-us/office/excel-specifications-and-limits-1672b34d-7043-467e-8e27-269d656771c3
"""


def write(questions: Iterable[Question], stream: BinaryIO, *, delimiter: str = ",") -> list[str]:
    """Write a header and a row a question, and return warnings, one line each.

    All fields are written; notes that are empty, but not absent, come back as absent.
    """
    stream.write(codecs.BOM_UTF8)
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(FIELDS)
    too_long = 0
    for question in questions:
        cells = _cells(question)
        too_long += any(len(cell) > _LONGEST_CELL for cell in cells)
        writer.writerow(cells)
    text.detach()
    if not too_long:
        return []
    return [f"{too_long:,} rows hold a cell that Excel cuts at {_LONGEST_CELL:,} characters"]


def _cells(question: Question) -> list[str]:
    cells = {name: _cell(value) for name, value in record_of(question).items()}
    cells["expected"] = expected_cell(question.expected)
    return [guard(cells.get(name, "")) for name in FIELDS]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
