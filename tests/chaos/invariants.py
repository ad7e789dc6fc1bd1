"""What must hold of every change that was logged, whatever was broken meanwhile.

Each invariant is a function from the changes of a run to the violations it sees. Defence in depth
hides many a fault from the final numbers: these see it all the same.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from tests.chaos.audit import APPLICATION, Change
from tests.chaos.receiver import Taken

FINISHED = ("completed", "failed", "cancelled")
UNFINISHED = ("queued", "running")

SHARD_MOVES = {
    (None, "pending"), ("pending", "leased"), ("leased", "pending"), ("leased", "done"),
    ("pending", "failed"), ("leased", "failed"), ("failed", "pending"),
    # Taken over, rung again, held, counted: what may happen in one state is seen to below.
    *((state, state) for state in ("pending", "leased", "done", "failed")),
}  # fmt: skip
RUN_MOVES = {
    (None, "queued"), ("queued", "queued"), ("queued", "running"), ("running", "running"),
    *((start, end) for start in UNFINISHED for end in FINISHED),
    *((start, end) for start in ("failed", "cancelled") for end in UNFINISHED),
}  # fmt: skip
ALERT_MOVES = {
    (None, "pending"), ("pending", "claimed"), ("claimed", "sent"), ("claimed", "unknown"),
    ("claimed", "failed"), ("claimed", "pending"), ("pending", "failed"),
}  # fmt: skip
MOVES = {"shard": SHARD_MOVES, "run": RUN_MOVES, "alert": ALERT_MOVES}

_PROCESS = re.compile(r"recallwatch (\d+)@(.*)")


@dataclass(frozen=True)
class Violation:
    """What was broken, and the first place where that shows."""

    invariant: str
    detail: str


@dataclass(frozen=True)
class Watched:
    """What the invariants look at: a run's changes, and what its receiver took.

    `hands` is the application of the suite itself, which alone cancels and resumes.
    """

    changes: Sequence[Change]
    taken: Sequence[Taken]
    hands: str
    attempts: int

    def of(self, what: str) -> Iterator[Change]:
        """Yield the changes of one table that the suite's own breaking did not make."""
        return (each for each in self.changes if each.what == what and each.app != APPLICATION)


Invariant = Callable[[Watched], Iterator[str]]


def check(watched: Watched) -> list[Violation]:
    """Return one violation for each invariant that is broken."""
    found = ((each.__name__.replace("_", " "), each(watched)) for each in INVARIANTS)
    return [Violation(name, first) for name, seen in found if (first := next(seen, None))]


def only_drawn_moves(watched: Watched) -> Iterator[str]:
    """Only moves that docs/state_machine.md draws are made."""
    for change in watched.changes:
        told_below = change.what == "run" and change.states[0] in FINISHED
        allowed = MOVES.get(change.what)
        if told_below or allowed is None or change.new is None or _gives_up(change):
            continue
        if change.states not in allowed:
            yield f"{change.place}: {change.states[0]} -> {change.states[1]} by {change.app}"


def _gives_up(change: Change) -> bool:
    """Say whether an exact shard ends without results, as whoever finds it hopeless may end it."""
    new = change.new or {}
    return new.get("kind") == "exact" and change.states[1] == "done" and new["error"] is not None


def finished_run_never_changes(watched: Watched) -> Iterator[str]:
    """A finished run stays as it is, but for a person who lets a failed one go on."""
    for change in watched.of("run"):
        before, after = change.states
        resumed = before in {"failed", "cancelled"} and after in UNFINISHED
        if before in FINISHED and not (resumed and change.app == watched.hands):
            differ = [k for k, v in (change.new or {}).items() if (change.old or {}).get(k) != v]
            yield f"{change.place}: {before} -> {after} by {change.app}: {', '.join(differ)}"


def closed_by_its_holder(watched: Watched) -> Iterator[str]:
    """The process that closes a shard, or hands it back, is the one that its row names."""
    for change in watched.of("shard"):
        ends_lease = change.states in {("leased", "done"), ("leased", "pending")}
        if ends_lease and change.old and not _gives_up(change):
            process = _PROCESS.fullmatch(change.app)
            closer = f"{process[2]}:{process[1]}" if process else change.app
            if closer != change.old["worker"]:
                holder = change.old["worker"]
                yield f"{change.place}: {holder} held it, {closer} made it {change.states[1]}"


def tokens_only_go_up(watched: Watched) -> Iterator[str]:
    """A claim raises the token by one, and nothing else touches it."""
    for change in watched.of("shard"):
        if change.old and change.new:
            claimed = change.new["state"] == "leased" and (
                change.old["state"] != "leased" or change.old["token"] != change.new["token"]
            )
            if change.new["token"] != change.old["token"] + claimed:
                yield f"{change.place}: token {change.old['token']} -> {change.new['token']}"


