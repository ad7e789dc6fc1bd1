"""The query plans of the searches that a retriever makes."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import sql

from pipeline.retrieval.session import CorpusSession, Rows

_EXPLAIN = sql.SQL("EXPLAIN (ANALYZE, BUFFERS) {}")


class ExplainingSession(CorpusSession):
    """A session that notes the plan of every search on it, in `plans`, by running it once more.

    Under the very settings and parameters of the search. What is only counted or parsed, beside
    searching, is not noted.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*arguments, **options)
        self.plans: list[str] = []

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
            explain = _EXPLAIN.format(statement)
            lines = super().fetch(explain, parameters, settings=settings, share=share)
            self.plans.append("\n".join(line for (line,) in lines))
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
            lines = super().fetch(_EXPLAIN.format(statement), values, settings=settings)
            self.plans.append("\n".join(line for (line,) in lines))
        return found, failed
