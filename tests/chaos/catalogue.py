"""All faults, and which of them strike a run: drawn from the seed, each kind as often as any."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.faults import PROCESS_FAULTS, Fault
from tests.chaos.outside_faults import OUTSIDE_FAULTS, ProviderFault, ReceiverFault
from tests.chaos.people_faults import PEOPLE_FAULTS
from tests.chaos.schedule_faults import SCHEDULE_FAULTS
from tests.chaos.server_faults import SERVER_FAULTS, BrokerFrozen, BrokerFull

CATALOGUE: Sequence[type[Fault]] = (
    *PROCESS_FAULTS, *SERVER_FAULTS, *OUTSIDE_FAULTS, *PEOPLE_FAULTS, *SCHEDULE_FAULTS,
)  # fmt: skip

MOST_A_RUN = 3
ONE_OF_EACH = (ProviderFault, ReceiverFault, BrokerFrozen | BrokerFull)
SPREAD = 1.2
"""Seconds after the start within which faults strike; a calm run takes a little longer."""


@dataclass(frozen=True)
class Planned:
    """A fault, and when it strikes: seconds after the start of the run, below 0 before it."""

    kind: type[Fault]
    at: float


def plans(rng: random.Random, kinds: Sequence[type[Fault]]) -> Iterator[list[Planned]]:
    """Yield one run's faults after the other; all kinds come up before one comes again."""
    deck: list[type[Fault]] = []
    while True:
        drawn: list[type[Fault]] = []
        for _ in range(rng.randint(1, MOST_A_RUN)):
            if not deck:
                deck = list(kinds)
                rng.shuffle(deck)
            if _fits(deck[-1], drawn):
                drawn.append(deck.pop())
        yield sorted((planned(kind, rng) for kind in drawn), key=lambda each: each.at)


def planned(kind: type[Fault], rng: random.Random) -> Planned:
    """Draw the moment at which a fault strikes."""
    return Planned(kind, -0.1 if kind.before_start else round(rng.uniform(0, SPREAD), 2))


def _fits(kind: type[Fault], drawn: Sequence[type[Fault]]) -> bool:
    """Say whether the faults can strike together.

    One server has one mood at a time, and a frozen broker cannot be told that it has room again.
    """
    return kind not in drawn and not any(
        issubclass(kind, group) and issubclass(other, group)
        for group in ONE_OF_EACH
        for other in drawn
    )
