"""Two runs side by side: pair their questions in SQL, average, and list what was lost."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from db.models import Run
from db.session import plan_for_many
from pipeline.scoring import Measure
from pipeline.verdict.compare import (
    CategoryChange,
    Change,
    Comparison,
    Pairing,
    corpus_changes,
    setup_changes,
)
from pipeline.verdict.resampling import Differences, seed_of

# Questions of equal content are numbered, so that a set that holds one twice pairs them one to
# one. Unanswerable questions are never scored, so there is nothing of theirs to compare.
_PAIRS = """
WITH sides AS (
    SELECT run.id AS run_id, i.version_id, i.position, i.question_id, i.content_hash, i.text,
        i.expected, i.category, i.tenant, i.source, i.must_pass, r.outcome, r.measured, r.missing,
        r.first_rank, r.retrieved,
        row_number() OVER (PARTITION BY run.id, i.content_hash ORDER BY i.position) AS n
    FROM recallwatch.run JOIN recallwatch.batch b ON b.id = run.batch_id
    JOIN recallwatch.golden_item i ON i.version_id = b.version_id
    JOIN recallwatch.result r ON r.run_id = run.id AND r.position = i.position
    WHERE run.id IN (:current, :reference) AND i.kind = 'answerable'
), cur AS (SELECT * FROM sides WHERE run_id = :current),
ref AS (SELECT * FROM sides WHERE run_id = :reference),
same AS (
    SELECT c.*, p.measured AS was, p.first_rank AS was_rank, p.retrieved AS was_retrieved,
        c.outcome = 'scored' AND p.outcome = 'scored' AS both_scored,
        c.missing = p.missing AS same_live
    FROM cur c JOIN ref p USING (content_hash, n)
), shared AS (SELECT * FROM same WHERE both_scored AND same_live)
"""

_PAIRING = (
    _PAIRS
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
    changes, lost, won = _changes(session, run, reference, both) if pairing.shared else ([], 0, 0)
    metric = run.gate["metrics"][0]
    by = partial(_by, session, run, reference, metric) if pairing.shared else _nothing
    return Comparison(
        reference=reference.id,
        pairing=pairing,
        changes=_with_statistics(session, run, reference, changes),
        lost=lost,
        won=won,
        corpus=corpus_changes(run.corpus_fingerprint, reference.corpus_fingerprint),
        setup=setup_changes(_setup(run), _setup(reference)),
        categories=by("category"),
        tenants=by("tenant"),
        sources=by("source"),
    )


MOST_GROUPS = 100
"""Groups kept, those that fell most first: a set may have a tenant for each question."""


def _setup(run: Run) -> dict[str, Any]:
    """Return what decides how the run searched, less the corpus's content."""
    kept = {name: run.settings.get(name, {}) for name in ("strategy", "corpus")}
    return kept | {"embedding_model": run.embedding_model}


def _changes(
    session: Session, run: Run, reference: Run, names: Sequence[str]
) -> tuple[list[Change], int, int]:
    now = [run.measures.index(name) + 1 for name in names]
    was = [reference.measures.index(name) + 1 for name in names]
    means = [f"avg(measured[{i}]), avg(was[{j}])" for i, j in zip(now, was, strict=True)]
    hit_now, hit_was = _hits(run, reference)
    query = text(f"""
        {_PAIRS} SELECT count(*) FILTER (WHERE {hit_was} > {hit_now}),
            count(*) FILTER (WHERE {hit_now} > {hit_was}), {", ".join(means)} FROM shared
    """)
    row = session.execute(query, {"current": run.id, "reference": reference.id}).one()
    pairs = zip(names, row[2::2], row[3::2], strict=True)
    return [Change(name, float(a), float(b)) for name, a, b in pairs], row[0], row[1]


def _with_statistics(
    session: Session, run: Run, reference: Run, changes: Sequence[Change]
) -> list[Change]:
    """Give the metrics at k their interval and p-value, from the counted differences."""
    names = [change.metric for change in changes if Measure.parse(change.metric).k == run.k]
    if not names:
        return list(changes)
    found = _differences(session, run, reference, names)
    return [
        change.with_statistics(found[change.metric], seed_of(run.id, reference.id, change.metric))
        if change.metric in found
        else change
        for change in changes
    ]


def _differences(
    session: Session, run: Run, reference: Run, names: Sequence[str]
) -> dict[str, Differences]:
    """Count each metric's distinct differences over the shared questions, in one pass.

    Rounded to 12 digits, so that equal differences of different fractions are one.
    """
    entries = ", ".join(
        f"({number}, measured[{run.measures.index(name) + 1}]"
        f" - was[{reference.measures.index(name) + 1}])"
        for number, name in enumerate(names)
    )
    query = text(f"""
        {_PAIRS} SELECT number, round(difference::numeric, 12)::float8 AS difference, count(*) AS n
        FROM shared, LATERAL (VALUES {entries}) AS entry(number, difference) GROUP BY 1, 2
    """)
    rows = session.execute(query, {"current": run.id, "reference": reference.id}).all()
    by_name: dict[str, list[tuple[float, int]]] = {}
    for row in rows:
        by_name.setdefault(names[row.number], []).append((row.difference, row.n))
    return {
        name: Differences.of([value for value, _ in pairs], [n for _, n in pairs])
        for name, pairs in by_name.items()
    }


def _hits(run: Run, reference: Run) -> tuple[str, str]:
    """Return the SQL of hit@k on both sides."""
    name = f"hit@{run.k}"
    return (
        f"measured[{run.measures.index(name) + 1}]",
        f"was[{reference.measures.index(name) + 1}]",
    )


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
        {_PAIRS} SELECT {column} AS name, avg({now} - {was}) AS difference, count(*) AS n
        FROM shared WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2, 1 LIMIT :most
    """)
    values = {"current": run.id, "reference": reference.id, "most": MOST_GROUPS}
    rows = session.execute(query, values)
    return [CategoryChange(row.name, metric, float(row.difference), row.n) for row in rows]


def lost(session: Session, run: Run, reference: Run, *, limit: int) -> Sequence[Row[Any]]:
    """Return shared questions that had a hit at k and lost it, those found nowhere first."""
    hit_now, hit_was = _hits(run, reference)
    return _moved(session, run, reference, f"{hit_was} > {hit_now}", limit)


def won(session: Session, run: Run, reference: Run, *, limit: int) -> Sequence[Row[Any]]:
    """Return shared questions that had no hit at k and have one now."""
    hit_now, hit_was = _hits(run, reference)
    return _moved(session, run, reference, f"{hit_now} > {hit_was}", limit)


def _moved(
    session: Session, run: Run, reference: Run, condition: str, limit: int
) -> Sequence[Row[Any]]:
    plan_for_many(session)
    query = text(f"""
        {_PAIRS} SELECT * FROM shared WHERE {condition}
        ORDER BY first_rank DESC NULLS FIRST, position LIMIT :limit
    """)
    values = {"current": run.id, "reference": reference.id, "limit": limit}
    return session.execute(query, values).all()
