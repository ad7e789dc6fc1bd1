"""Two runs side by side: pair their questions in SQL, average, and list what was lost."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from db import exact
from db.models import Run
from db.pairing import PAIRS, changes_of, hits, with_statistics
from db.session import plan_for_many
from pipeline.verdict.compare import (
    CategoryChange,
    Comparison,
    Pairing,
    corpus_changes,
    setup_changes,
)

_PAIRING = (
    PAIRS
    + """
, fresh AS (
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
SELECT (SELECT count(*) FROM shared) AS shared,
    (SELECT count(*) FROM fresh WHERE NOT known) AS new,
    (SELECT count(*) FROM fresh WHERE known) AS changed,
    (SELECT count(*) FROM gone) AS gone,
    (SELECT count(*) FROM same WHERE both_scored AND NOT same_live) AS relived,
    (SELECT count(*) FROM same WHERE NOT both_scored) AS unscored
"""
)


def compare(session: Session, run: Run, reference: Run) -> Comparison:
    """Pair a run with its reference and average each measure that both have over the pairs."""
    plan_for_many(session)
    ids = {"current": run.id, "reference": reference.id}
    pairing = Pairing(*session.execute(text(_PAIRING), ids).one())
    both = [name for name in run.measures if name in reference.measures]
    changes, lost, won = changes_of(session, run, reference, both) if pairing.shared else ([], 0, 0)
    metric = run.gate["metrics"][0]
    by = partial(_by, session, run, reference, metric) if pairing.shared else _nothing
    return Comparison(
        reference=reference.id,
        pairing=pairing,
        changes=with_statistics(session, run, reference, changes),
        lost=lost,
        won=won,
        corpus=corpus_changes(run.corpus_fingerprint, reference.corpus_fingerprint),
        setup=setup_changes(_setup(run), _setup(reference)),
        categories=by("category"),
        tenants=by("tenant"),
        sources=by("source"),
        exact=exact.compare(session, run, reference),
    )


MOST_GROUPS = 100
"""Groups kept, those that fell most first: a set may have a tenant for each question."""


def _setup(run: Run) -> dict[str, Any]:
    """Return what decides how the run searched, less the corpus's content."""
    kept = {name: run.settings.get(name, {}) for name in ("strategy", "corpus")}
    return kept | {"embedding_model": run.embedding_model}


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
        {PAIRS} SELECT {column} AS name, avg({now} - {was}) AS difference, count(*) AS n
        FROM shared WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2, 1 LIMIT :most
    """)
    values = {"current": run.id, "reference": reference.id, "most": MOST_GROUPS}
    rows = session.execute(query, values)
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
    plan_for_many(session)
    query = text(f"""
        {PAIRS} SELECT * FROM shared WHERE {condition}
        ORDER BY first_rank DESC NULLS FIRST, position LIMIT :limit
    """)
    values = {"current": run.id, "reference": reference.id, "limit": limit}
    return session.execute(query, values).all()
