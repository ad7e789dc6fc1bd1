"""A golden set as a BEIR folder, without its corpus: queries.jsonl and qrels/test.tsv.

All of a question is written: what BEIR has no place for stands under `metadata.recallwatch` of its
query, which other tools do not look at. `pipeline.golden.readers.beir` reads it back.
"""

import csv
import io
import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from pipeline.golden.jsonl import record_of
from pipeline.golden.readers.beir import COLUMNS, OWN_METADATA
from pipeline.golden.writers.naming import Names
from pipeline.types import Question

QUERIES = "queries.jsonl"
QRELS = "qrels/test.tsv"


def write(numbered: Iterable[tuple[int, Question]], folder: Path) -> list[str]:
    """Write both files into a folder that exists, and return warnings: none, nothing is lost.

    A question without an external id gets its number in recallwatch as `_id`. Raises InputError
    when two questions would have one id, and OSError.
    """
    (folder / QRELS).parent.mkdir(exist_ok=True)
    names = Names()
    with ExitStack() as stack:
        queries = stack.enter_context((folder / QUERIES).open("wb"))
        table = stack.enter_context((folder / QRELS).open("wb"))
        text = stack.enter_context(io.TextIOWrapper(table, encoding="utf-8", newline=""))
        qrels = csv.writer(text, delimiter="\t")
        qrels.writerow(COLUMNS)
        for number, question in numbered:
            query = names.take(number, question)
            queries.write(_line_of(query, question))
            qrels.writerows((query, key, grade) for key, grade in question.expected.items())
    return []


def _line_of(query: str, question: Question) -> bytes:
    own = {
        name: value
        for name, value in record_of(question).items()
        if name not in {"question", "expected", "external_id"}
    }
    if question.external_id is None:
        own["external_id"] = None
    record = {"_id": query, "text": question.text, "metadata": {OWN_METADATA: own} if own else {}}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"
