"""Those we depend on, and those who depend on us: the embedding provider, and alerts' receivers."""

from collections.abc import Sequence
from typing import ClassVar

from tests.chaos.faults import Fault

MOST_ASKED = 8
"""Requests: each shard's, should all of them be under way when the first is refused."""


class ProviderFault(Fault):
    """The provider is in a mood for a while."""

    mood: ClassVar[str]
    reasons: ClassVar[Sequence[str]] = ()
    before_start = True
    between = (1, 3)

    def strike(self) -> None:
        self.scene.may_fail += self.reasons
        self.world.provider.mood = self.mood

    def undo(self) -> None:
        self.world.provider.mood = None


class RateLimited(ProviderFault):
    name = "provider: 429 with a short Retry-After"
    mood = "429 with a short Retry-After"


class RateLimitedLong(ProviderFault):
    name = "provider: 429 with a long Retry-After"
    mood = "429 with a long Retry-After"


class ServerFails(ProviderFault):
    name = "provider: 500"
    mood = "500"


class Hang(ProviderFault):
    name = "provider: hangs"
    mood = "hang"


class Truncated(ProviderFault):
    name = "provider: truncated body"
    mood = "truncated body"
    reasons = ("sent a reply of no use",)


class WrongCount(ProviderFault):
    name = "provider: wrong count of vectors"
    mood = "wrong count of vectors"
    reasons = ("sent a reply of no use",)


class Quota(ProviderFault):
    """The run ends as failed, says so, and nobody asks the provider again for it."""

    name = "provider: quota used up"
    mood = "quota"
    reasons = ("quota",)
    until_end = True

    asked_before = 0

    def strike(self) -> None:
        self.asked_before = self.world.provider.answered[self.mood]
        super().strike()

    def settle(self) -> None:
        asked = self.world.provider.answered[self.mood] - self.asked_before
        if asked:
            # Only what was started under it: a schedule's run comes later, from the cache.
            self.scene.must_fail.update(self.scene.run_ids[:1])
        if asked > MOST_ASKED:
            self.scene.complaints.append(f"without money the provider was asked {asked} times")


class ReceiverFault(Fault):
    """The receiver of alerts takes the post, and then answers otherwise than with 200.

    Not until the end: a webhook, which knows repetitions apart, is told until it answers.
    """

    mood: ClassVar[str]
    before_start = True
    between = (5, 9)

    def strike(self) -> None:
        self.world.receiver.mood = self.mood

    def undo(self) -> None:
        self.world.receiver.mood = None


class ReceiverHangs(ReceiverFault):
    name = "receiver takes the alert and hangs"
    mood = "hangs"


class ReceiverErrs(ReceiverFault):
    name = "receiver takes the alert and answers 500"
    mood = "answers 500"


class ReceiverResets(ReceiverFault):
    name = "receiver takes the alert and resets"
    mood = "resets"


class ReceiverRefuses(ReceiverFault):
    name = "receiver answers 429 for a while"
    mood = "answers 429"


OUTSIDE_FAULTS: Sequence[type[Fault]] = (
    RateLimited, RateLimitedLong, ServerFails, Hang, Truncated, WrongCount, Quota,
    ReceiverHangs, ReceiverErrs, ReceiverResets, ReceiverRefuses,
)  # fmt: skip
