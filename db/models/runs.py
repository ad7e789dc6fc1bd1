"""Batches, runs, their shards and results."""

from datetime import datetime

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Text,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, Json, one_of
from db.models.golden import GoldenVersion
from pipeline.types import (
    Level,
    Outcome,
    RunStatus,
    ShardKind,
    ShardState,
    Trigger,
    Verdict,
)
from pipeline.verdict.gate import Cause


class Batch(Base):
    """The runs that one trigger started together; they share shards of embedded questions.

    `quiet_until`: workers leave it alone until then, for the corpus may still be changing; NULL
    once they were rung. `max_cost` and `spent` are US dollars that its questions' vectors may cost
    (NULL: any) and have cost, see `db.spending`.
    """

    __tablename__ = "batch"
    __table_args__ = (
        one_of("trigger", Trigger),
        CheckConstraint("max_cost >= 0 AND max_cost < 'Infinity'", name="max_cost_is_an_amount"),
        CheckConstraint("spent >= 0", name="spent_not_negative"),
        Index("batch_quiet_idx", "quiet_until", postgresql_where=text("quiet_until IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    version_id: Mapped[int] = mapped_column(ForeignKey(GoldenVersion.id))
    trigger: Mapped[str]
    requested_by: Mapped[str | None]
    quiet_until: Mapped[datetime | None]
    max_cost: Mapped[float | None] = mapped_column(Double)
    spent: Mapped[float] = mapped_column(Double, server_default=text("0"))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Run(Base):
    """One strategy over one golden version at one k and level: the record of what was measured.

    `settings` is everything a worker needs to retrieve the way the trigger asked: the strategy
    (hybrid arms inlined), the corpus table and the embedding. `measures` names the entries of
    every result's `measured`, in order. The reducer claims the run as a worker claims a shard:
    `reduce_next_at` is when it may be tried again.
    """

    __tablename__ = "run"
    __table_args__ = (
        one_of("level", Level),
        one_of("status", RunStatus),
        one_of("verdict", Verdict),
        one_of("cause", Cause),
        CheckConstraint("k BETWEEN 1 AND 1000", name="k_in_range"),
        CheckConstraint(
            "(status IN ('completed', 'failed', 'cancelled')) = (verdict IS NOT NULL)"
            " AND (verdict IS NULL) = (finished_at IS NULL)",
            name="verdict_when_finished",
        ),
        CheckConstraint(
            "status NOT IN ('failed', 'cancelled') OR verdict = 'unmeasured'",
            name="failed_is_unmeasured",
        ),
        CheckConstraint(
            "status <> 'completed' OR (n_scored + n_failed + n_ineligible = size) IS TRUE",
            name="every_question_counted",
        ),
        Index("run_batch_id_idx", "batch_id"),
        Index("run_reference_idx", "strategy", "k", "level", "id"),
        Index("run_unfinished_idx", "id", postgresql_where=text("status IN ('queued', 'running')")),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    batch_id: Mapped[int] = mapped_column(ForeignKey(Batch.id))
    strategy: Mapped[str]
    settings: Mapped[Json]
    needs_vectors: Mapped[bool]
    k: Mapped[int] = mapped_column(Integer)
    level: Mapped[str]
    convention: Mapped[str]
    measures: Mapped[list[str]] = mapped_column(ARRAY(Text))
    relevance_threshold: Mapped[int] = mapped_column(Integer)
    gate: Mapped[Json]
    size: Mapped[int]
    status: Mapped[str] = mapped_column(server_default=RunStatus.QUEUED.value)
    verdict: Mapped[str | None]
    reasons: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    findings: Mapped[list[Json] | None] = mapped_column(JSONB)
    cause: Mapped[str | None]
    exact: Mapped[Json | None]
    metrics: Mapped[Json | None]
    facts: Mapped[Json | None]
    by_category: Mapped[Json | None]
    by_tenant: Mapped[Json | None]
    by_source: Mapped[Json | None]
    comparison: Mapped[Json | None]
    n_scored: Mapped[int | None]
    n_failed: Mapped[int | None]
    n_ineligible: Mapped[int | None]
    latency: Mapped[Json | None]
    cost: Mapped[Json | None]
    embedding_model: Mapped[str | None]
    corpus_fingerprint: Mapped[Json]
    git_sha: Mapped[str | None]
    compared_to: Mapped[int | None] = mapped_column(ForeignKey("recallwatch.run.id"))
    baseline_run: Mapped[int | None] = mapped_column(ForeignKey("recallwatch.run.id"))
    baseline_comparison: Mapped[Json | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    deadline_at: Mapped[datetime]
    reduce_attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    reduce_next_at: Mapped[datetime | None]
    reduce_error: Mapped[str | None]


class Shard(Base):
    """A contiguous slice of a run's questions: the unit of queue work.

    `token` is the fencing token: every claim raises it, and only the holder of the newest one
    may store results. Of an exact shard, the positions are ranks in the order of `db.exact`, a
    done one may have an `error`: it ended without results, or was `refused` and never to be had;
    `ef_search` is what it found out about the index, see `workers.ef_search`.
    """

    __tablename__ = "shard"
    __table_args__ = (
        one_of("state", ShardState),
        one_of("kind", ShardKind),
        CheckConstraint(
            "first_position >= 0 AND last_position >= first_position", name="slice_not_empty"
        ),
        CheckConstraint("(state = 'leased') = (lease_until IS NOT NULL)", name="lease_when_leased"),
        CheckConstraint("state <> 'failed' OR error IS NOT NULL", name="failed_says_why"),
        CheckConstraint(
            "NOT refused OR kind = 'exact' AND state = 'done' AND error IS NOT NULL",
            name="refused_is_over",
        ),
    )

    run_id: Mapped[int] = mapped_column(ForeignKey(Run.id, ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    kind: Mapped[str] = mapped_column(server_default=ShardKind.SERVED.value)
    first_position: Mapped[int] = mapped_column(Integer)
    last_position: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(server_default=ShardState.PENDING.value)
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    token: Mapped[int] = mapped_column(server_default=text("0"))
    lease_until: Mapped[datetime | None]
    next_at: Mapped[datetime | None]
    rung_at: Mapped[datetime | None]
    worker: Mapped[str | None]
    error: Mapped[str | None]
    stats: Mapped[Json | None]
    ef_search: Mapped[Json | None]
    refused: Mapped[bool] = mapped_column(server_default=false())


class Result(Base):
    """What became of one question in one run; `measured` follows the run's `measures`.

    `returned`: rows that the retriever gave, before they were cut to k and, at document level,
    collapsed; NULL where it gave none because it failed. `leaked`: chunk keys that are another
    tenant's, in the ranking or in that of a stage. `ms`: milliseconds of its search alone, of those
    questions that were timed.
    """

    __tablename__ = "result"
    __table_args__ = (
        one_of("outcome", Outcome),
        CheckConstraint(
            "(outcome = 'scored') = (measured IS NOT NULL)", name="measured_when_scored"
        ),
        CheckConstraint("(outcome = 'failed') = (error IS NOT NULL)", name="error_when_failed"),
        CheckConstraint("returned >= 0", name="returned_not_negative"),
        CheckConstraint("ms >= 0", name="ms_not_negative"),
    )

    run_id: Mapped[int] = mapped_column(ForeignKey(Run.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    outcome: Mapped[str]
    retrieved: Mapped[list[str]] = mapped_column(ARRAY(Text))
    scores: Mapped[list[float]] = mapped_column(ARRAY(Double))
    measured: Mapped[list[float] | None] = mapped_column(ARRAY(Double))
    first_rank: Mapped[int | None] = mapped_column(Integer)
    missing: Mapped[list[str]] = mapped_column(ARRAY(Text))
    error: Mapped[str | None]
    returned: Mapped[int | None] = mapped_column(Integer)
    leaked: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    ms: Mapped[float | None] = mapped_column(Double)


class StageRanking(Base):
    """What one stage of a strategy gave for a question: an arm, or the candidates of a reranker.

    `stage` is its name; that of a stage within one comes after it, as `candidates/vector`. It goes
    with its result: a question that is asked again has new ones.
    """

    __tablename__ = "stage_ranking"
    __table_args__ = (
        ForeignKeyConstraint(
            ["run_id", "position"],
            [Result.run_id, Result.position],
            ondelete="CASCADE",
            name="stage_ranking_run_id_position_fkey",
        ),
    )

    run_id: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    stage: Mapped[str] = mapped_column(primary_key=True)
    retrieved: Mapped[list[str]] = mapped_column(ARRAY(Text))
    scores: Mapped[list[float]] = mapped_column(ARRAY(Double))


class ExactResult(Base):
    """What exact search would have served for one question of a run with an index."""

    __tablename__ = "exact_result"

    run_id: Mapped[int] = mapped_column(ForeignKey(Run.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    retrieved: Mapped[list[str]] = mapped_column(ARRAY(Text))
    measured: Mapped[list[float]] = mapped_column(ARRAY(Double))
