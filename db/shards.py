"""Shards: claimed by one worker at a time, fenced by a token, rung again when forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from pipeline.types import ShardKind

PAID = ("embedded_texts", "embedding_calls")
"""Those of a shard's counts, in texts and calls, that were paid for; trying again adds to them."""

SPENT = ("cached_texts", *PAID)
"""Those that money and rate limits hang on."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's hold on a shard: it may store results while `token` is still the newest.

    `attempt` counts from 1; `first` and `last` are positions, both included; those of an exact
    shard are ranks, see `db.exact`.
    """

    run_id: int
    number: int
    token: int
    attempt: int
    first: int
    last: int
    kind: ShardKind = ShardKind.SERVED

    def __len__(self) -> int:
        return self.last - self.first + 1


# Exact search waits until all that is served was measured: it never delays it, and has its vectors.
_TURN_HAS_COME = """(s.kind = 'served' OR NOT EXISTS (
    SELECT FROM recallwatch.shard other
    WHERE other.run_id = s.run_id AND other.kind = 'served' AND other.state <> 'done'))"""


def plan(session: Session, run_ids: Sequence[int], size: int, shard_size: int) -> int:
    """Cut `size` questions into shards for each run; return how many shards a run has."""
    query = text("""
        INSERT INTO recallwatch.shard (run_id, number, first_position, last_position)
        SELECT run_id, number, number * :shard_size,
               least((number + 1) * :shard_size, :size) - 1
        FROM unnest(CAST(:ids AS bigint[])) AS run_id,
             generate_series(0, (:size - 1) / :shard_size) AS number
    """)
    session.execute(query, {"ids": list(run_ids), "size": size, "shard_size": shard_size})
    return (size - 1) // shard_size + 1


def count(session: Session, run_id: int) -> int:
    """Return how many shards a run was cut into, those of exact search not counted."""
    query = text("""
        SELECT count(*) FROM recallwatch.shard WHERE run_id = :run_id AND kind = 'served'
    """)
    return session.scalar(query, {"run_id": run_id}) or 0


def claim(
    session: Session, run_id: int, number: int, *, worker: str, lease: int, attempts: int
) -> Claim | None:
    """Take a shard for `lease` seconds in one UPDATE that raises its token; None: not to be had.

    To be had is a pending shard whose `next_at` has come, or one whose lease ran out, of an
    unfinished run, tried fewer than `attempts` times; an exact one only when all others are done.
    One that somebody changes at this moment is not waited for: should they be frozen, all
    processes would end up waiting here, and none would be left to sweep.
    """
    query = text(f"""
        WITH wanted AS MATERIALIZED (
            SELECT s.run_id, s.number
            FROM recallwatch.shard s JOIN recallwatch.run r ON r.id = s.run_id
            WHERE r.status IN ('queued', 'running')
              AND s.run_id = :run_id AND s.number = :number AND s.attempts < :attempts
              AND {_TURN_HAS_COME}
              AND (s.state = 'pending' AND coalesce(s.next_at <= clock_timestamp(), true)
                   OR s.state = 'leased' AND s.lease_until < clock_timestamp())
            FOR NO KEY UPDATE OF s SKIP LOCKED)
        UPDATE recallwatch.shard s SET state = 'leased', token = token + 1,
            attempts = attempts + 1, worker = :worker, next_at = NULL,
            lease_until = clock_timestamp() + make_interval(secs => :lease)
        FROM wanted w WHERE s.run_id = w.run_id AND s.number = w.number
        RETURNING s.run_id, s.number, s.token, s.attempts, s.first_position, s.last_position,
            s.kind
    """)
    values = {"run_id": run_id, "number": number, "worker": worker, "lease": lease,
              "attempts": attempts}  # fmt: skip
    row = session.execute(query, values).one_or_none()
    if row is None:
        return None
    run_id, number, token, attempt, first, last, kind = row
    return Claim(run_id, number, token, attempt, first, last, ShardKind(kind))


def release(
    session: Session, claim: Claim, *, error: str, wait: float, counted: bool = True
) -> bool:
    """Hand a shard back, to be tried again in `wait` seconds; False: the claim was lost.

    `counted=False` takes the attempt back: a server asked for patience, which is no fault of the
    shard's. The run's deadline bounds it. It is then rung as the first time: see `unembedded`.
    """
    query = text("""
        UPDATE recallwatch.shard SET state = 'pending', lease_until = NULL, error = :error,
            attempts = attempts - CASE WHEN :counted THEN 0 ELSE 1 END,
            rung_at = CASE WHEN :counted THEN rung_at END,
            next_at = clock_timestamp() + make_interval(secs => :wait)
        WHERE run_id = :run_id AND number = :number AND token = :token AND state = 'leased'
        RETURNING 1
    """)
    values = {"run_id": claim.run_id, "number": claim.number, "token": claim.token,
              "error": error, "wait": wait, "counted": counted}  # fmt: skip
    return session.execute(query, values).one_or_none() is not None


