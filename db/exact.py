"""Exact search beside what was served: its shards, and what they find.

The questions it is asked are the first ones in the order of their content's hash: a random sample,
and the same one in each run of the same questions. A question's place in that order, among the
answerable ones of its version, is its rank.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Select, func, select, text
from sqlalchemy.orm import Session

from db import run_states, shards
from db.models import GoldenItem, Json, Result
from db.session import plan_for_many
from db.shards import Claim
from pipeline.types import Kind


@dataclass(frozen=True, slots=True)
class Served:
    """A question that was scored as served: which expected keys were dead, and its measures."""

    item: GoldenItem
    missing: Sequence[str]
    measured: Sequence[float]


@dataclass(frozen=True, slots=True)
class ExactRow:
    """What exact search finds for one question; see `db.models.ExactResult`."""

    position: int
    retrieved: Sequence[str]
    measured: Sequence[float]


def _ranked(version_id: int) -> Select[tuple[int, str | None, int]]:
    """Select position, tenant and rank (from 0) of a version's answerable questions."""
    order = (GoldenItem.content_hash.collate("C"), GoldenItem.position)
    rank = (func.row_number().over(order_by=order) - 1).label("rank")
    return select(GoldenItem.position, GoldenItem.tenant, rank).where(
        GoldenItem.version_id == version_id, GoldenItem.kind == Kind.ANSWERABLE
    )


def tenants(session: Session, version_id: int) -> Iterator[str | None]:
    """Yield the tenants of a version's answerable questions, by rank."""
    query = _ranked(version_id).order_by("rank")
    for row in session.execute(query, execution_options={"yield_per": 10_000}):
        yield row.tenant


def plan(session: Session, run_id: int, questions: int, n_shards: int) -> None:
    """Cut the first questions by rank into exact shards of equal size, behind the run's others."""
    query = text("""
        INSERT INTO recallwatch.shard (run_id, number, kind, first_position, last_position)
        SELECT :run_id, behind.number + part, 'exact', part * :questions / :n_shards,
            (part + 1) * :questions / :n_shards - 1
        FROM generate_series(0, :n_shards - 1) AS part,
            (SELECT max(number) + 1 AS number FROM recallwatch.shard WHERE run_id = :run_id) behind
    """)
    values = {"run_id": run_id, "questions": questions, "n_shards": n_shards}
    session.execute(query, values)


def refuse(session: Session, run_id: int, reason: str) -> None:
    """Note that a run gets no exact search, and why, as a shard that ended without results.

    It asks nothing, whatever its ranks say, and nobody opens it again.
    """
    plan(session, run_id, 1, 1)
    query = text("""
        UPDATE recallwatch.shard SET state = 'done', refused = true, error = :reason
        WHERE run_id = :run_id AND kind = 'exact'
    """)
    session.execute(query, {"run_id": run_id, "reason": reason})


def served(session: Session, version_id: int, claim: Claim) -> list[Served]:
    """Return those of an exact shard's questions that were scored as served, by rank.

    Only they have measures: a CHECK says so.
    """
    ranked = _ranked(version_id).subquery()
    query = (
        select(GoldenItem, Result.missing, Result.measured)
        .join(ranked, ranked.c.position == GoldenItem.position)
        .join(Result, Result.position == GoldenItem.position)
        .where(
            GoldenItem.version_id == version_id,
            Result.run_id == claim.run_id,
            ranked.c.rank.between(claim.first, claim.last),
        )
        .order_by(ranked.c.rank)
    )
    plan_for_many(session)
    rows = session.execute(query)
    return [Served(item, dead, measured) for item, dead, measured in rows if measured is not None]


def store(
    session: Session,
    claim: Claim,
    rows: Sequence[ExactRow],
    *,
    stats: dict[str, float],
    ef_search: Json | None,
) -> bool | None:
    """Write an exact shard's results and its close in the session's one transaction.

    As `db.results.store`: None when the claim was lost, else whether it was the run's last shard.
    """
    if not shards.close(session, claim, stats=json.dumps(stats)):
        return None
    query = text("""
        INSERT INTO recallwatch.exact_result (run_id, position, retrieved, measured)
        SELECT :run_id, position, retrieved, measured
        FROM jsonb_to_recordset(CAST(:rows AS jsonb))
            AS row(position integer, retrieved text[], measured float8[])
        ON CONFLICT DO NOTHING
    """)
    found = [
        {"position": row.position, "retrieved": row.retrieved, "measured": row.measured}
        for row in rows
    ]
    session.execute(query, {"run_id": claim.run_id, "rows": json.dumps(found)})
    if ef_search is not None:
        _note(session, claim, ef_search)
    return _is_last(session, claim.run_id)


def _note(session: Session, claim: Claim, ef_search: Json) -> None:
    query = text("""
        UPDATE recallwatch.shard SET ef_search = CAST(:found AS jsonb)
        WHERE run_id = :run_id AND number = :number
    """)
    values = {"run_id": claim.run_id, "number": claim.number, "found": json.dumps(ef_search)}
    session.execute(query, values)


def give_up(session: Session, run_id: int, reason: str) -> bool:
    """End a run's open exact shards without results; say whether the run can be reduced then.

    Their claims are lost. The run goes on: what was served was measured.
    """
    shards.lock_open(session, [run_id])
    query = text("""
        UPDATE recallwatch.shard
        SET state = 'done', lease_until = NULL, next_at = NULL, error = :reason
        WHERE run_id = :run_id AND kind = 'exact' AND state IN ('pending', 'leased')
    """)
    session.execute(query, {"run_id": run_id, "reason": reason})
    return _is_last(session, run_id)


def _is_last(session: Session, run_id: int) -> bool:
    return run_states.lock(session, run_id) is not None and shards.all_done(session, run_id)


def hopeless(session: Session, *, attempts: int) -> list[tuple[int, str]]:
    """Return (run, reason) for unfinished runs whose exact search will not be done.

    A shard of it used up its attempts, or the run's deadline passed while only exact search was
    left of it.
    """
    query = text("""
        SELECT DISTINCT ON (s.run_id) s.run_id, s.attempts, s.attempts >= :attempts AS tried,
            coalesce(s.error, 'its worker was lost each time') AS error
        FROM recallwatch.shard s JOIN recallwatch.run r ON r.id = s.run_id
        WHERE r.status IN ('queued', 'running') AND s.kind = 'exact'
          AND (s.attempts >= :attempts AND (
                   s.state = 'pending' OR s.state = 'leased' AND s.lease_until < clock_timestamp())
               OR r.deadline_at < now() AND s.state IN ('pending', 'leased') AND NOT EXISTS (
                   SELECT FROM recallwatch.shard o
                   WHERE o.run_id = r.id AND o.kind = 'served' AND o.state <> 'done'))
        ORDER BY s.run_id, tried DESC, s.number
    """)
    return [
        (row.run_id, f"tried {row.attempts} times: {row.error}" if row.tried else _TOO_LATE)
        for row in session.execute(query, {"attempts": attempts})
    ]


_TOO_LATE = "it was not done by the run's deadline ([queue] deadline)"
