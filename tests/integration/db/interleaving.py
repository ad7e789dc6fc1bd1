"""Two sessions that act by turns, with a model beside them: what the tables should say.

A transaction of one may stay open while the other acts. What the other does either succeeds, and
then it is as if the open one had not begun, or has to wait, which a short lock timeout shows: then
it is as if it had not been tried.
"""

import copy
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import psycopg
from hypothesis import HealthCheck, Phase, settings
from sqlalchemy import text

from db.session import Database, Session
from pipeline.errors import TransientError

EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "50"))
"""Histories to try with each machine; set it higher for a longer search."""

at_length = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
"""To shrink a history would take minutes."""

LONGEST_WAIT = "50ms"

Model = TypeVar("Model")
Returned = TypeVar("Returned")


class _UndoneError(Exception):
    """A transaction is to be rolled back."""


@dataclass(slots=True)
class _Open(Generic[Model]):
    """A transaction that is not committed: what the model was before, and what it makes of it."""

    who: int
    transaction: AbstractContextManager[Session]
    before: Model
    after: Model
    then: Callable[[], object]


class Interleaving(Generic[Model]):
    """The sessions, 0 and 1, and the model: a dataclass whose fields are rows, or lists of rows."""

    def __init__(self, url: str, model: Model) -> None:
        self.model = model
        self._databases = [Database(url), Database(url)]
        self._open: _Open[Model] | None = None

    @property
    def is_open(self) -> bool:
        return self._open is not None

    def act(
        self,
        who: int,
        act: Callable[[Session], Returned],
        expect: Callable[[Model], Returned],
        *,
        stay_open: bool = False,
        skips: bool = False,
        then: Callable[[Returned], object] = lambda _: None,
    ) -> Returned | None:
        """Do `act` in a transaction and see that it returns what `expect` does to the model.

        `who` is the session that would like to; the one with an open transaction leaves it to the
        other. `then` gets what was returned once it is committed. None: it would have waited, or
        it `skips` what is locked.
        """
        if self._open is not None:
            who = 1 - self._open.who
        after = copy.deepcopy(self.model)
        expected = expect(after)
        transaction = self._databases[who].begin()
        session = transaction.__enter__()
        try:
            session.execute(text(f"SET LOCAL lock_timeout = '{LONGEST_WAIT}'"))
            returned = act(session)
        except BaseException as error:
            _roll_back(transaction, error)
            if self.is_open and _waited(error):
                return None
            raise
        if skips and self.is_open and not returned:
            _roll_back(transaction, _UndoneError())
            return None
        opened = _Open(who, transaction, self.model, after, lambda: then(returned))
        if stay_open and self._open is None:
            self._open = opened
        else:
            self._commit(opened)
        assert returned == expected, f"it returned {returned!r}, and {expected!r} was right"
        return returned

    def end(self, *, commit: bool) -> None:
        """End the open transaction, if there is one."""
        opened, self._open = self._open, None
        if opened is None:
            return
        if commit:
            self._commit(opened)
        else:
            _roll_back(opened.transaction, _UndoneError())

    def close(self) -> None:
        self.end(commit=False)
        for database in self._databases:
            database.close()

    def _commit(self, opened: _Open[Model]) -> None:
        opened.transaction.__exit__(None, None, None)
        self.model = _merged(opened.before, opened.after, self.model)
        opened.then()


def _merged(before: Model, after: Model, now: Model) -> Model:
    """Return the model with what a transaction changed from `before` to `after` put into `now`."""
    merged = copy.deepcopy(now)
    for name in (each.name for each in fields(before)):  # type: ignore[arg-type]  # Model is a dataclass
        was, becomes, is_now = (getattr(each, name) for each in (before, after, now))
        if isinstance(was, list):
            rows = [_row(*three) for three in zip(was, becomes, is_now, strict=True)]
            setattr(merged, name, rows)
        else:
            setattr(merged, name, _row(was, becomes, is_now))
    return merged


def _row(was: Any, becomes: Any, is_now: Any) -> Any:  # noqa: ANN401 - a row of any model
    if becomes == was:
        return is_now
    assert is_now == was, f"two transactions changed a row at once: {is_now} and {becomes}"
    return becomes


def _roll_back(transaction: AbstractContextManager[Session], error: BaseException) -> None:
    with suppress(BaseException):
        transaction.__exit__(type(error), error, error.__traceback__)


def _waited(error: BaseException) -> bool:
    """Say whether it failed because it would have waited for a lock."""
    cause = error.__cause__ if isinstance(error, TransientError) else error
    return isinstance(getattr(cause, "orig", cause), psycopg.errors.LockNotAvailable)
