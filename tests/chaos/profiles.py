"""How long the waits of a run of the suite are: short ones for CI, real ones for a release."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Profile:
    """What a world is set to; all times in seconds.

    `attempts` are a shard's tries; `broker_frozen` is how long a frozen broker stays so, `slack`
    how much later than its deadline a run may end before it counts as hung. `small_disk`: give
    PostgreSQL a disk that can be filled, where one can be mounted.
    """

    name: str
    lease: int = 3
    attempts: int = 15
    deadline: int = 60
    slack: float = 20.0
    broker_frozen: float = 6.0
    small_disk: bool = True

    @property
    def longer_than_lease(self) -> float:
        return self.lease + 1.5


CI = Profile("ci")
RELEASE = Profile("release", deadline=150, broker_frozen=60.0)
# A scenario of a mutant ends in a failure more often than not: it should not take long to tell.
SCENARIO = Profile("scenario", lease=2, attempts=3, deadline=24, slack=6.0)

PROFILES = {profile.name: profile for profile in (CI, RELEASE)}


def soaking(profile: Profile) -> Profile:
    """Return a profile without a reason to fail: nothing is broken in a soak, and much stored."""
    return replace(profile, name="soak", lease=20, small_disk=False)
