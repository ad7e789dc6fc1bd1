"""What surrounds runs: baselines, calibrations, alerts, schedules."""

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, Json, one_of
from db.models.golden import GoldenVersion
from db.models.runs import Batch, Run
from pipeline.types import (
    AlertKind,
    AlertState,
    Level,
    SlotOutcome,
)


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


class Calibration(Base):
    """How often a question's hit flips between two measurements of the same thing.

    `settings` and `corpus_fingerprint` are those of the runs it was measured for; `differences`
    maps a metric to [value, count] pairs, over all A/A pairs, `totals` to its sum in each round.
    """

    __tablename__ = "calibration"
    __table_args__ = (
        one_of("level", Level),
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


class Alert(Base):
    """An outbox row: one alert to one channel, written in the transaction that gave the verdict."""

    __tablename__ = "alert"
    __table_args__ = (
        one_of("state", AlertState),
        one_of("kind", AlertKind),
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
        one_of("outcome", SlotOutcome),
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
