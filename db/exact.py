"""Exact search beside what was served: its shards, what they find, and what a run's record says.

The questions it is asked are the first ones in the order of their content's hash: a random sample,
and the same one in each run of the same questions. A question's place in that order, among the
answerable ones of its version, is its rank.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select, text
from sqlalchemy.orm import Session

from db import run_states, shards
from db.models import GoldenItem, Json, Result, Run
from db.pairing import ROWS, add_statistics, changes_of
from db.session import plan_for_many
from db.shards import Claim
from pipeline.types import Kind
from pipeline.verdict.compare import ExactComparison


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


def summary(session: Session, run: Run) -> dict[str, Any] | None:
    """Return what the run's record says of exact search; None: there is nothing to say.

    `n` questions of the run's `of` scored ones were asked, a sample where `sampled`; `metrics` are
    the means of what exact search finds and `served` those of what was served for the same
    questions, `index_loss` the difference of their recall at k: empty and None where n is 0.
    `missed` counts questions that only exact search hits at k, `found_more` those that only the
    index does. `error`: why questions that were to be asked are lacking. `ef_search`: see
    `workers.ef_search.walk`. `seconds` are added up over the shards.
    """
    planned = session.execute(_PLANNED, {"run_id": run.id}).one()
    if planned.shards == 0:
        return None
    plan_for_many(session)
    found = session.execute(text(_means(run)), {"run_id": run.id}).one()
    if not found.n and planned.error is None:
        return None
    names = run.measures if found.n else []
    exact = {name: float(found[3 + 2 * i]) for i, name in enumerate(names)}
    as_served = {name: float(found[4 + 2 * i]) for i, name in enumerate(names)}
    recall = f"recall@{run.k}"
    return {
        "n": found.n,
        "of": planned.scored,
        "sampled": planned.asked < planned.answerable,
        "metrics": exact,
        "served": as_served,
        "index_loss": exact[recall] - as_served[recall] if found.n else None,
        "missed": found.missed,
        "found_more": found.found_more,
        "ef_search": planned.ef_search,
        "error": planned.error,
        "seconds": planned.seconds,
    }


_PLANNED = text("""
    SELECT count(s.number) AS shards,
        coalesce(sum(s.last_position - s.first_position + 1), 0)::bigint AS asked,
        min(s.error) AS error, coalesce(sum((s.stats->>'exact_seconds')::float8), 0) AS seconds,
        (array_agg(s.ef_search) FILTER (WHERE s.ef_search IS NOT NULL))[1] AS ef_search,
        (SELECT count(*) FROM recallwatch.result WHERE run_id = r.id AND outcome = 'scored')
            AS scored,
        (SELECT count(*) FROM recallwatch.golden_item i
         WHERE i.version_id = b.version_id AND i.kind = 'answerable') AS answerable
    FROM recallwatch.run r JOIN recallwatch.batch b ON b.id = r.batch_id
    LEFT JOIN recallwatch.shard s ON s.run_id = r.id AND s.kind = 'exact'
    WHERE r.id = :run_id GROUP BY r.id, b.version_id
""")


def _means(run: Run) -> str:
    """Write the query for the counts and, measure by measure, the exact and the served mean."""
    hit = run.measures.index(f"hit@{run.k}") + 1
    means = ", ".join(
        f"avg(x.measured[{i}]), avg(r.measured[{i}])" for i in range(1, len(run.measures) + 1)
    )
    return f"""
        SELECT count(*) AS n,
            count(*) FILTER (WHERE x.measured[{hit}] > r.measured[{hit}]) AS missed,
            count(*) FILTER (WHERE r.measured[{hit}] > x.measured[{hit}]) AS found_more, {means}
        FROM recallwatch.exact_result x JOIN recallwatch.result r USING (run_id, position)
        WHERE x.run_id = :run_id
    """


def compare(session: Session, run: Run, reference: Run) -> ExactComparison | None:
    """Compare what exact search finds over the questions that two runs share and asked it both.

    None: there are none. Call `db.pairing.pair_up` first.
    """
    if not _both_asked(session, run, reference):
        return None
    losses = session.execute(text(_losses(run, reference))).one()
    if losses.shared == 0:
        return None
    both = [name for name in run.measures if name in reference.measures]
    changes, lost, won = changes_of(session, run, reference, both, "shadowed")
    return ExactComparison(
        shared=losses.shared,
        changes=add_statistics(session, run, reference, changes, "shadowed"),
        lost=lost,
        won=won,
        loss_now=float(losses.loss_now),
        loss_before=float(losses.loss_before),
        missed_now=losses.missed_now,
        missed_before=losses.missed_before,
    )


def _both_asked(session: Session, run: Run, reference: Run) -> bool:
    query = text("""
        SELECT EXISTS (SELECT FROM recallwatch.exact_result WHERE run_id = :current)
            AND EXISTS (SELECT FROM recallwatch.exact_result WHERE run_id = :reference)
    """)
    return bool(session.scalar(query, {"current": run.id, "reference": reference.id}))


def _losses(run: Run, reference: Run) -> str:
    """Write the query for both runs' index losses over the questions they share."""
    recall, hit = (run.measures.index(f"{name}@{run.k}") + 1 for name in ("recall", "hit"))
    was_recall, was_hit = (
        reference.measures.index(f"{name}@{run.k}") + 1 for name in ("recall", "hit")
    )
    return f"""
        SELECT count(*) AS shared,
            avg(measured[{recall}] - served[{recall}]) AS loss_now,
            avg(was[{was_recall}] - was_served[{was_recall}]) AS loss_before,
            count(*) FILTER (WHERE measured[{hit}] > served[{hit}]) AS missed_now,
            count(*) FILTER (WHERE was[{was_hit}] > was_served[{was_hit}]) AS missed_before
        FROM {ROWS["shadowed"]}
    """
