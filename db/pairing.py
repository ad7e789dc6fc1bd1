"""The questions of two runs, paired in SQL, and what their pairs' measures say."""

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.models import Run
from pipeline.scoring import Measure
from pipeline.verdict.compare import Change
from pipeline.verdict.resampling import Differences, seed_of

Rows = Literal["shared", "shadowed"]
"""The pairs meant: by what was served, or by what exact search finds, where both runs asked it."""

# Questions of equal content are numbered, so that a set that holds one twice pairs them one to
# one. Unanswerable questions are never scored, so there is nothing of theirs to compare.
PAIRS = """
WITH sides AS (
    SELECT run.id AS run_id, i.version_id, i.position, i.question_id, i.content_hash, i.text,
        i.expected, i.category, i.tenant, i.source, i.must_pass, r.outcome, r.measured, r.missing,
        r.first_rank, r.retrieved, x.measured AS exact,
        row_number() OVER (PARTITION BY run.id, i.content_hash ORDER BY i.position) AS n
    FROM recallwatch.run JOIN recallwatch.batch b ON b.id = run.batch_id
    JOIN recallwatch.golden_item i ON i.version_id = b.version_id
    JOIN recallwatch.result r ON r.run_id = run.id AND r.position = i.position
    LEFT JOIN recallwatch.exact_result x ON x.run_id = run.id AND x.position = i.position
    WHERE run.id IN (:current, :reference) AND i.kind = 'answerable'
), cur AS (SELECT * FROM sides WHERE run_id = :current),
ref AS (SELECT * FROM sides WHERE run_id = :reference),
same AS (
    SELECT c.*, p.measured AS was, p.first_rank AS was_rank, p.retrieved AS was_retrieved,
        p.exact AS was_exact, c.outcome = 'scored' AND p.outcome = 'scored' AS both_scored,
        c.missing = p.missing AS same_live
    FROM cur c JOIN ref p USING (content_hash, n)
), shared AS (SELECT * FROM same WHERE both_scored AND same_live),
shadowed AS (
    SELECT position, exact AS measured, was_exact AS was, measured AS served, was AS was_served
    FROM shared WHERE exact IS NOT NULL AND was_exact IS NOT NULL
)
"""


def changes_of(
    session: Session, run: Run, reference: Run, names: Sequence[str], rows: Rows = "shared"
) -> tuple[list[Change], int, int]:
    """Average measures that both runs have over the pairs; count the hits at k lost and won.

    There must be a pair.
    """
    now = [run.measures.index(name) + 1 for name in names]
    was = [reference.measures.index(name) + 1 for name in names]
    means = [f"avg(measured[{i}]), avg(was[{j}])" for i, j in zip(now, was, strict=True)]
    hit_now, hit_was = hits(run, reference)
    query = text(f"""
        {PAIRS} SELECT count(*) FILTER (WHERE {hit_was} > {hit_now}),
            count(*) FILTER (WHERE {hit_now} > {hit_was}), {", ".join(means)} FROM {rows}
    """)
    row = session.execute(query, {"current": run.id, "reference": reference.id}).one()
    pairs = zip(names, row[2::2], row[3::2], strict=True)
    return [Change(name, float(a), float(b)) for name, a, b in pairs], row[0], row[1]


def with_statistics(
    session: Session,
    run: Run,
    reference: Run,
    changes: Sequence[Change],
    rows: Rows = "shared",
) -> list[Change]:
    """Give the metrics at k their interval and p-value, from the counted differences."""
    names = [change.metric for change in changes if Measure.parse(change.metric).k == run.k]
    if not names:
        return list(changes)
    found = _differences(session, run, reference, names, rows)
    return [
        change.with_statistics(found[change.metric], seed_of(run.id, reference.id, change.metric))
        if change.metric in found
        else change
        for change in changes
    ]


def _differences(
    session: Session, run: Run, reference: Run, names: Sequence[str], rows: Rows
) -> dict[str, Differences]:
    """Count each metric's distinct differences over the pairs, in one pass.

    Rounded to 12 digits, so that equal differences of different fractions are one.
    """
    entries = ", ".join(
        f"({number}, measured[{run.measures.index(name) + 1}]"
        f" - was[{reference.measures.index(name) + 1}])"
        for number, name in enumerate(names)
    )
    query = text(f"""
        {PAIRS} SELECT number, round(difference::numeric, 12)::float8 AS difference, count(*) AS n
        FROM {rows}, LATERAL (VALUES {entries}) AS entry(number, difference) GROUP BY 1, 2
    """)
    counted = session.execute(query, {"current": run.id, "reference": reference.id})
    by_name: dict[str, list[tuple[float, int]]] = {}
    for row in counted:
        by_name.setdefault(names[row.number], []).append((row.difference, row.n))
    return {
        name: Differences.of([value for value, _ in pairs], [n for _, n in pairs])
        for name, pairs in by_name.items()
    }


def hits(run: Run, reference: Run) -> tuple[str, str]:
    """Return the SQL of hit@k on both sides."""
    name = f"hit@{run.k}"
    return (
        f"measured[{run.measures.index(name) + 1}]",
        f"was[{reference.measures.index(name) + 1}]",
    )
