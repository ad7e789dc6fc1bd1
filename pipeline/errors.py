"""Every error recallwatch raises on purpose, under one root.

A message is written for the person who reads it in a terminal: what was wrong, where, and what
to do. Vendor errors (psycopg, redis, openai, httpx) are mapped to these where they enter.

The class says what the caller may do about it:

* `UsageError` and its kin: a person has to change something. Never retried. Exit code 2.
* `TransientError`: the same call may work later. Retried within bounds. When a command meets it
  there is a server to start or an address to correct: exit code 2.
* `PermanentError`: the outside said no for good (bad key, no quota, missing column). Never
  retried; it fails the run, which is then unmeasured. Exit code 3.
"""

from typing import ClassVar


class RecallwatchError(Exception):
    """Root of all errors raised on purpose; `exit_code` is what the command line returns."""

    exit_code: ClassVar[int] = 3


class UsageError(RecallwatchError):
    """The command was asked for something that cannot be: a wrong option, an unknown name."""

    exit_code = 2


class SettingsError(UsageError):
    """recallwatch.toml or the environment holds a wrong key, type or value."""


class InputError(UsageError):
    """A file or a stored set cannot be used; the message names the file and the line."""


class CorpusError(UsageError):
    """The corpus table is missing, empty, or not of the shape that the settings say."""


class TransientError(RecallwatchError):
    """A server did not answer or asked for patience; the same call may work later.

    `retry_after` is the number of seconds the server asked for, where it said so.
    """

    exit_code = 2

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PermanentError(RecallwatchError):
    """The outside refused for a reason that waiting does not cure."""


class UnmeasuredError(RecallwatchError):
    """A run could not be measured, or did not finish in the time it was given."""
