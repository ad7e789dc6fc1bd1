"""The tables of schema `recallwatch`, as SQLAlchemy maps them.

The migrations are what creates them; a test checks that both say the same. States are text with
a CHECK, so that adding one is a small migration. docs/state_machine.md draws run and shard.
"""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from pipeline.types import (
    AlertKind,
    AlertState,
    Kind,
    Level,
    Outcome,
    RunStatus,
    ShardKind,
    ShardState,
    SlotOutcome,
    Source,
    Status,
    Trigger,
    Verdict,
)
from pipeline.verdict.gate import Cause

SCHEMA = "recallwatch"

Json = dict[str, Any]


def _one_of(column: str, values: type[Kind] | type[Level] | type[Any]) -> CheckConstraint:
    """CHECK that a text column holds one of an enum's values."""
    allowed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({allowed})", name=f"{column}_known")


class Base(DeclarativeBase):
    """Root of the mapped classes; gives every constraint a name that migrations can use."""

    metadata = MetaData(
        schema=SCHEMA,
        naming_convention={
            "pk": "%(table_name)s_pkey",
            "fk": "%(table_name)s_%(column_0_name)s_fkey",
            "ck": "%(table_name)s_%(constraint_name)s",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        },
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        int: BigInteger,
        bool: Boolean,
        datetime: DateTime(timezone=True),
        Json: JSONB,
    }


