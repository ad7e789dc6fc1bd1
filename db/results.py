"""Results: one row a question and run, written with the shard's close, aggregated in SQL."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from db import run_states, shards
from db.models import Run
from db.session import driver_connection
from db.shards import Claim
from pipeline.types import Outcome, Ranking


@dataclass(frozen=True, slots=True)
class ResultRow:
    """What became of one question; see `db.models.Result`."""

    position: int
    outcome: Outcome
    retrieved: Sequence[str]
    scores: Sequence[float]
    measured: Sequence[float] | None
    first_rank: int | None
    missing: Sequence[str]
    error: str | None
    returned: int | None = None
    leaked: Sequence[str] = ()
    ms: float | None = None
    stages: Mapping[str, Ranking] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many questions of a run had which outcome."""

    scored: int
    failed: int
    ineligible: int

    @property
    def total(self) -> int:
        """All questions with a stored result."""
        return self.scored + self.failed + self.ineligible


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Counts, and the mean over the scored questions of each of the run's measures."""

    counts: Counts
    means: dict[str, float]


_COPY = """
COPY recallwatch.result (run_id, position, outcome, retrieved, scores, measured, first_rank,
                         missing, error, returned, leaked, ms) FROM STDIN (FORMAT BINARY)
"""
_TYPES = ["int8", "int4", "text", "text[]", "float8[]", "float8[]", "int4", "text[]", "text",
          "int4", "text[]", "float8"]  # fmt: skip

_COPY_STAGES = """
COPY recallwatch.stage_ranking (run_id, position, stage, retrieved, scores)
FROM STDIN (FORMAT BINARY)
"""
_STAGE_TYPES = ["int8", "int4", "text", "text[]", "float8[]"]


def store(
    session: Session, claim: Claim, rows: Sequence[ResultRow], *, stats: dict[str, float]
) -> bool | None:
    """Write a shard's results and its close in the session's one transaction.

    The close checks the fencing token first: a worker that lost its claim writes nothing and
    gets None. Else says, under the run's lock, whether this was the run's last shard of any kind.
    """
    if len(rows) != len(claim):
        raise ValueError(f"shard of {len(claim)} questions got {len(rows)} results")
    if not shards.close(session, claim, stats=json.dumps(stats)):
        return None
    _write(session, claim.run_id, rows)
    _write_stages(session, claim.run_id, rows)
    return run_states.lock(session, claim.run_id) is not None and shards.all_done(
        session, claim.run_id
    )


def _write(session: Session, run_id: int, rows: Sequence[ResultRow]) -> None:
    with driver_connection(session).cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(_TYPES)
        for row in rows:
            measured = None if row.measured is None else list(row.measured)
            copy.write_row((run_id, row.position, row.outcome, list(row.retrieved),
                            list(row.scores), measured, row.first_rank, list(row.missing),
                            row.error, row.returned, list(row.leaked), row.ms))  # fmt: skip


def _write_stages(session: Session, run_id: int, rows: Sequence[ResultRow]) -> None:
    if not any(row.stages for row in rows):
        return
    with driver_connection(session).cursor() as cursor, cursor.copy(_COPY_STAGES) as copy:
        copy.set_types(_STAGE_TYPES)
        for row in rows:
            for stage, ranking in row.stages.items():
                values = list(ranking.keys), list(ranking.scores)
                copy.write_row((run_id, row.position, stage, *values))


def _means(measures: Sequence[str]) -> str:
    """Write the SQL for the mean of each entry of `measured`, in order: columns m1, m2, ..."""
    return ", ".join(f"avg(r.measured[{i}]) AS m{i}" for i in range(1, len(measures) + 1))


_COUNTS = """
count(*) FILTER (WHERE r.outcome = 'scored') AS scored,
count(*) FILTER (WHERE r.outcome = 'failed') AS failed,
count(*) FILTER (WHERE r.outcome = 'ineligible') AS ineligible
"""


def aggregate(session: Session, run: Run) -> Aggregate:
    """Count a run's outcomes and average its measures over the scored questions."""
    query = text(f"SELECT {_COUNTS}, {_means(run.measures)} FROM recallwatch.result r"
                 " WHERE r.run_id = :run_id")  # fmt: skip
    return _aggregate(session.execute(query, {"run_id": run.id}).one(), run.measures)


