"""What PostgreSQL refuses of the owner's statement: the question, or the statement itself."""

from collections.abc import Iterable

import psycopg

from pipeline.errors import TransientError
from pipeline.retrieval.isolation import reason
from pipeline.types import Failure, Ranking

OF_ONE_QUESTION = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.InternalError,
    psycopg.NotSupportedError,
    psycopg.ProgrammingError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.QueryCanceled,
)
"""What a single question can cause in a statement that serves others.

A function of the owner's may raise anything; `to_tsquery` calls a question a syntax error, and an
unknown language has no text search configuration. What is left are broken connections and servers
that are full.
"""

LONGEST_WAIT = 120.0
"""Seconds that a batch's questions may lose to their time limit; a shard's lease is 300."""

PROVES = 3
"""Questions that have to fail, and none be answered, before the statement is what is wrong."""


class Refusals:
    """The questions of one batch that failed; `timeout`: seconds that each had."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._waited = 0.0
        self._first: psycopg.Error | None = None

    def failure(self, error: Exception) -> Failure:
        """Return the failure of a question that ended with one of `OF_ONE_QUESTION`.

        Raises TransientError after more time limits than single questions explain.
        """
        if isinstance(error, psycopg.errors.QueryCanceled):
            self._waited += self._timeout
            if self._waited > max(LONGEST_WAIT, self._timeout):
                raise TransientError(
                    f"questions of one batch ran into their time limit for {self._waited:g} s; the"
                    " database is too slow for them: look for a missing index, or for its load"
                ) from error
        if self._first is None and isinstance(error, psycopg.Error):
            self._first = error
        return Failure(reason(error))

    def raise_where_none_was_answered(self, answers: Iterable[Ranking | Failure]) -> None:
        """Raise the first error, as psycopg did, where the statement serves no question."""
        each = list(answers)
        answered = any(isinstance(one, Ranking) for one in each)
        if self._first is not None and len(each) >= PROVES and not answered:
            raise self._first
