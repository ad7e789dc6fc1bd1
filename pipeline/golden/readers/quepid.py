"""Ratings as Quepid exports and imports them, as CSV: a rating a row.

    query,docid,rating
    Query Text,Doc ID,Rating
    Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating

The first is its basic export, the second what it imports, the third its detailed export, which may
have more columns. Quepid puts a blank before a text that a spreadsheet would run as a formula.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import InputError
from pipeline.golden.formats import Notice, ReadOptions, Record, refuse_options
from pipeline.golden.readers.csv_rows import Rows
from pipeline.golden.readers.judgment_table import Judged, judged_by_fault, judgment_table
from pipeline.text import is_blank

_FIELDS = {"query": "query", "querytext": "query", "docid": "document", "rating": "rating"}
_GUARDED = re.compile(r" [-+=@]")


def read(source: str, *, options: ReadOptions) -> Iterator[Record]:
    """Yield each query with its ratings; a query or document that nobody rated is left out.

    Raises InputError when a column is missing.
    """
    refuse_options(source, options, "document_ids")
    path = Path(source)
    rows = Rows(path, lambda name: _field(name) is not None)
    yield from map(Notice, rows.notices)
    ratings = _Ratings(rows)
    with judgment_table(path, options) as table:
        yield from table.load(ratings)
        for query, line in table.queries():
            if record := table.record(query, f"{path}:{line}", {"question": query}):
                yield record
        yield from table.orphans(source)
        yield from map(Notice, [*ratings.notices(), *table.notices()])


def is_quepid(names: list[str]) -> bool:
    """Tell whether a header with these names is one of Quepid's."""
    return {"query", "document", "rating"} <= {_field(name) for name in names}


def _field(name: str) -> str | None:
    return _FIELDS.get(re.sub(r"[\s_]", "", name).casefold())


def _unguarded(query: str) -> str:
    return query[1:] if _GUARDED.match(query) else query


class _Ratings:
    """The ratings of a file; counts the rows that hold a document, but no rating."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._unrated = 0
        fields = [_field(name) for name in rows.columns]
        if not is_quepid(list(rows.columns)):
            raise InputError(
                f"{rows.path}:1: Quepid's columns are query, docid and rating (or Query Text, Doc"
                " ID, Rating): the header lacks one"
            )
        self._columns = [fields.index(field) for field in ("query", "document", "rating")]

    def __iter__(self) -> Iterator[Judged]:
        for row in self._rows:
            if row.fault is not None:
                for judged in judged_by_fault(self._rows, row, self._columns[0]):
                    yield judged._replace(query=_unguarded(judged.query))
                continue
            query, document, rating = (row.cells[column] for column in self._columns)
            text = _unguarded(query)
            if is_blank(rating):
                self._unrated += not is_blank(document)
                yield Judged(text, row.line, None, None)
            else:
                yield Judged(text, row.line, document, rating)

    def notices(self) -> list[str]:
        """Say how many documents were left out; empty where none was."""
        return [f"{self._unrated:,} rows have no rating and were left out"] if self._unrated else []