def aggregate_by(session: Session, run: Run, column: str, version_id: int) -> dict[str, Aggregate]:
    """Do the same for each value of a golden item's column (category, tenant, source)."""
    if column not in {"category", "tenant", "source"}:
        raise ValueError(f"cannot group by {column!r}")
    query = text(f"""
        SELECT i.{column} AS name, {_COUNTS}, {_means(run.measures)}
        FROM recallwatch.result r JOIN recallwatch.golden_item i
          ON i.version_id = :version_id AND i.position = r.position
        WHERE r.run_id = :run_id AND i.{column} IS NOT NULL
        GROUP BY i.{column} ORDER BY i.{column}
    """)
    rows = session.execute(query, {"run_id": run.id, "version_id": version_id})
    return {row.name: _aggregate(row, run.measures) for row in rows}


def _aggregate(row: Row[Any], measures: Sequence[str]) -> Aggregate:
    values = {name: getattr(row, f"m{i}") for i, name in enumerate(measures, start=1)}
    return Aggregate(
        Counts(row.scored, row.failed, row.ineligible),
        {name: value for name, value in values.items() if value is not None},
    )


def facts(session: Session, run_id: int) -> dict[str, Any]:
    """Count what a reader should know beside the means: dead keys, empty rankings, best scores.

    The best score of unanswerable questions is their only figure: it has no right answer to rank,
    but a threshold that refuses to answer must lie above it.
    """
    query = text("""
        SELECT coalesce(sum(cardinality(r.missing)), 0)::bigint AS missing_keys,
            count(*) FILTER (WHERE outcome = 'scored' AND cardinality(missing) > 0)
                AS partly_live,
            count(*) FILTER (WHERE outcome = 'scored' AND cardinality(retrieved) = 0) AS empty,
            count(*) FILTER (WHERE i.kind = 'unanswerable') AS unanswerable,
            count(*) FILTER (WHERE i.kind = 'answerable' AND outcome = 'ineligible') AS dead,
            count(*) FILTER (WHERE outcome = 'scored' AND run.k < (
                SELECT count(DISTINCT live.name) FROM jsonb_each_text(i.expected) e,
                    LATERAL (SELECT CASE run.level WHEN 'document'
                        THEN regexp_replace(e.key, ':[^:]*$', '') ELSE e.key END AS name) AS live
                WHERE e.value::integer >= run.relevance_threshold
                    AND live.name <> ALL(r.missing))) AS more_expected_than_k,
            avg(scores[1]) FILTER (WHERE i.kind = 'unanswerable') AS unanswerable_best_score,
            avg(scores[1]) FILTER (WHERE outcome = 'scored') AS scored_best_score,
            min(error) FILTER (WHERE outcome = 'failed') AS example_error
        FROM recallwatch.result r
        JOIN recallwatch.run ON run.id = r.run_id JOIN recallwatch.batch b ON b.id = run.batch_id
        JOIN recallwatch.golden_item i ON i.version_id = b.version_id AND i.position = r.position
        WHERE r.run_id = :run_id
    """)
    return dict(session.execute(query, {"run_id": run_id}).mappings().one())


PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def latency(session: Session, run_id: int) -> dict[str, float] | None:
    """Return the percentiles, in milliseconds, of the `n` searches that were timed; None: none was.

    Interpolated between the two searches around, as numpy does by default.
    """
    columns = ", ".join(
        f"percentile_cont({share}) WITHIN GROUP (ORDER BY ms) AS {name}"
        for name, share in PERCENTILES.items()
    )
    query = text(f"SELECT count(ms) AS n, {columns} FROM recallwatch.result WHERE run_id = :run_id")
    found = session.execute(query, {"run_id": run_id}).mappings().one()
    return dict(found) if found["n"] else None


def leaks(session: Session, run: Run) -> dict[str, Any] | None:
    """Count the results that are another tenant's, and give one; None: there are none."""
    query = text("""
        SELECT count(*) AS questions, sum(cardinality(r.leaked))::bigint AS results,
            (array_agg(r.leaked[1] ORDER BY r.position))[1] AS key,
            (array_agg(i.text ORDER BY r.position))[1] AS question,
            (array_agg(i.tenant ORDER BY r.position))[1] AS tenant
        FROM recallwatch.result r
        JOIN recallwatch.run ON run.id = r.run_id JOIN recallwatch.batch b ON b.id = run.batch_id
        JOIN recallwatch.golden_item i ON i.version_id = b.version_id AND i.position = r.position
        WHERE r.run_id = :run_id AND cardinality(r.leaked) > 0
    """)
    found = session.execute(query, {"run_id": run.id}).mappings().one()
    return dict(found) if found["questions"] else None