def leases_are_kept(watched: Watched) -> Iterator[str]:
    """A shard is taken from another worker only when its lease has run out."""
    for change in watched.of("shard"):
        if change.old and change.new and change.states == ("leased", "leased"):
            if change.new["token"] == change.old["token"]:
                continue  # something was noted on it, nothing taken
            ends = datetime.fromisoformat(change.old["lease_until"])
            if change.at < ends:
                early = (ends - change.at).total_seconds()
                yield f"{change.place}: taken {early:.2f} s before the lease of its holder ended"


def attempts_are_bounded(watched: Watched) -> Iterator[str]:
    """No shard is claimed, and no run reduced, more often than the settings allow."""
    for change in watched.changes:
        counted = {"shard": "attempts", "run": "reduce_attempts"}.get(change.what)
        if counted and change.new and change.new[counted] > watched.attempts:
            yield f"{change.place}: attempt {change.new[counted]} of {watched.attempts}"


def results_come_with_their_close(watched: Watched) -> Iterator[str]:
    """Results are stored in the transaction that closes their shard, and in no other."""
    closes = {
        change.xid: change.new
        for change in watched.of("shard")
        if change.states[1] == "done" and change.new
    }
    for change in watched.of("result"):
        shard = closes.get(change.xid)
        inside = shard and shard["first_position"] <= int(change.part) <= shard["last_position"]
        if change.old is None and not inside:
            yield f"{change.place}: stored by {change.app} without a close of its shard"
        if change.old is not None:
            yield f"{change.place}: changed or deleted by {change.app}"


def each_question_counts_once(watched: Watched) -> Iterator[str]:
    """No question has two results, at any moment."""
    there: Counter[str] = Counter()
    for change in watched.changes:
        if change.what == "result":
            there[change.part] += (change.new is not None) - (change.old is not None)
            if there[change.part] > 1:
                yield f"{change.place}: a second result, by {change.app}"


def alerts_are_claimed_once(watched: Watched) -> Iterator[str]:
    """An alert goes back to pending only by the hand that had claimed it."""
    holders: dict[str, str] = {}
    for change in watched.of("alert"):
        if change.states == ("pending", "claimed"):
            holders[change.part] = change.app
        if change.states == ("claimed", "pending") and holders.get(change.part) != change.app:
            holder = holders.get(change.part, "nobody")
            yield f"{change.place}: {holder} posts it, {change.app} lets it go out again"


def one_alert_of_a_kind(watched: Watched) -> Iterator[str]:
    """The outbox holds one alert of a run, channel and kind."""
    written = Counter(change.part for change in watched.of("alert") if change.old is None)
    yield from (f"alert {part}: written {n} times" for part, n in written.items() if n > 1)


def no_alert_arrives_twice(watched: Watched) -> Iterator[str]:
    """Slack takes each alert once; a webhook may be told again, with the same key each time."""
    slack = Counter(t.identity for t in watched.taken if t.channel == "slack")
    yield from (f"Slack took the same alert {n} times" for n in slack.values() if n > 1)
    for channel in ("slack", "hook"):
        written = {c.part for c in watched.of("alert") if c.part.startswith(channel)}
        told = {taken.identity for taken in watched.taken if taken.channel == channel}
        if len(told) > len(written):
            yield f"{channel} took {len(told)} different alerts, {len(written)} were written"


def what_was_sent_arrived(watched: Watched) -> Iterator[str]:
    """An alert that is `sent` was taken."""
    for part, last in _last_alerts(watched.of("alert")):
        channel = part.partition(" ")[0]
        if last.states[1] == "sent" and not any(t.channel == channel for t in watched.taken):
            yield f"{last.place}: sent, but never taken"


def _last_alerts(changes: Iterable[Change]) -> Iterator[tuple[str, Change]]:
    by_part = sorted(changes, key=lambda change: (change.part, change.id))
    for part, each in groupby(by_part, key=lambda change: change.part):
        yield part, list(each)[-1]


INVARIANTS: Sequence[Invariant] = (
    only_drawn_moves,
    finished_run_never_changes,
    closed_by_its_holder,
    tokens_only_go_up,
    leases_are_kept,
    attempts_are_bounded,
    results_come_with_their_close,
    each_question_counts_once,
    alerts_are_claimed_once,
    one_alert_of_a_kind,
    no_alert_arrives_twice,
    what_was_sent_arrived,
)
