"""Keeping one question's trouble from the others that share its statement.

PostgreSQL answers a statement as a whole: a single question that it refuses, or that takes too
long, would cost the whole batch. Such a statement is asked again in halves, down to the question
that causes it, which becomes a Failure; the others keep their rankings.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import psycopg

from pipeline.errors import CorpusError, TransientError
from pipeline.types import Failure, Ranking

Group = TypeVar("Group", bound=Hashable)

MAX_TIMEOUTS = 24
"""Searches of one batch that may time out: three slow questions in a statement of a hundred.

More means that the server is slow, not a question; going on would outlast the shard's lease.
"""

_ONE_QUESTION = (
    psycopg.DataError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.QueryCanceled,
    UnicodeEncodeError,
)


def groups(
    positions: Iterable[int], group_of: Callable[[int], Group], size: int
) -> Iterator[tuple[Group, list[int]]]:
    """Yield the positions of each group, at most `size` at a time."""
    members: defaultdict[Group, list[int]] = defaultdict(list)
    for position in positions:
        members[group_of(position)].append(position)
    for group, together in members.items():
        for start in range(0, len(together), size):
            yield group, together[start : start + size]


class Isolation:
    """Asks for the rankings of questions, in halves where they cannot be asked together.

    One object serves one batch: it counts the batch's timeouts.
    """

    def __init__(self) -> None:
        self._timeouts = 0

    def answers(
        self, ask: Callable[[Sequence[int]], list[Ranking]], positions: Sequence[int]
    ) -> list[Ranking | Failure]:
        """Return what `ask` returns for these positions, with a Failure where it cannot.

        `ask` returns one ranking a position, in order. Raises TransientError after more timeouts
        than single questions explain, CorpusError where the stored vectors are not of one length.
        """
        try:
            return [*ask(positions)]
        except _ONE_QUESTION as error:
            self._concerns_one_question(error)
            if len(positions) == 1:
                return [Failure(_reason(error))]
        middle = len(positions) // 2
        return [
            *self.answers(ask, positions[:middle]),
            *self.answers(ask, positions[middle:]),
        ]

    def _concerns_one_question(self, error: Exception) -> None:
        """Raise where the error is not about a question after all."""
        if isinstance(error, psycopg.errors.QueryCanceled):
            self._timeouts += 1
            if self._timeouts > MAX_TIMEOUTS:
                raise TransientError(
                    f"{self._timeouts} searches of one batch ran into their time limit; the "
                    f"database is too slow for them: look for a missing index, or for its load"
                ) from error
        if "different vector dimensions" in str(error):
            raise CorpusError(
                f"chunks have vectors of several lengths ({error}); embed them with one model"
            ) from error


def _reason(error: Exception) -> str:
    """Say in one line why a question could not be searched for."""
    if isinstance(error, psycopg.errors.QueryCanceled):
        return "the search ran into its time limit"
    if isinstance(error, UnicodeEncodeError):
        return "the question holds characters that are not valid Unicode"
    sentence = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return f"the question cannot be searched for: {sentence or error}"
