"""A BEIR folder, which is also how a retrieval task of MTEB is stored.

    queries.jsonl    {"_id": "q1", "text": "How do I reset it?"}
    qrels/test.tsv   query-id <tab> corpus-id <tab> score, with this header; or the same as JSONL
    corpus.jsonl     read by `recallwatch corpus load`

What BEIR has no place for, our own export puts under `metadata.recallwatch` of a query.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.errors import InputError
from pipeline.golden.formats import (
    Notice,
    ReadOptions,
    Record,
    Refused,
    readable,
    refuse_options,
)
from pipeline.golden.jsonl import parse_object
from pipeline.golden.line_ends import split_lines
from pipeline.golden.readers.csv_rows import Rows
from pipeline.golden.readers.judgment_table import (
    Judged,
    JudgmentTable,
    as_notes,
    judged_by_fault,
    judgment_table,
)
from pipeline.lines import decoded
from pipeline.text import described, is_blank, quoted, storable

COLUMNS = ("query-id", "corpus-id", "score")
OWN_METADATA = "recallwatch"
_TSV_ENDINGS = (".tsv", ".tsv.gz", ".txt")
_JSONL_ENDINGS = (".jsonl", ".jsonl.gz")


def read(source: str, *, options: ReadOptions) -> Iterator[Record]:
    """Yield the queries that have judgments, and what is refused or left out.

    `source` is a folder, or its file of queries with `options.qrels`. The judgments are those of
    `options.qrels`, else `qrels/test.tsv`, else the only file in `qrels`. Raises InputError when
    files are missing.
    """
    refuse_options(source, options, "qrels", "document_ids")
    with readable(Path(source)):
        queries = _queries_file(Path(source))
        qrels, others = _qrels_file(Path(source), options.qrels)
    if others:
        yield Notice(f"judgments of {qrels.name}; --qrels chooses others: {', '.join(others)}")
    with judgment_table(qrels, options) as table:
        yield from table.load(_judgments(qrels))
        for number, line in split_lines(queries):
            if line.strip() and (record := _record(f"{queries}:{number}", line, table)):
                yield record
        yield from table.orphans(str(queries))
        yield from map(Notice, table.notices())


def _queries_file(folder: Path) -> Path:
    if folder.is_file():
        return folder
    for name in ("queries.jsonl", "queries.jsonl.gz"):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{folder}: holds no queries.jsonl: a BEIR folder is needed")


def _qrels_file(folder: Path, chosen: Path | None) -> tuple[Path, list[str]]:
    """Return the file of judgments, and the names of those that were not chosen for a person."""
    if chosen is not None:
        return chosen, []
    endings = (*_TSV_ENDINGS, *_JSONL_ENDINGS)
    inside = folder / "qrels"
    found = sorted(inside.iterdir()) if inside.is_dir() else []
    found = [path for path in found if path.name.endswith(endings)]
    test = next((path for path in found if path.name.split(".")[0] == "test"), None)
    if test is None and len(found) != 1:
        what = ", ".join(path.name for path in found) or "no file of qrels"
        raise InputError(f"{inside}: holds {what}: choose one with --qrels FILE")
    qrels = test or found[0]
    return qrels, [path.name for path in found if path != qrels]


def _record(place: str, line: bytes, table: JudgmentTable) -> Record | None:
    try:
        stated = parse_object(decoded(line))
        query = identifier("_id", stated)
        # From here on the query is known, whatever else is wrong with it.
        table.claim(query)
        fields = {"external_id": query, "question": stated.get("text"), **_own(stated)}
    except InputError as error:
        return Refused(place, str(error), as_notes(line.decode(errors="replace").strip()))
    return table.record(query, place, fields)


def identifier(name: str, stated: Mapping[str, object]) -> str:
    """Return the id in a field: a text, or an integer, which JSON keeps whatever its size."""
    value = stated.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or is_blank(value):
        what = described(value) if name in stated else "missing"
        raise InputError(f"{name} is {what}: an id is needed")
    return storable(name, value)


def _own(stated: Mapping[str, object]) -> Mapping[str, object]:
    metadata = stated.get("metadata")
    own = metadata.get(OWN_METADATA) if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else {}


def _judgments(path: Path) -> Iterator[Judged | Refused]:
    if path.name.endswith(_JSONL_ENDINGS):
        yield from _judgments_of_jsonl(path)
        return
    rows = Rows(path, lambda name: name.casefold() in COLUMNS, delimiter="\t")
    names = [name.casefold() for name in rows.columns]
    if any(name not in names for name in COLUMNS):
        raise InputError(
            f"{path}:1: the header is {quoted(' '.join(rows.columns))}: {', '.join(COLUMNS)}, apart"
            " by tabs, are needed"
        )
    columns = [names.index(name) for name in COLUMNS]
    for row in rows:
        if row.fault is not None:
            yield from judged_by_fault(rows, row, columns[0])
            continue
        query, document, score = (row.cells[column] for column in columns)
        yield Judged(query, row.line, document, score)


def _judgments_of_jsonl(path: Path) -> Iterator[Judged | Refused]:
    for number, line in split_lines(path):
        if line.strip():
            yield _judged_in_object(f"{path}:{number}", number, line)


def _judged_in_object(place: str, number: int, line: bytes) -> Judged | Refused:
    whole = line.decode(errors="replace").strip()
    try:
        stated = parse_object(decoded(line))
        query = identifier(COLUMNS[0], stated)
    except InputError as error:
        return Refused(place, str(error), as_notes(whole))
    try:
        document = identifier(COLUMNS[1], stated)
    except InputError as error:
        return Judged(query, number, whole, None, str(error))
    return Judged(query, number, document, json.dumps(stated.get("score")))
