"""Two runs side by side: pair their questions in SQL, average, and list what was lost."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.orm import Session

from db import exact_figures
from db.models import Batch, Run
from db.pairing import ROWS, SIDES, add_statistics, changes_of, hits, pair_up
from pipeline.retrieval.tree import with_defaults
from pipeline.verdict.compare import (
    CategoryChange,
    Comparison,
    Pairing,
    corpus_changes,
    setup_changes,
)

_COUNTED = """
    SELECT count(*) FILTER (WHERE both_scored AND same_live) AS shared,
        count(*) FILTER (WHERE both_scored AND NOT same_live) AS relived,
        count(*) FILTER (WHERE NOT both_scored) AS unscored
    FROM pair
"""

# What has no pair: a question of the run that the reference knows with another content, or not at
# all, and one of the reference that the run does not know.
_UNPAIRED = f"""
{SIDES}, fresh AS (
    SELECT c.question_id IN (SELECT question_id FROM ref)
        OR (c.text, coalesce(c.tenant, '')) IN (SELECT text, coalesce(tenant, '') FROM ref)
        AS known
    FROM cur c LEFT JOIN ref q USING (content_hash, n) WHERE q.run_id IS NULL
), gone AS (
    SELECT 1 FROM ref p LEFT JOIN cur q USING (content_hash, n) WHERE q.run_id IS NULL
        AND p.question_id NOT IN (SELECT question_id FROM cur)
        AND (p.text, coalesce(p.tenant, ''))
            NOT IN (SELECT text, coalesce(tenant, '') FROM cur)
)
SELECT (SELECT count(*) FROM fresh WHERE NOT known) AS new,
    (SELECT count(*) FROM fresh WHERE known) AS changed, (SELECT count(*) FROM gone) AS gone
"""


def _pairing(session: Session, run: Run, reference: Run) -> Pairing:
    """Count the pairs, and what has none; two runs of one version leave nothing without."""
    paired = session.execute(text(_COUNTED)).one()
    ids = {"current": run.id, "reference": reference.id}
    same = session.execute(_SAME_VERSION, ids).scalar_one()
    new, changed, gone = (0, 0, 0) if same else session.execute(text(_UNPAIRED), ids).one()
    return Pairing(
        shared=paired.shared, new=new, changed=changed, gone=gone, relived=paired.relived,
        unscored=paired.unscored,
    )  # fmt: skip


_SAME_VERSION = text("""
    SELECT count(DISTINCT b.version_id) = 1
    FROM recallwatch.run JOIN recallwatch.batch b ON b.id = run.batch_id
    WHERE run.id IN (:current, :reference)
""")


def compare(session: Session, run: Run, reference: Run) -> Comparison:
    """Pair a run with its reference and average each measure that both have over the pairs."""
    pair_up(session, run, reference)
    pairing = _pairing(session, run, reference)
    both = [name for name in run.measures if name in reference.measures]
    changes, lost, won = changes_of(session, run, reference, both) if pairing.shared else ([], 0, 0)
    metric = run.gate["metrics"][0]
    by = partial(_by, session, run, reference, metric) if pairing.shared else _nothing
    return Comparison(
        reference=reference.id,
        pairing=pairing,
        changes=add_statistics(session, run, reference, changes),
        lost=lost,
        won=won,
        corpus=corpus_changes(run.corpus_fingerprint, reference.corpus_fingerprint),
        setup=setup_changes(_setup(run), _setup(reference)),
        categories=by("category"),
        tenants=by("tenant"),
        sources=by("source"),
        exact=exact_figures.compare(session, run, reference),
    )


MOST_GROUPS = 100
"""Groups kept, as a set may have a tenant for each question: those that are large enough to be
judged, and then those that fell most, come first."""


def _setup(run: Run) -> dict[str, Any]:
    """Return what decides how the run searched, less the corpus's content."""
    return {
        "strategy": with_defaults(run.settings.get("strategy", {})),
        "corpus": run.settings.get("corpus", {}),
        "embedding_model": run.embedding_model,
    }


def _nothing(_column: str) -> list[CategoryChange]:
    return []


def _by(
    session: Session, run: Run, reference: Run, metric: str, column: str
) -> list[CategoryChange]:
    """Return how a metric moved in each group of the shared questions, the worst first."""
    if metric not in run.measures or metric not in reference.measures:
        return []
    now = f"measured[{run.measures.index(metric) + 1}]"
    was = f"was[{reference.measures.index(metric) + 1}]"
    query = text(f"""
        SELECT {column} AS name, avg({now} - {was}) AS difference, count(*) AS n
        FROM {ROWS["shared"]} WHERE {column} IS NOT NULL GROUP BY 1
        ORDER BY count(*) >= :least DESC, 2, 1 LIMIT :most
    """)
    least = run.gate.get("category_min", 1)
    found = session.execute(query, {"most": MOST_GROUPS, "least": least})
    rows = sorted(found, key=lambda row: (row.difference, row.name))
    return [CategoryChange(row.name, metric, float(row.difference), row.n) for row in rows]


def lost(session: Session, run: Run, reference: Run, *, limit: int) -> Sequence[Row[Any]]:
    """Return shared questions that had a hit at k and lost it, those found nowhere first."""
    hit_now, hit_was = hits(run, reference)
    return _moved(session, run, reference, f"{hit_was} > {hit_now}", limit)


def won(session: Session, run: Run, reference: Run, *, limit: int) -> Sequence[Row[Any]]:
    """Return shared questions that had no hit at k and have one now."""
    hit_now, hit_was = hits(run, reference)
    return _moved(session, run, reference, f"{hit_now} > {hit_was}", limit)


def _moved(
    session: Session, run: Run, reference: Run, condition: str, limit: int
) -> Sequence[Row[Any]]:
    pair_up(session, run, reference)
    query = text(f"""
        SELECT i.*, r.outcome, r.measured, r.missing, r.first_rank, r.retrieved,
            q.first_rank AS was_rank, q.retrieved AS was_retrieved
        FROM (SELECT position, was_position FROM {ROWS["shared"]} WHERE {condition}) AS moved
        JOIN recallwatch.golden_item i
            ON i.version_id = :version_id AND i.position = moved.position
        JOIN recallwatch.result r ON r.run_id = :current AND r.position = moved.position
        JOIN recallwatch.result q ON q.run_id = :reference AND q.position = moved.was_position
        ORDER BY r.first_rank DESC NULLS FIRST, i.position LIMIT :limit
    """)
    version_id = session.scalar(select(Batch.version_id).where(Batch.id == run.batch_id))
    values = {"current": run.id, "reference": reference.id, "limit": limit,
              "version_id": version_id}  # fmt: skip
    return session.execute(query, values).all()
