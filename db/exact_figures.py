"""What exact search found, in figures: a run's record, and the comparison of two runs."""

from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.models import Run
from db.pairing import ROWS, add_statistics, changes_of
from db.session import plan_for_many
from pipeline.verdict.compare import ExactComparison


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
