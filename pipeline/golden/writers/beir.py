"""A golden set as a BEIR folder, without its corpus: queries.jsonl and qrels/test.tsv.

All of a question is written: what BEIR has no place for stands under `metadata.recallwatch` of its
query, which other tools do not look at. `pipeline.golden.readers.beir` reads it back.
"""

import csv
import io
import json
from collections.abc import Container, Iterable
from pathlib import Path

from pipeline.golden.jsonl import record_of
from pipeline.golden.readers.beir import COLUMNS, OWN_METADATA
from pipeline.golden.writers.naming import name_of
from pipeline.types import Question
from pipeline.whole_files import whole_folder

QUERIES = "queries.jsonl"
QRELS = "qrels/test.tsv"
READ = ("queries.jsonl*", "qrels/*")
"""What a reader takes for queries and judgments in a folder."""


def write(
    numbered: Iterable[tuple[int, Question]], folder: Path, *, taken: Container[str] = ()
) -> list[str]:
    """Write both files into a folder, made where it is not there, whole or not at all.

    Returns warnings: none, nothing is lost. `naming.name_of` gives the `_id` of a question; one
    without an external id comes back without it. Raises OSError.
    """
    with whole_folder(folder, QUERIES, QRELS) as (queries, table):
        text = io.TextIOWrapper(table, encoding="utf-8", newline="", write_through=True)
        qrels = csv.writer(text, delimiter="\t")
        qrels.writerow(COLUMNS)
        for number, question in numbered:
            query = name_of(number, question.external_id, taken)
            queries.write(_line_of(query, question))
            qrels.writerows((query, key, grade) for key, grade in question.expected.items())
        text.detach()
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