def lock_open(session: Session, run_ids: Sequence[int]) -> None:
    """Lock the runs' shards that are not done until the transaction ends, all in one order.

    Whoever locks several of them comes here first, or two that end a run at once would deadlock.
    Who ends several runs goes through them by number: the shards of one, its row, then the next.
    """
    query = text("""
        SELECT FROM recallwatch.shard WHERE run_id = ANY(:ids) AND state <> 'done'
        ORDER BY run_id, number FOR UPDATE
    """)
    session.execute(query, {"ids": list(run_ids)})


def holds(session: Session, claim: Claim) -> bool:
    """Say whether a claim is still the newest, and keep it so until the transaction ends.

    Locks all open shards of its run, for the caller is about to end them.
    """
    lock_open(session, [claim.run_id])
    query = text("""
        SELECT 1 FROM recallwatch.shard
        WHERE run_id = :run_id AND number = :number AND token = :token AND state = 'leased'
    """)
    values = {"run_id": claim.run_id, "number": claim.number, "token": claim.token}
    return session.scalar(query, values) is not None


# A batch's shards of one number, locked in the order of their runs: see `lock_open`.
_WAITING_FOR_VECTORS = """
    WITH waiting AS MATERIALIZED (
        SELECT s.run_id FROM recallwatch.shard s JOIN recallwatch.run r ON r.id = s.run_id
        WHERE r.batch_id = :batch_id AND r.needs_vectors AND r.status IN ('queued', 'running')
          AND s.number = :number AND s.kind = 'served' AND s.state = 'pending'
        ORDER BY s.run_id FOR NO KEY UPDATE OF s)
"""


def hold_for_embedding(
    session: Session, batch_id: int, number: int, *, lease: int
) -> tuple[int, int] | None:
    """Keep a batch's shard from being evaluated while its questions are embedded.

    Returns its first and last position, or None when nothing waits for the vectors. Should the
    embedding task die, the shard is rung again when the hold ends and embeds inline.
    """
    query = text(f"""
        {_WAITING_FOR_VECTORS}
        UPDATE recallwatch.shard s
        SET next_at = clock_timestamp() + make_interval(secs => :lease) FROM waiting w
        WHERE s.run_id = w.run_id AND s.number = :number
          AND coalesce(s.next_at <= clock_timestamp(), true)
        RETURNING s.first_position, s.last_position
    """)
    values = {"batch_id": batch_id, "number": number, "lease": lease}
    row = session.execute(query, values).first()
    return None if row is None else (row.first_position, row.last_position)


def end_hold(
    session: Session, batch_id: int, number: int, *, wait: float = 0, error: str | None = None
) -> list[int]:
    """Let a batch's shard be evaluated again, at once or in `wait` seconds; return the runs."""
    query = text(f"""
        {_WAITING_FOR_VECTORS}
        UPDATE recallwatch.shard s
        SET error = coalesce(:error, s.error), next_at = CASE WHEN :wait > 0
            THEN clock_timestamp() + make_interval(secs => :wait) END
        FROM waiting w WHERE s.run_id = w.run_id AND s.number = :number
        RETURNING s.run_id
    """)
    values = {"batch_id": batch_id, "number": number, "wait": wait, "error": error}
    return sorted(session.execute(query, values).scalars())


# Embedding and evaluation each know a part of what a shard took: counts of one name add up.
_ADDED_STATS = """(
    SELECT jsonb_object_agg(key, total) FROM (
        SELECT key, sum(value::float8) AS total FROM (
            SELECT * FROM jsonb_each_text(coalesce(stats, '{}'))
            UNION ALL SELECT * FROM jsonb_each_text(CAST(:stats AS jsonb))
        ) AS both_parts GROUP BY key
    ) AS added
)"""


def close(session: Session, claim: Claim, *, stats: str) -> bool:
    """Mark a shard done if the claim still holds; False: it was lost, store nothing.

    `stats` is a JSON object of seconds and counts.
    """
    query = text(f"""
        UPDATE recallwatch.shard SET state = 'done', lease_until = NULL, error = NULL,
            stats = {_ADDED_STATS}
        WHERE run_id = :run_id AND number = :number AND token = :token AND state = 'leased'
        RETURNING 1
    """)
    values = {"run_id": claim.run_id, "number": claim.number, "token": claim.token,
              "stats": stats}  # fmt: skip
    return session.execute(query, values).one_or_none() is not None


def add_stats(session: Session, batch_id: int, number: int, *, stats: str) -> None:
    """Add a batch's shared seconds and counts to its first run that needs vectors."""
    query = text(f"""
        UPDATE recallwatch.shard SET stats = {_ADDED_STATS}
        WHERE number = :number AND run_id = (
            SELECT min(id) FROM recallwatch.run WHERE batch_id = :batch_id AND needs_vectors)
    """)
    session.execute(query, {"batch_id": batch_id, "number": number, "stats": stats})


def all_done(session: Session, run_id: int) -> bool:
    """Say whether every shard of the run is done; call it under the run's lock."""
    query = text("""
        SELECT NOT EXISTS (SELECT FROM recallwatch.shard
                           WHERE run_id = :run_id AND state <> 'done')
    """)
    return bool(session.scalar(query, {"run_id": run_id}))


