"""What every channel promises: one try, and an honest answer about what became of it."""

from dataclasses import dataclass
from typing import Protocol

from pipeline.alerts.message import Alert


@dataclass(frozen=True, slots=True)
class Sent:
    """The other side confirmed that it has the alert; `note` says what was odd about it."""

    note: str | None = None


@dataclass(frozen=True, slots=True)
class NotSent:
    """The alert certainly did not arrive, and why, in one line without secrets.

    `permanent`: the same call will fail again until a person changes something. Otherwise it may
    be tried later, not before `retry_after` seconds where the server asked for that.
    """

    reason: str
    retry_after: float | None = None
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """The alert may or may not have arrived: only a channel that `may_repeat` is tried again."""

    reason: str


Delivery = Sent | NotSent | Unknown


class Channel(Protocol):
    """A way to reach people or programs.

    An adapter tries once and never again: the outbox decides about another try. Nothing is
    logged here: neither addresses, which are secrets, nor texts.
    """

    @property
    def name(self) -> str:
        """The channel's name in the settings."""

    @property
    def may_repeat(self) -> bool:
        """Whether the receiver can tell a repetition by the alert's idempotency id."""

    def deliver(self, alert: Alert) -> Delivery:
        """Try once to hand the alert over; no failure outside is raised, each is an answer."""
