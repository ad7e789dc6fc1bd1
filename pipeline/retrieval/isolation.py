"""Keeping one question's trouble from the others that share its statement.

PostgreSQL answers a statement as a whole: a single question that it refuses, or that takes too
long, would cost the whole batch. Such a statement is asked again in halves, down to the question
that causes it, which becomes a Failure; the others keep their rankings.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
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


def ask_in_groups(
    positions: Iterable[int],
    group_of: Callable[[int], Group],
    size: int,
    ask: Callable[[Group, Sequence[int]], list[Ranking]],
) -> dict[int, Ranking | Failure]:
    """Ask for the questions at these positions of one batch, a group and `size` at a time.

    `ask` gets a group and positions of its questions; it returns a ranking each, in order.
    Returns position -> ranking, or the Failure of a question that could not be asked even alone.

    Raises what `ask` raises and what is not about one question: TransientError after more timeouts
    than single questions explain, CorpusError where the stored vectors are not of one length.
    """
    members: defaultdict[Group, list[int]] = defaultdict(list)
    for position in positions:
        members[group_of(position)].append(position)
    isolation = _Isolation()
    answers: dict[int, Ranking | Failure] = {}
    for group, together in members.items():
        for start in range(0, len(together), size):
            some = together[start : start + size]
            found = isolation.answers(partial(ask, group), some)
            answers.update(zip(some, found, strict=True))
    return answers


class _Isolation:
    """Asks in halves what cannot be asked together, and counts a batch's timeouts."""

    def __init__(self) -> None:
        self._timeouts = 0

    def answers(
        self, ask: Callable[[Sequence[int]], list[Ranking]], positions: Sequence[int]
    ) -> list[Ranking | Failure]:
        try:
            return [*ask(positions)]
        except _ONE_QUESTION as error:
            self._check_cause(error)
            if len(positions) == 1:
                return [Failure(reason(error))]
        middle = len(positions) // 2
        return [
            *self.answers(ask, positions[:middle]),
            *self.answers(ask, positions[middle:]),
        ]

    def _check_cause(self, error: Exception) -> None:
        """Raise where the error is not about one question after all."""
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


def reason(error: Exception) -> str:
    """Say in one line why a question could not be searched for."""
    if isinstance(error, psycopg.errors.QueryCanceled):
        return "the search ran into its time limit"
    if isinstance(error, UnicodeEncodeError):
        return "the question holds characters that are not valid Unicode"
    sentence = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return f"the question cannot be searched for: {sentence or error}"