def ring_exact(session: Session, run_id: int) -> list[int]:
    """Return the run's exact shards, noted as rung, once all others are done; else none.

    Call it under the run's lock, with a shard of the other kind just closed.
    """
    query = text(f"""
        UPDATE recallwatch.shard s SET rung_at = clock_timestamp()
        WHERE s.run_id = :run_id AND s.kind = 'exact' AND s.state = 'pending' AND {_TURN_HAS_COME}
        RETURNING s.number
    """)
    return sorted(session.execute(query, {"run_id": run_id}).scalars())


def ring_pending(session: Session, run_id: int) -> list[int]:
    """Return a reopened run's shards that can be claimed now, noted as rung."""
    query = text(f"""
        UPDATE recallwatch.shard s SET rung_at = clock_timestamp()
        WHERE s.run_id = :run_id AND s.state = 'pending' AND {_TURN_HAS_COME}
        RETURNING s.number
    """)
    return sorted(session.execute(query, {"run_id": run_id}).scalars())


def ring_anew(session: Session, batch_id: int, number: int) -> None:
    """Have a batch's shard rung as the first time, for its vectors: see `unembedded`."""
    query = text(f"""
        {_WAITING_FOR_VECTORS}
        UPDATE recallwatch.shard s SET rung_at = NULL
        FROM waiting w WHERE s.run_id = w.run_id AND s.number = :number
    """)
    session.execute(query, {"batch_id": batch_id, "number": number})


_IS_DUE = f"""r.status IN ('queued', 'running')
    AND (s.state = 'pending' AND coalesce(s.next_at <= clock_timestamp(), true)
         OR s.state = 'leased' AND s.lease_until < clock_timestamp())
    AND coalesce(s.rung_at, r.created_at) < clock_timestamp() - make_interval(secs => :quiet)
    AND {_TURN_HAS_COME}"""


def unembedded(session: Session, *, quiet: float, limit: int) -> dict[tuple[int, int], int]:
    """Return which of the pairs that `due` would are to be embedded for all their batch's runs.

    They come with their batch. Each run by itself would pay for the same texts. Only shards that
    nobody rang or tried before are among them, and those that a server asked patience for: one
    whose embedding fails, or ends its worker, is rung for evaluation next, which counts attempts.
    """
    query = text(f"""
        SELECT s.run_id, s.number, r.batch_id
        FROM recallwatch.shard s JOIN recallwatch.run r ON r.id = s.run_id
        WHERE {_IS_DUE} AND s.rung_at IS NULL AND s.attempts = 0 AND s.state = 'pending'
          AND s.kind = 'served' AND r.needs_vectors AND EXISTS (
              SELECT FROM recallwatch.run other
              WHERE other.batch_id = r.batch_id AND other.id <> r.id AND other.needs_vectors
                AND other.status IN ('queued', 'running'))
        ORDER BY s.run_id, s.number LIMIT :limit
    """)
    rows = session.execute(query, {"quiet": quiet, "limit": limit})
    return {(row.run_id, row.number): row.batch_id for row in rows}


def due(session: Session, *, quiet: float, limit: int) -> list[tuple[int, int]]:
    """Return (run, shard) pairs that want a worker and were not rung for `quiet` seconds."""
    # Materialized: a plan that looks at a locking subquery row by row would run it again for each,
    # past its LIMIT.
    query = text(f"""
        WITH d AS MATERIALIZED (
              SELECT s.run_id, s.number
              FROM recallwatch.shard s JOIN recallwatch.run r ON r.id = s.run_id
              WHERE {_IS_DUE} ORDER BY s.run_id, s.number LIMIT :limit
              FOR UPDATE OF s SKIP LOCKED)
        UPDATE recallwatch.shard s SET rung_at = clock_timestamp() FROM d
        WHERE s.run_id = d.run_id AND s.number = d.number
        RETURNING s.run_id, s.number
    """)
    rows = session.execute(query, {"quiet": quiet, "limit": limit})
    return sorted((row.run_id, row.number) for row in rows)


def exhausted(session: Session, *, attempts: int) -> list[tuple[int, str]]:
    """Return (run, reason) for unfinished runs with a shard that used up its attempts.

    An exact one is no reason to fail a run: see `db.exact.hopeless`.
    """
    query = text("""
        SELECT DISTINCT ON (s.run_id) s.run_id, s.number, s.attempts, s.worker,
            coalesce(s.error, 'its worker was lost each time') AS error
        FROM recallwatch.shard s JOIN recallwatch.run r ON r.id = s.run_id
        WHERE r.status IN ('queued', 'running') AND s.kind = 'served' AND s.attempts >= :attempts
          AND (s.state = 'pending' OR s.state = 'leased' AND s.lease_until < clock_timestamp())
        ORDER BY s.run_id, s.number
    """)
    return [
        (row.run_id, f"shard {row.number} failed {row.attempts} times: {row.error}")
        for row in session.execute(query, {"attempts": attempts})
    ]
