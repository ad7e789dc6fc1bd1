"""The questions of two runs, paired in SQL, and what their pairs' measures say."""

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.models import Run
from db.session import plan_for_many
from pipeline.scoring import Measure
from pipeline.verdict.compare import Change
from pipeline.verdict.resampling import Differences, seed_of, with_statistics

Rows = Literal["shared", "shadowed"]
"""The pairs meant: by what was served, or by what exact search finds, where both runs asked it."""

# Questions of equal content are numbered, so that a set that holds one twice pairs them one to
# one. Unanswerable questions are never scored, so there is nothing of theirs to compare.
SIDES = """
WITH sides AS (
    SELECT run.id AS run_id, i.version_id, i.position, i.question_id, i.content_hash, i.text,
        i.tenant, i.category, i.source,
        row_number() OVER (PARTITION BY run.id, i.content_hash ORDER BY i.position) AS n
    FROM recallwatch.run JOIN recallwatch.batch b ON b.id = run.batch_id
    JOIN recallwatch.golden_item i ON i.version_id = b.version_id
    WHERE run.id IN (:current, :reference) AND i.kind = 'answerable'
), cur AS (SELECT * FROM sides WHERE run_id = :current),
ref AS (SELECT * FROM sides WHERE run_id = :reference)
"""

_PAIR_UP = text(f"""
    CREATE TEMPORARY TABLE pair ON COMMIT DROP AS
    {SIDES} SELECT c.position, p.position AS was_position, c.category, c.tenant, c.source,
        r.measured, q.measured AS was, x.measured AS exact, y.measured AS was_exact,
        r.outcome = 'scored' AND q.outcome = 'scored' AS both_scored,
        r.missing = q.missing AS same_live
    FROM cur c JOIN ref p USING (content_hash, n)
    JOIN recallwatch.result r ON r.run_id = :current AND r.position = c.position
    JOIN recallwatch.result q ON q.run_id = :reference AND q.position = p.position
    LEFT JOIN recallwatch.exact_result x ON x.run_id = :current AND x.position = c.position
    LEFT JOIN recallwatch.exact_result y ON y.run_id = :reference AND y.position = p.position
""")

ROWS: dict[Rows, str] = {
    "shared": "(SELECT * FROM pair WHERE both_scored AND same_live) AS shared",
    "shadowed": """(
        SELECT exact AS measured, was_exact AS was, measured AS served, was AS was_served FROM pair
        WHERE both_scored AND same_live AND exact IS NOT NULL AND was_exact IS NOT NULL
    ) AS shadowed""",
}
"""What stands behind FROM, after `pair_up`."""


def pair_up(session: Session, run: Run, reference: Run) -> None:
    """Pair the questions of two runs into the temporary table `pair`, for the queries that follow.

    At a million questions the pairing costs more than what is then asked of the pairs. The table
    is the transaction's; pairing two other runs replaces it.
    """
    plan_for_many(session)
    session.execute(text("DROP TABLE IF EXISTS pg_temp.pair"))
    session.execute(_PAIR_UP, {"current": run.id, "reference": reference.id})


def changes_of(
    session: Session, run: Run, reference: Run, names: Sequence[str], rows: Rows = "shared"
) -> tuple[list[Change], int, int]:
    """Average measures that both runs have over the pairs; count the hits at k lost and won.

    There must be a pair; call `pair_up` first.
    """
    now = [run.measures.index(name) + 1 for name in names]
    was = [reference.measures.index(name) + 1 for name in names]
    means = [f"avg(measured[{i}]), avg(was[{j}])" for i, j in zip(now, was, strict=True)]
    hit_now, hit_was = hits(run, reference)
    query = text(f"""
        SELECT count(*) FILTER (WHERE {hit_was} > {hit_now}),
            count(*) FILTER (WHERE {hit_now} > {hit_was}), {", ".join(means)} FROM {ROWS[rows]}
    """)
    row = session.execute(query).one()
    pairs = zip(names, row[2::2], row[3::2], strict=True)
    return [Change(name, float(a), float(b)) for name, a, b in pairs], row[0], row[1]


def add_statistics(
    session: Session,
    run: Run,
    reference: Run,
    changes: Sequence[Change],
    rows: Rows = "shared",
) -> list[Change]:
    """Give the metrics at k their interval and p-value, from the counted differences.

    Call `pair_up` first.
    """
    names = [change.metric for change in changes if Measure.parse(change.metric).k == run.k]
    if not names:
        return list(changes)
    found = _differences(session, run, reference, names, rows)
    return [
        with_statistics(change, found[change.metric], seed_of(run.id, reference.id, change.metric))
        if change.metric in found
        else change
        for change in changes
    ]


def _differences(
    session: Session, run: Run, reference: Run, names: Sequence[str], rows: Rows
) -> dict[str, Differences]:
    """Count each metric's distinct differences over the pairs, in one pass.

    Rounded to 12 digits, so that equal differences of different fractions are one. Most questions
    did not change: what is zero is not grouped, but counted as what the others leave.
    """
    entries = ", ".join(
        f"({number}, measured[{run.measures.index(name) + 1}]"
        f" - was[{reference.measures.index(name) + 1}])"
        for number, name in enumerate(names)
    )
    query = text(f"""
        SELECT number, round(difference::numeric, 12)::float8 AS difference, count(*) AS n
        FROM {ROWS[rows]}, LATERAL (VALUES {entries}) AS entry(number, difference)
        WHERE difference <> 0 GROUP BY 1, 2
    """)
    total = session.scalar(text(f"SELECT count(*) FROM {ROWS[rows]}")) or 0
    moved: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
    for row in session.execute(query):
        moved[names[row.number]].append((row.difference, row.n))
    return {name: _with_zeros(pairs, total) for name, pairs in moved.items() if total}


def _with_zeros(moved: Sequence[tuple[float, int]], total: int) -> Differences:
    zeros = total - sum(n for _, n in moved)
    pairs = [(0.0, zeros), *moved]
    return Differences.of([value for value, _ in pairs], [n for _, n in pairs])


def hits(run: Run, reference: Run) -> tuple[str, str]:
    """Return the SQL of hit@k on both sides."""
    name = f"hit@{run.k}"
    return (
        f"measured[{run.measures.index(name) + 1}]",
        f"was[{reference.measures.index(name) + 1}]",
    )
