"""One connection to the corpus database, and how each search on it is run."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError
from pipeline.types import Ranking

STATEMENT_TIMEOUT = 60.0
"""Seconds that a statement with all its questions may take, unless told otherwise."""

_LEAST_TIMEOUT = 5.0
"""Seconds that any statement gets, however few questions it holds."""

_SAME_FOR_ALL = {
    "transaction_read_only": "on",
    # Both go by the summed cost of all the questions in a statement: compiling it takes longer
    # than the searches, and a plan that ignores the parameters may ignore the index.
    "jit": "off",
    "plan_cache_mode": "force_custom_plan",
}

_SET_LOCAL = """SELECT set_config(setting.name, setting.value, true)
FROM unnest(%s::text[], %s::text[]) AS setting(name, value)"""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a statement returned: the names of its columns, and its rows."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]


class CorpusSession:
    """A connection in autocommit mode, the corpus table behind it, and the time a search gets.

    `text_config`: the setting [corpus] text_config, for questions without a language.
    `fingerprint` identifies the corpus's content: what was counted of it is kept under that name;
    `hashed`: also that of its vectors, so that they may be kept under it too.
    `statement_timeout`: seconds that a full statement may take; one that holds a share of the
    questions gets that share, five seconds at least. `place` names the table, its database and
    server, without user or password, for error messages.
    """

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        table: CorpusTable,
        *,
        text_config: str | None = None,
        fingerprint: str = "",
        hashed: bool = False,
        statement_timeout: float = STATEMENT_TIMEOUT,
    ) -> None:
        self.conn = conn
        self.table = table
        self.text_config = text_config
        self.fingerprint = fingerprint
        self.hashed = hashed
        self.statement_timeout = statement_timeout
        with corpus_errors(f"search {table}"):
            info = conn.info
            self.place = f"{table} in database {info.dbname} at {info.host}:{info.port}"

    def searched(self, where: str | None) -> str:
        """Say what a search looks at, in words for an error message."""
        return self.place if where is None else f"{self.place} where {' '.join(where.split())}"

    def within(self, tenant: str | None, where: str | None = None) -> sql.Composable:
        """Return the conditions, behind an AND each, that the alias `c` must meet to be searched.

        Within a tenant, whose parameter is `tenant`; None: in the whole corpus. `where` is the
        owner's own condition, from the settings: nothing of a question is in it. Raises CorpusError
        where the corpus has no tenant column.
        """
        return sql.SQL(" ").join([*self._of_tenant(tenant), *_of_owner(where)])

    def _of_tenant(self, tenant: str | None) -> Iterator[sql.Composable]:
        if tenant is None:
            return
        if not self.table.has("tenant"):
            raise CorpusError(
                f"a question has the tenant {tenant!r}, but {self.table} has no tenant column; "
                f"name it in [corpus] tenant"
            )
        yield sql.SQL("AND {} = %(tenant)s").format(self.table.column("tenant", "c"))

    def fetch(
        self,
        statement: sql.Composed,
        parameters: Mapping[str, object] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        share: float = 1.0,
    ) -> list[tuple[Any, ...]]:
        """Run one statement in a read-only transaction with its own settings; binary results.

        Raises psycopg's own errors: the callers know what they mean.
        """
        timeout = max(self.statement_timeout * share, _LEAST_TIMEOUT)
        with self._transaction(timeout, settings or {}):
            cursor = self.conn.cursor(binary=True)
            return cursor.execute(statement, parameters).fetchall()

    def fetch_each(
        self,
        statement: sql.SQL,
        parameters: Sequence[Mapping[str, object]],
        *,
        settings: Mapping[str, str],
        timeout: float,
        expected: tuple[type[Exception], ...] = (),
    ) -> tuple[list[Rows], Exception | None]:
        """Run one statement with each of several parameters, all sent before any is answered.

        One read-only transaction; `timeout`: seconds that each may take. Returns the rows of those
        before the first that fails, and its error, if it is an `expected` one: those behind it have
        to be asked again. Raises psycopg's own errors.
        """
        cursors = [self.conn.cursor(binary=True) for _ in parameters]
        failed = None
        with self._transaction(timeout, settings):
            try:
                with self.conn.pipeline():
                    for cursor, values in zip(cursors, parameters, strict=True):
                        cursor.execute(statement, values, prepare=True)
            except expected as error:
                failed = error
                raise psycopg.Rollback from error
        answered = takewhile(lambda cursor: cursor.pgresult is not None, cursors)
        return [_rows(cursor) for cursor in answered], failed

    def copy_rows(
        self, statement: sql.Composed, types: Sequence[str], parameters: Mapping[str, object]
    ) -> Generator[tuple[Any, ...], None, None]:
        """Yield the rows of a COPY ... TO STDOUT (FORMAT BINARY) as the server sends them.

        `types` say how the columns are read: `bytea` gives any as it was sent. The statement
        timeout includes what the caller does between two rows. Raises psycopg's own errors.
        """
        with (
            self._transaction(self.statement_timeout, {}),
            self.conn.cursor() as cursor,
            cursor.copy(statement, parameters) as copy,
        ):
            copy.set_types(types)
            yield from copy.rows()

    @contextmanager
    def _transaction(self, timeout: float, settings: Mapping[str, str]) -> Iterator[None]:
        """Run a read-only transaction with settings of its own; the timeout is in seconds."""
        local = {**_SAME_FOR_ALL, "statement_timeout": str(round(timeout * 1000)), **settings}
        with self.conn.transaction():
            self.conn.execute(_SET_LOCAL, [list(local), list(local.values())])
            yield


def _of_owner(where: str | None) -> Iterator[sql.Composable]:
    """Write the owner's condition; a comment at its end must not swallow what follows."""
    if where is not None:
        yield sql.SQL("AND ({}\n)").format(sql.SQL(where.replace("%", "%%")))


def _rows(cursor: psycopg.Cursor[Any]) -> Rows:
    """Return the rows; raises psycopg.ProgrammingError where it is none of a SELECT."""
    if cursor.description is None:
        raise psycopg.ProgrammingError("the statement returns no rows: it must be a SELECT")
    return Rows([column.name for column in cursor.description], cursor.fetchall())


def rankings(rows: Iterable[tuple[int, str, float]], questions: int) -> list[Ranking]:
    """Gather rows (number of the question from 1, key, score), best first, into rankings.

    A question without rows gets an empty ranking.
    """
    keys: list[list[str]] = [[] for _ in range(questions)]
    scores: list[list[float]] = [[] for _ in range(questions)]
    for number, key, score in rows:
        keys[number - 1].append(key)
        scores[number - 1].append(score)
    return [Ranking(*columns) for columns in zip(keys, scores, strict=True)]


def at_least(min_score: float | None, ranking: Ranking) -> Ranking:
    """Return a ranking without the results of a lower score; None: as it is."""
    if min_score is None:
        return ranking
    kept = sum(score >= min_score for score in ranking.scores)
    return Ranking(ranking.keys[:kept], ranking.scores[:kept], ranking.stages)