class Question(Base):
    """A golden question as people edit it; runs never read this table, they read versions."""

    __tablename__ = "question"
    __table_args__ = (
        _one_of("kind", Kind),
        _one_of("source", Source),
        _one_of("status", Status),
        CheckConstraint("btrim(text) <> ''", name="text_not_blank"),
        Index(
            "question_external_id_key",
            "set_name",
            "external_id",
            unique=True,
            postgresql_where=text("external_id IS NOT NULL"),
        ),
        Index(
            "question_content_key",
            "set_name",
            "content_hash",
            unique=True,
            postgresql_where=text("external_id IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    set_name: Mapped[str]
    external_id: Mapped[str | None]
    text: Mapped[str]
    content_hash: Mapped[str]
    item_hash: Mapped[str]
    kind: Mapped[str]
    category: Mapped[str | None]
    tenant: Mapped[str | None]
    language: Mapped[str | None]
    source: Mapped[str]
    status: Mapped[str]
    must_pass: Mapped[bool]
    notes: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Judgment(Base):
    """One expected key of a question and its grade."""

    __tablename__ = "judgment"

    question_id: Mapped[int] = mapped_column(
        ForeignKey(Question.id, ondelete="CASCADE"), primary_key=True
    )
    key: Mapped[str] = mapped_column(primary_key=True)
    grade: Mapped[int] = mapped_column(Integer)


class GoldenVersion(Base):
    """An immutable, numbered snapshot of the active questions of a set."""

    __tablename__ = "golden_version"
    __table_args__ = (
        UniqueConstraint("set_name", "fingerprint"),
        CheckConstraint("size > 0", name="not_empty"),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    set_name: Mapped[str]
    fingerprint: Mapped[str]
    size: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class GoldenItem(Base):
    """One question of a version; a trigger refuses every UPDATE."""

    __tablename__ = "golden_item"
    __table_args__ = (
        CheckConstraint("position >= 0", name="position_from_zero"),
        Index("golden_item_content_hash_idx", "version_id", "content_hash"),
    )

    version_id: Mapped[int] = mapped_column(
        ForeignKey(GoldenVersion.id, ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    question_id: Mapped[int]
    external_id: Mapped[str | None]
    content_hash: Mapped[str]
    text: Mapped[str]
    expected: Mapped[Json]
    kind: Mapped[str]
    category: Mapped[str | None]
    tenant: Mapped[str | None]
    language: Mapped[str | None]
    source: Mapped[str]
    must_pass: Mapped[bool]


class Batch(Base):
    """The runs that one trigger started together; they share shards of embedded questions.

    `quiet_until`: workers leave it alone until then, for the corpus may still be changing; NULL
    once they were rung.
    """

    __tablename__ = "batch"
    __table_args__ = (
        _one_of("trigger", Trigger),
        Index("batch_quiet_idx", "quiet_until", postgresql_where=text("quiet_until IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    version_id: Mapped[int] = mapped_column(ForeignKey(GoldenVersion.id))
    trigger: Mapped[str]
    requested_by: Mapped[str | None]
    quiet_until: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Run(Base):
    """One strategy over one golden version at one k and level: the record of what was measured.

    `settings` is everything a worker needs to retrieve the way the trigger asked: the strategy
    (hybrid arms inlined), the corpus table and the embedding. `measures` names the entries of
    every result's `measured`, in order.
    """

    __tablename__ = "run"
    __table_args__ = (
        _one_of("level", Level),
        _one_of("status", RunStatus),
        _one_of("verdict", Verdict),
        _one_of("cause", Cause),
        CheckConstraint("k BETWEEN 1 AND 1000", name="k_in_range"),
        CheckConstraint(
            "(status IN ('completed', 'failed')) = (verdict IS NOT NULL)"
            " AND (verdict IS NULL) = (finished_at IS NULL)",
            name="verdict_when_finished",
        ),
        CheckConstraint(
            "status <> 'failed' OR verdict = 'unmeasured'", name="failed_is_unmeasured"
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


class Baseline(Base):
    """A run that a person pinned: later ones of its set, strategy, k and level face it too."""

    __tablename__ = "baseline"

    set_name: Mapped[str] = mapped_column(primary_key=True)
    strategy: Mapped[str] = mapped_column(primary_key=True)
    k: Mapped[int] = mapped_column(Integer, primary_key=True)
    level: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey(Run.id, ondelete="CASCADE"))
    pinned_at: Mapped[datetime] = mapped_column(server_default=func.now())
    pinned_by: Mapped[str | None]


class Alert(Base):
    """An outbox row: one alert to one channel, written in the transaction that gave the verdict."""

    __tablename__ = "alert"
    __table_args__ = (
        _one_of("state", AlertState),
        _one_of("kind", AlertKind),
        UniqueConstraint("run_id", "channel", "kind"),
        CheckConstraint(
            "state <> 'claimed' OR claimed_at IS NOT NULL", name="claimed_when_claimed"
        ),
        CheckConstraint("(state = 'sent') = (sent_at IS NOT NULL)", name="sent_when_sent"),
        CheckConstraint(
            "state NOT IN ('failed', 'unknown') OR error IS NOT NULL", name="failed_says_why"
        ),
        Index(
            "alert_waiting_idx", "next_at", postgresql_where=text("state IN ('pending', 'claimed')")
        ),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey(Run.id, ondelete="CASCADE"))
    channel: Mapped[str]
    kind: Mapped[str]
    payload: Mapped[Json]
    state: Mapped[str] = mapped_column(server_default=AlertState.PENDING.value)
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    next_at: Mapped[datetime] = mapped_column(server_default=func.now())
    claimed_at: Mapped[datetime | None]
    sent_at: Mapped[datetime | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Shard(Base):
    """A contiguous slice of a run's questions: the unit of queue work.

    `token` is the fencing token: every claim raises it, and only the holder of the newest one
    may store results. Of an exact shard, the positions are ranks in the order of `db.exact`, a
    done one may have an `error`: it ended without results; `ef_search` is what it found out about
    the index, see `workers.ef_search`.
    """

    __tablename__ = "shard"
    __table_args__ = (
        _one_of("state", ShardState),
        _one_of("kind", ShardKind),
        CheckConstraint(
            "first_position >= 0 AND last_position >= first_position", name="slice_not_empty"
        ),
        CheckConstraint("(state = 'leased') = (lease_until IS NOT NULL)", name="lease_when_leased"),
        CheckConstraint("state <> 'failed' OR error IS NOT NULL", name="failed_says_why"),
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


class Result(Base):
    """What became of one question in one run; `measured` follows the run's `measures`."""

    __tablename__ = "result"
    __table_args__ = (
        _one_of("outcome", Outcome),
        CheckConstraint(
            "(outcome = 'scored') = (measured IS NOT NULL)", name="measured_when_scored"
        ),
        CheckConstraint("(outcome = 'failed') = (error IS NOT NULL)", name="error_when_failed"),
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


class ExactResult(Base):
    """What exact search would have served for one question of a run with an index."""

    __tablename__ = "exact_result"

    run_id: Mapped[int] = mapped_column(ForeignKey(Run.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    retrieved: Mapped[list[str]] = mapped_column(ARRAY(Text))
    measured: Mapped[list[float]] = mapped_column(ARRAY(Double))


class Calibration(Base):
    """How often a question's hit flips between two measurements of the same thing.

    `settings` and `corpus_fingerprint` are those of the runs it was measured for; `differences`
    maps a metric to [value, count] pairs, over all A/A pairs, `totals` to its sum in each round.
    """

    __tablename__ = "calibration"
    __table_args__ = (
        _one_of("level", Level),
        CheckConstraint("n > 0 AND pairs > 0", name="measured_something"),
        CheckConstraint("flips BETWEEN 0 AND n * pairs", name="flips_in_range"),
        CheckConstraint("largest_net BETWEEN 0 AND n", name="net_in_range"),
        Index("calibration_strategy_idx", "set_name", "strategy", "k", "level", "id"),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    set_name: Mapped[str]
    strategy: Mapped[str]
    k: Mapped[int] = mapped_column(Integer)
    level: Mapped[str]
    version_id: Mapped[int] = mapped_column(ForeignKey(GoldenVersion.id))
    settings: Mapped[Json]
    corpus_fingerprint: Mapped[Json]
    reindexed: Mapped[bool]
    n: Mapped[int]
    pairs: Mapped[int] = mapped_column(Integer)
    flips: Mapped[int]
    largest_net: Mapped[int]
    differences: Mapped[Json]
    totals: Mapped[Json]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class SeenSchedule(Base):
    """When a schedule of this name and rule was first seen: earlier slots are not made up for."""

    __tablename__ = "seen_schedule"

    name: Mapped[str] = mapped_column(primary_key=True)
    rule: Mapped[str] = mapped_column(primary_key=True)
    seen_at: Mapped[datetime]


class ScheduleSlot(Base):
    """A time at which a schedule was due, and what became of it; its key makes it happen once."""

    __tablename__ = "schedule_slot"
    __table_args__ = (
        _one_of("outcome", SlotOutcome),
        CheckConstraint(
            "(outcome = 'started') = (batch_id IS NOT NULL)"
            " AND (outcome = 'started') = (reason IS NULL)",
            name="batch_or_reason",
        ),
    )

    schedule: Mapped[str] = mapped_column(primary_key=True)
    due_at: Mapped[datetime] = mapped_column(primary_key=True)
    outcome: Mapped[str]
    batch_id: Mapped[int | None] = mapped_column(ForeignKey(Batch.id, ondelete="CASCADE"))
    reason: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
