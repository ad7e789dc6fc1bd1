"""Search by a statement of the owner's own: prepared once, run once a question, sent together."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from pgvector import Vector
from pgvector.psycopg.vector import VectorBinaryDumper
from psycopg import sql
from psycopg.types import TypeInfo

from pipeline.corpus.errors import corpus_errors
from pipeline.errors import CorpusError
from pipeline.retrieval.refusals import OF_ONE_QUESTION, Refusals
from pipeline.retrieval.session import CorpusSession, Rows
from pipeline.retrieval.strategies.sql import PARAMETERS, SqlStrategy
from pipeline.retrieval.vector import NO_DIRECTION, checked_vectors, with_direction
from pipeline.text import is_storable
from pipeline.types import Failure, QueryBatch, Ranking, make_key

QUESTIONS_AT_ONCE = 100
"""Questions whose statements share a transaction and are sent before the first is answered."""

MOST_ROWS = 10_000
"""Rows for one question. A statement with more has no LIMIT: a hundred at once fill the memory."""

UNREADABLE = Failure("the question holds characters that PostgreSQL cannot read")

PARTS = ("document_id", "chunk_index")
"""Columns that make the key where there is no column `key`."""


class SqlRetriever:
    """Asks the corpus's database in the owner's words. Scores are the statement's own.

    Parameters are bound, never pasted. The transaction is read-only, and each question has its own
    time limit. More than `limit` rows are cut. Without a column `score` the n-th row has 1 / n.
    """

    def __init__(self, name: str, session: CorpusSession, strategy: SqlStrategy) -> None:
        self._name = name
        self._session = session
        self._strategy = strategy
        self._names = frozenset(strategy.parameters.names)
        self.statement = _bound(strategy)
        if self.needs_vectors:
            with corpus_errors(f"search {session.place}"):
                _register_vector(session.conn)

    @property
    def needs_vectors(self) -> bool:
        """Whether the statement asks for `:vector`."""
        return self._strategy.needs_vectors

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. What PostgreSQL refuses of a question is its Failure.

        Raises CorpusError where the statement serves none of several questions, does not return
        the columns that it must, or has no `:tenant` for a question with a tenant.
        """
        self._check_tenants(batch)
        positions: Sequence[int] = range(len(batch))
        if self.needs_vectors:
            positions = with_direction(checked_vectors(self._session.table, batch))
        positions = [each for each in positions if is_storable(batch.texts[each])]
        with corpus_errors(f"run the statement of strategy {self._name} on {self._session.place}"):
            answers = self._ask(batch, positions, limit)
        return [
            answers.get(position, NO_DIRECTION if is_storable(text) else UNREADABLE)
            for position, text in enumerate(batch.texts)
        ]

    def _ask(
        self, batch: QueryBatch, positions: Sequence[int], limit: int
    ) -> Mapping[int, Ranking | Failure]:
        """Return an answer for each position; one that fails costs the others nothing."""
        answers: dict[int, Ranking | Failure] = {}
        refusals = Refusals(self._strategy.timeout)
        while some := positions[len(answers) :][:QUESTIONS_AT_ONCE]:
            found, error = self._fetch([self._values(batch, each, limit) for each in some])
            answers.update(zip(some, (self._ranking(rows, limit) for rows in found), strict=False))
            if error is not None:
                answers[some[len(found)]] = refusals.failure(error)
        refusals.raise_where_none_was_answered(answers.values())
        return answers

    def _fetch(self, asked: Sequence[Mapping[str, object]]) -> tuple[list[Rows], Exception | None]:
        settings, timeout = self._strategy.settings, self._strategy.timeout

        def fetch() -> tuple[list[Rows], Exception | None]:
            return self._session.fetch_each(
                self.statement, asked, settings=settings, timeout=timeout, expected=OF_ONE_QUESTION
            )

        found, error = fetch()
        if isinstance(error, psycopg.errors.FeatureNotSupported):
            # It was prepared before a column got another type. It no longer is: psycopg forgets
            # what it prepared with a transaction that is rolled back.
            return fetch()
        return found, error

    def _check_tenants(self, batch: QueryBatch) -> None:
        """Refuse to search for a tenant's question in all tenants' chunks."""
        if "tenant" in self._names or self._strategy.tenant == "ignore":
            return
        tenant = next((tenant for tenant in batch.tenants if tenant is not None), None)
        if tenant is not None:
            raise CorpusError(
                f"a question has the tenant {tenant!r}, but the statement of strategy {self._name}"
                ' has no :tenant: filter by it, or set tenant = "ignore"'
            )

    def _values(self, batch: QueryBatch, position: int, limit: int) -> dict[str, object]:
        """Return what the statement asks for of one question."""
        values = {
            "question": batch.texts[position],
            "k": limit,
            "tenant": batch.tenants[position] if self._strategy.tenant == "question" else None,
            "language": batch.languages[position],
        }
        if self.needs_vectors and batch.vectors is not None:
            values["vector"] = Vector(batch.vectors[position])
        return {name: values[name] for name in self._names}

    def _ranking(self, found: Rows, limit: int) -> Ranking | Failure:
        """Read the rows of one question; raises CorpusError for columns that cannot be read."""
        if len(found.rows) > MOST_ROWS:
            raise CorpusError(
                f"the statement of strategy {self._name} returns {len(found.rows):,} rows for one"
                f" question, of which {limit} are wanted: end it with LIMIT :k"
            )
        places = {name: place for place, name in enumerate(found.columns)}
        rows = found.rows[:limit]
        if "key" in places:
            keys = [row[places["key"]] for row in rows]
        elif all(part in places for part in PARTS):
            document, chunk = (places[part] for part in PARTS)
            keys = [_joined(row[document], row[chunk]) for row in rows]
        else:
            raise CorpusError(
                f"the statement of strategy {self._name} returns {', '.join(found.columns)}: name"
                " a column key, or two document_id and chunk_index"
            )
        scores = [row[places["score"]] for row in rows] if "score" in places else None
        return self._checked(keys, scores)

    def _checked(self, keys: Sequence[Any], scores: Sequence[Any] | None) -> Ranking | Failure:
        if any(key is None for key in keys):
            return Failure(f"the statement of strategy {self._name} returns a key that is NULL")
        if scores is None:
            scores = [1 / rank for rank in range(1, len(keys) + 1)]
        try:
            numbers = [float(score) for score in scores]
        except (TypeError, ValueError):
            numbers = [math.nan]
        if not all(map(math.isfinite, numbers)):
            return Failure(
                f"the statement of strategy {self._name} returns a score that is no number"
            )
        return Ranking([str(key) for key in keys], numbers)


def _bound(strategy: SqlStrategy) -> sql.SQL:
    """Return the statement in psycopg's words: a typed placeholder for each parameter."""
    text = strategy.parameters.written(
        lambda text: text.replace("%", "%%"), lambda name: f"%({name})s::{PARAMETERS[name]}"
    )
    # The owner's own statement, from the settings: nothing of a question is in it.
    return sql.SQL(text)


def _register_vector(conn: psycopg.Connection[Any]) -> None:
    """Let a connection send a Vector in binary; raises CorpusError where it has no such type."""
    info = TypeInfo.fetch(conn, "vector")
    if info is None:
        raise CorpusError(
            f"database {conn.info.dbname} has no type vector on its search path, and :vector is one"
        )
    dumper = type("VectorDumper", (VectorBinaryDumper,), {"oid": info.oid})
    conn.adapters.register_dumper(Vector, dumper)


def _joined(document: object, chunk: Any) -> str | None:  # noqa: ANN401 - of any type
    """Return the key of the two columns; None where one of them is NULL."""
    return None if document is None or chunk is None else make_key(str(document), chunk)
