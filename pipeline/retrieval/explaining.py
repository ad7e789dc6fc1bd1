"""The query plans of the searches that a retriever makes."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import sql

from pipeline.retrieval.session import CorpusSession, Rows

_EXPLAIN = sql.SQL("EXPLAIN (ANALYZE, BUFFERS) {}")


class ExplainingSession(CorpusSession):
    """A session that notes the plan of every search on it, in `plans`, by running it once more.

    `seconds` is what that took.

    Under the very settings and parameters of the search. What is only counted or parsed, beside
    searching, is not noted.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*arguments, **options)
        self.plans: list[str] = []
        self.seconds = 0.0

    def fetch(
        self,
        statement: sql.Composed,
        parameters: Mapping[str, object] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        share: float = 1.0,
    ) -> list[tuple[Any, ...]]:
        """See `CorpusSession.fetch`."""
        searches = self.table.relation.as_string(self.conn) in statement.as_string(self.conn)
        if parameters is not None and searches:
            self._note(statement, parameters, settings or {}, share)
        return super().fetch(statement, parameters, settings=settings, share=share)

    def fetch_each(
        self,
        statement: sql.SQL,
        parameters: Sequence[Mapping[str, object]],
        *,
        settings: Mapping[str, str],
        timeout: float,
        expected: tuple[type[Exception], ...] = (),
    ) -> tuple[list[Rows], Exception | None]:
        """See `CorpusSession.fetch_each`."""
        found, failed = super().fetch_each(
            statement, parameters, settings=settings, timeout=timeout, expected=expected
        )
        for values in parameters[: len(found)]:
            self._note(statement, values, settings, 1.0)
        return found, failed

    def _note(
        self,
        statement: sql.Composable,
        parameters: Mapping[str, object],
        settings: Mapping[str, str],
        share: float,
    ) -> None:
        started = time.monotonic()
        lines = super().fetch(
            _EXPLAIN.format(statement), parameters, settings=settings, share=share
        )
        self.plans.append("\n".join(line for (line,) in lines))
        self.seconds += time.monotonic() - started
