"""TREC topics and qrels: the questions in one file, the judgments in another.

    301 0 CR93E-10279 0

A judgment is topic, iteration (not used), document, grade, apart by tabs or by runs of blanks. With
exactly three tabs, ids may hold blanks. Lines that begin with # are comments.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import InputError
from pipeline.golden.formats import (
    Notice,
    ReadOptions,
    Record,
    readable,
    refuse_options,
    refused,
)
from pipeline.golden.line_ends import split_lines
from pipeline.golden.readers.judgment_table import Judged, as_jsonl, judgment_table
from pipeline.golden.readers.topics import read_topics
from pipeline.golden.readers.values import grade_from
from pipeline.lines import decoded

_BLANKS = re.compile("[ \t\r\n]+")
_AROUND = " \t\r\n"


def read(source: str, *, options: ReadOptions) -> Iterator[Record]:
    """Yield the topics that have judgments, and what is refused or left out.

    `source` is a folder that holds `topics*` and `qrels*`, or a file of topics with
    `options.qrels`. Raises InputError when either file is not there.
    """
    refuse_options(source, options, "qrels", "document_ids")
    with readable(Path(source)):
        topics, qrels = _files(Path(source), options.qrels)
    with judgment_table(qrels, options) as table:
        yield from table.load(_judgments(qrels))
        for topic in read_topics(topics):
            fields = {"external_id": topic.query, "question": topic.text}
            place = f"{topics}:{topic.line}"
            if topic.fault is not None:
                table.claim(topic.query)
                yield refused(place, InputError(topic.fault), as_jsonl(fields), fields)
            elif record := table.record(topic.query, place, fields):
                yield record
        yield from table.orphans(str(topics))
        yield from map(Notice, table.notices())


def judgment_in(line: str) -> tuple[str, str, str]:
    """Return topic, document and grade on a line of qrels; raises InputError, without a place."""
    if "\r" in line.strip(_AROUND):
        raise InputError("the line holds a carriage return: take it out")
    fields = [field.strip(_AROUND) for field in line.split("\t")]
    if len(fields) != 4 or not all(fields):  # noqa: PLR2004 - topic, iteration, document, grade
        fields = _BLANKS.split(line.strip(_AROUND))
    try:
        query, _, document, grade = fields
    except ValueError:
        raise InputError(
            f"a judgment has 4 fields (topic, iteration, document, grade), the line {len(fields)}:"
            " put tabs between them where an id holds blanks"
        ) from None
    if "\t" in line and " " in line:
        grade_from(grade)  # else it may not be one: an id with a blank, and a field too few
    return query, document, grade


def _judgments(path: Path) -> Iterator[Judged]:
    for number, line in split_lines(path):
        if not line.strip() or line.lstrip(b" \t").startswith(b"#"):
            continue
        try:
            query, document, grade = judgment_in(decoded(line))
        except InputError as error:
            whole = line.decode(errors="replace").strip(_AROUND)
            # Ids may hold blanks, where tabs are between the fields.
            for query in {_BLANKS.split(whole)[0], whole.partition("\t")[0].strip(_AROUND)}:
                yield Judged(query, number, whole, None, str(error))
            continue
        yield Judged(query, number, document, grade)


def _files(source: Path, qrels: Path | None) -> tuple[Path, Path]:
    if not source.is_dir():
        if qrels is None:
            raise InputError(f"{source}: holds topics only: name their judgments with --qrels FILE")
        return source, qrels
    return _only(source, "topics"), qrels or _only(source, "qrels")


def _only(folder: Path, name: str) -> Path:
    """Return the one file of a folder whose name begins so."""
    found = sorted(
        path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(name)
    )
    if len(found) != 1:
        what = ", ".join(path.name for path in found) or "none"
        raise InputError(
            f"{folder}: one file {name}* is needed, and there is {what}: name the file of topics,"
            " and the judgments with --qrels FILE"
        )
    return found[0]