@dataclass(frozen=True, slots=True)
class MustPass:
    """What became of a run's must-pass questions: `missed` are the texts of those without a hit."""

    scored: int
    missed: Sequence[str]
    not_scored: int


def must_pass(session: Session, run: Run, version_id: int) -> MustPass:
    """Count the must-pass questions that were scored, were missed, or could not be scored."""
    hit = run.measures.index(f"hit@{run.k}") + 1
    query = text(f"""
        SELECT count(*) FILTER (WHERE outcome = 'scored') AS scored,
            array_agg(i.text ORDER BY i.position)
                FILTER (WHERE outcome = 'scored' AND measured[{hit}] = 0) AS missed,
            count(*) FILTER (WHERE outcome <> 'scored') AS not_scored
        FROM recallwatch.result r JOIN recallwatch.golden_item i
            ON i.version_id = :version_id AND i.position = r.position
        WHERE r.run_id = :run_id AND i.must_pass AND i.kind = 'answerable'
    """)
    row = session.execute(query, {"run_id": run.id, "version_id": version_id}).one()
    return MustPass(row.scored, row.missed or [], row.not_scored)


def shard_stats(session: Session, run_id: int) -> dict[str, float]:
    """Add up the shards' seconds and counts by name."""
    query = text("""
        SELECT e.key, sum(e.value::float8) AS total
        FROM recallwatch.shard s, jsonb_each_text(s.stats) e
        WHERE s.run_id = :run_id GROUP BY e.key ORDER BY e.key
    """)
    return {row.key: row.total for row in session.execute(query, {"run_id": run_id})}


# At document level a stage's chunks stand for their documents, as they do in the run's ranking.
_NAME = "CASE run.level WHEN 'document' THEN regexp_replace({}, ':[^:]*$', '') ELSE {} END"

_FIRST_IN_STAGES = f"""
(SELECT jsonb_object_agg(s.stage, (
    SELECT min(found.rank) FROM (
        SELECT {_NAME.format("key", "key")} AS name, CASE run.level
            WHEN 'document' THEN row_number() OVER (ORDER BY min(place)) ELSE min(place) END AS rank
        FROM unnest(s.retrieved) WITH ORDINALITY AS returned (key, place) GROUP BY 1) AS found
    JOIN jsonb_each_text(i.expected) AS e ON {_NAME.format("e.key", "e.key")} = found.name
    WHERE e.value::integer >= run.relevance_threshold
      AND {_NAME.format("e.key", "e.key")} <> ALL(r.missing)))
 FROM recallwatch.stage_ranking s WHERE s.run_id = r.run_id AND s.position = r.position)
"""

_DETAIL = f"""
SELECT r.*, i.external_id, i.question_id, i.content_hash, i.text, i.expected, i.kind, i.category,
       i.tenant, i.language, i.source, i.must_pass, {_FIRST_IN_STAGES} AS first_in_stages,
       x.retrieved AS exact_retrieved, x.measured AS exact_measured
FROM recallwatch.result r LEFT JOIN recallwatch.exact_result x USING (run_id, position)
JOIN recallwatch.run ON run.id = r.run_id JOIN recallwatch.batch b ON b.id = run.batch_id
JOIN recallwatch.golden_item i ON i.version_id = b.version_id AND i.position = r.position
WHERE r.run_id = :run_id
"""


def details(session: Session, run_id: int) -> Iterator[Row[Any]]:
    """Yield every result with its question, in order, without holding them all."""
    query = text(_DETAIL + " ORDER BY r.position")
    yield from session.execute(query, {"run_id": run_id}, execution_options={"yield_per": 1000})


def must_pass_details(session: Session, run_id: int) -> Sequence[Row[Any]]:
    """Return the results of the must-pass questions with their questions, in order."""
    query = text(_DETAIL + " AND i.must_pass ORDER BY r.position")
    return session.execute(query, {"run_id": run_id}).all()


def misses(session: Session, run: Run, *, limit: int) -> Sequence[Row[Any]]:
    """Return scored questions without a hit at k, and failed ones, worst first.

    Failed ones come first, then those found nowhere, then by how deep the first expected key was.
    """
    hit = run.measures.index(f"hit@{run.k}") + 1
    query = text(
        _DETAIL
        + f"""
        AND (r.outcome = 'failed' OR r.outcome = 'scored' AND r.measured[{hit}] = 0)
        ORDER BY r.outcome, r.first_rank DESC NULLS FIRST, r.position LIMIT :limit
    """
    )
    return session.execute(query, {"run_id": run.id, "limit": limit}).all()
