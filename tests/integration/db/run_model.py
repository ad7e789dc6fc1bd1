"""A run and its shards as docs/state_machine.md draws them, in plain Python: the oracle.

Times are what matters of them: whether they have come. Each method does what the one of its name
in `db.run_states`, `db.shards`, `db.results` or `db.exact` says, and returns the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from db.shards import Claim

ATTEMPTS = 3

When = Literal["ahead", "past"] | None


@dataclass(slots=True)
class ShardModel:
    """A shard; `results` are the outcomes of its questions, once they are stored."""

    number: int
    kind: str
    first: int
    last: int
    state: str = "pending"
    attempts: int = 0
    token: int = 0
    lease: When = None
    next: When = None
    error: str | None = None
    results: list[str] | None = None

    @property
    def is_open(self) -> bool:
        return self.state in {"pending", "leased"}

    @property
    def wants_worker(self) -> bool:
        """Nobody has it, and it need not wait."""
        waits = self.next == "ahead" if self.state == "pending" else self.lease == "ahead"
        return self.is_open and not waits

    def is_held_by(self, claim: Claim) -> bool:
        return self.state == "leased" and self.token == claim.token


@dataclass(slots=True)
class RunRow:
    """A run's own row; `late`: by so many minutes its deadline has passed.

    `counts` are those of scored, failed and ineligible questions.
    """

    status: str = "queued"
    started: bool = False
    late: int = 0
    reduce_attempts: int = 0
    reduce_next: When = None
    reduce_error: str | None = None
    verdict: str | None = None
    counts: Sequence[int | None] = field(default_factory=lambda: [None] * 3)

    @property
    def is_unfinished(self) -> bool:
        return self.status in {"queued", "running"}


@dataclass(slots=True)
class RunModel:
    """A run with its shards, by number."""

    shards: list[ShardModel]
    run: RunRow = field(default_factory=RunRow)

    @property
    def all_done(self) -> bool:
        return all(shard.state == "done" for shard in self.shards)

    @property
    def is_reducible(self) -> bool:
        """It lacks its record only, and no reducer has it."""
        return self.run.is_unfinished and self.all_done and self.run.reduce_next != "ahead"

    @property
    def outcomes(self) -> list[str]:
        """Outcomes of the questions that count."""
        served = [shard for shard in self.shards if shard.kind == "served"]
        return [outcome for shard in served for outcome in shard.results or ()]

    def turn_has_come(self, shard: ShardModel) -> bool:
        served = [other for other in self.shards if other.kind == "served"]
        return shard.kind == "served" or all(other.state == "done" for other in served)

    def claim(self, number: int) -> tuple[int, int] | None:
        """Return token and attempt."""
        shard = self.shards[number]
        to_be_had = (
            self.run.is_unfinished
            and shard.wants_worker
            and shard.attempts < ATTEMPTS
            and self.turn_has_come(shard)
        )
        if not to_be_had:
            return None
        shard.state, shard.lease, shard.next = "leased", "ahead", None
        shard.token += 1
        shard.attempts += 1
        if self.run.status == "queued":
            self.run.status, self.run.started = "running", True
        return shard.token, shard.attempts

    def store(self, claim: Claim, outcomes: list[str]) -> bool | None:
        shard = self.shards[claim.number]
        if not shard.is_held_by(claim):
            return None
        shard.state, shard.lease, shard.error = "done", None, None
        shard.results = outcomes
        return self.run.is_unfinished and self.all_done

    def release(self, claim: Claim, when: When, *, counted: bool) -> bool:
        shard = self.shards[claim.number]
        if not shard.is_held_by(claim):
            return False
        shard.state, shard.lease, shard.next, shard.error = "pending", None, when, "handed back"
        shard.attempts -= 0 if counted else 1
        return True

    def hold_for_embedding(self, number: int) -> tuple[int, int] | None:
        shard = self.shards[number]
        free = shard.state == "pending" and shard.next != "ahead"
        if not (self.run.is_unfinished and free):
            return None
        shard.next = "ahead"
        return shard.first, shard.last

    def end_hold(self, number: int, *, postponed: bool) -> bool:
        """Say whether the shard waits for vectors."""
        shard = self.shards[number]
        if not self.run.is_unfinished or shard.state != "pending":
            return False
        shard.next = "ahead" if postponed else None
        shard.error = "postponed" if postponed else shard.error
        return True

    def end(self, status: str) -> bool:
        """Do what `fail` and `cancel` do."""
        if not self.run.is_unfinished:
            return False
        for shard in self.shards:
            if shard.is_open:
                shard.state, shard.lease, shard.error = "failed", None, status
        self.run.status, self.run.verdict = status, "unmeasured"
        return True

    def fail_claimed(self, claim: Claim) -> bool:
        return self.shards[claim.number].is_held_by(claim) and self.end("failed")

    def resume(self) -> bool:
        if self.run.status not in {"failed", "cancelled"}:
            return False
        for shard in self.shards:
            if shard.state == "failed":
                shard.state, shard.attempts, shard.next, shard.error = "pending", 0, None, None
        self._reopen()
        return True

    def retry_failed(self) -> bool:
        if self.run.status != "completed":
            return False
        for shard in self.shards:
            if shard.kind == "exact" or "failed" in (shard.results or ()):
                shard.state, shard.attempts, shard.next, shard.error = "pending", 0, None, None
                shard.results = None
        self._reopen()
        return True

    def _reopen(self) -> None:
        status = "running" if self.run.started else "queued"
        self.run = RunRow(status=status, started=self.run.started)

    def claim_reduction(self) -> int | None:
        if not self.is_reducible or self.run.reduce_attempts >= ATTEMPTS:
            return None
        self.run.reduce_attempts += 1
        self.run.reduce_next = "ahead"
        return self.run.reduce_attempts

    def release_reduction(self, attempt: int, when: When) -> bool:
        if not self.run.is_unfinished or attempt != self.run.reduce_attempts:
            return False
        self.run.reduce_next, self.run.reduce_error = when, "raised"
        return True

    def complete(self) -> bool:
        """Do what the reducer does under the run's lock."""
        if not self.run.is_unfinished or not self.all_done:
            return False
        named = ("scored", "failed", "ineligible")
        self.run.status, self.run.verdict = "completed", "ok"
        self.run.counts = [self.outcomes.count(name) for name in named]
        return True

    def give_up(self) -> bool:
        for shard in self.shards:
            if shard.kind == "exact" and shard.is_open:
                shard.state, shard.lease, shard.next = "done", None, None
                shard.error = "given up"
        return self.run.is_unfinished and self.all_done

    def due(self) -> list[int]:
        """Return the numbers of the shards that want a worker."""
        wanting = [
            shard for shard in self.shards if shard.wants_worker and self.turn_has_come(shard)
        ]
        return [shard.number for shard in wanting] if self.run.is_unfinished else []

    def _is_spent(self, shard: ShardModel) -> bool:
        expired = shard.state == "leased" and shard.lease == "past"
        return shard.attempts >= ATTEMPTS and (shard.state == "pending" or expired)

    def exhausted(self) -> bool:
        spent = [shard for shard in self.shards if self._is_spent(shard)]
        return self.run.is_unfinished and any(shard.kind == "served" for shard in spent)

    def hopeless(self) -> bool:
        """Say whether exact search will not be done."""
        exact = [shard for shard in self.shards if shard.kind == "exact"]
        spent = any(self._is_spent(shard) for shard in exact)
        left = any(shard.is_open and self.turn_has_come(shard) for shard in exact)
        return self.run.is_unfinished and (spent or (self.run.late > 0 and left))

    def reducible(self) -> bool:
        return self.is_reducible and self.run.reduce_attempts < ATTEMPTS

    def irreducible(self) -> bool:
        return self.is_reducible and self.run.reduce_attempts >= ATTEMPTS

    def overdue(self) -> bool:
        """A run that lacks its record only gets ten minutes more."""
        allowed = 10 if self.all_done else 0
        return self.run.is_unfinished and self.run.late > allowed
