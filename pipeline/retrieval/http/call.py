"""What the requests of one batch say together: whether the server is ill, or a question bad."""

from dataclasses import dataclass

from pipeline.errors import PermanentError, RecallwatchError, TransientError

GIVE_UP_AFTER = 5
"""Requests that may fail before one was answered: the server is down, not a question bad."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that got no usable reply, and why, in one line."""

    reason: str


class TryAgainError(RecallwatchError):
    """A try failed for a reason that may pass.

    `asked`: the wait that the server wants, in seconds. `alone`: it may be this request's fault.
    """

    def __init__(self, message: str, asked: float | None = None, *, alone: bool = True) -> None:
        super().__init__(message)
        self.asked = asked
        self.alone = alone


class Call:
    """What the requests of one batch share. `answered`: the server understood one of them."""

    def __init__(self) -> None:
        self.answered = False
        self._given_up: list[str] = []
        self._refused: list[str] = []

    def give_up(self, error: TryAgainError) -> Refused:
        """Count a request that ran out of tries.

        Raises TransientError where it is the server that is ill, and not one question.
        """
        self._given_up.append(str(error))
        if self._is_hopeless(self._given_up) or not error.alone:
            raise TransientError(str(error), retry_after=error.asked)
        return Refused(str(error))

    def refuse(self, reason: str) -> Refused:
        """Count a request that got a status which every other may get too.

        Raises PermanentError where too many got it and none was answered.
        """
        self._refused.append(reason)
        if self._is_hopeless(self._refused):
            raise PermanentError(reason)
        return Refused(reason)

    def end(self) -> None:
        """Raise TransientError or PermanentError where nothing at all was answered."""
        if self.answered:
            return
        if self._given_up:
            raise TransientError(self._given_up[0])
        if self._refused:
            raise PermanentError(self._refused[0])

    def _is_hopeless(self, failed: list[str]) -> bool:
        return not self.answered and len(failed) >= GIVE_UP_AFTER
