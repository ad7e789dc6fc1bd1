"""Lexemes: what full text search compares, how many chunks hold each, how a query is made of them.

A lexeme is a word as a text search configuration leaves it: lower case, stemmed, no stop word.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

from psycopg import sql

from pipeline.retrieval.session import CorpusSession

KEPT_AT_LEAST = 3
"""Lexemes that a question keeps, the rarest ones, where all of them are frequent."""

_REMEMBERED = 8

_COUNTING = 10.0
"""Counting reads the whole corpus: it may take so many times as long as a statement."""


class FrequentLexemes:
    """Counts a corpus's frequent lexemes once, and remembers them.

    Counting takes seconds for 100,000 chunks, so a worker process holds one of these and hands it
    to every retriever that it builds.
    """

    def __init__(self) -> None:
        self._counted: dict[Hashable, Mapping[str, int]] = {}

    def of(
        self,
        session: CorpusSession,
        document: sql.Composable,
        chunks: sql.Composable,
        *,
        share: float,
        least: int,
    ) -> Mapping[str, int]:
        """Return lexeme -> chunks that hold it, where these are over `share` of all and `least`.

        `document` is the SQL expression of a chunk's tsvector, with the table's alias `c`. Only
        those chunks are counted that meet the condition `chunks`, behind an AND.
        """
        known_by = (
            session.place,
            session.fingerprint,
            document.as_string(session.conn),
            chunks.as_string(session.conn),
            share,
            least,
        )
        if known_by not in self._counted:
            if len(self._counted) == _REMEMBERED:
                del self._counted[next(iter(self._counted))]
            self._counted[known_by] = _count(session, document, chunks, share, least)
        return self._counted[known_by]


def _count(
    session: CorpusSession,
    document: sql.Composable,
    chunks: sql.Composable,
    share: float,
    least: int,
) -> Mapping[str, int]:
    if share >= 1:
        return {}
    counted = sql.SQL("FROM {} AS c WHERE true {}").format(session.table.relation, chunks)
    [(total,)] = session.fetch(sql.SQL("SELECT count(*) {}").format(counted), share=_COUNTING)
    threshold = max(share * total, least)
    if threshold >= total:
        return {}
    documents = sql.SQL("SELECT {} {}").format(document, counted).as_string(session.conn)
    counts = sql.SQL("SELECT word, ndoc FROM ts_stat({}) WHERE ndoc > {}").format(
        sql.Literal(documents), sql.Literal(threshold)
    )
    return dict(session.fetch(counts, share=_COUNTING))


def without_frequent(lexemes: Sequence[str], frequent: Mapping[str, int]) -> list[str]:
    """Leave out the frequent lexemes; where all are, keep the rarest `KEPT_AT_LEAST`."""
    kept = [lexeme for lexeme in lexemes if lexeme not in frequent]
    if kept:
        return kept
    return sorted(lexemes, key=lambda lexeme: (frequent[lexeme], lexeme))[:KEPT_AT_LEAST]


def tsquery(lexemes: Sequence[str], match: Literal["any", "all"]) -> str:
    """Return the text form of a tsquery: each lexeme quoted, joined by OR (any) or AND (all)."""
    operator = " | " if match == "any" else " & "
    return operator.join(_quoted(lexeme) for lexeme in lexemes)


def _quoted(lexeme: str) -> str:
    """Quote a lexeme for a tsquery: single quotes and backslashes are doubled."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
