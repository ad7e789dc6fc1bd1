"""Generated questions: a generation, its requests to the model, and the candidates they gave."""

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    SmallInteger,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, Json, one_of
from db.models.golden import Question
from pipeline.generation.base import CandidateState, GenerationStatus, RequestState
from pipeline.types import Kind


class Generation(Base):
    """What one `recallwatch golden generate` asked for: all that its workers need to know.

    `max_cost` and `spent` are US dollars, as of a batch; see `db.generation_requests`. The columns
    `screen_...` say who filters the candidates, and how often that was tried since it last got on.
    """

    __tablename__ = "generation"
    __table_args__ = (
        one_of("status", GenerationStatus),
        CheckConstraint("max_cost >= 0 AND max_cost < 'Infinity'", name="max_cost_is_an_amount"),
        CheckConstraint("spent >= 0 AND spent < 'Infinity'", name="spent_is_an_amount"),
        CheckConstraint(
            "(status IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)",
            name="finished_when_over",
        ),
        CheckConstraint("status <> 'failed' OR error IS NOT NULL", name="failed_says_why"),
        Index(
            "generation_unfinished_idx",
            "id",
            postgresql_where=text("status IN ('queued', 'running', 'screening')"),
        ),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    set_name: Mapped[str]
    status: Mapped[str] = mapped_column(server_default=GenerationStatus.QUEUED.value)
    settings: Mapped[Json]
    message_batches: Mapped[bool]
    corpus_fingerprint: Mapped[Json]
    max_cost: Mapped[float | None] = mapped_column(Double)
    spent: Mapped[float] = mapped_column(Double, server_default=text("0"))
    requested_by: Mapped[str | None]
    error: Mapped[str | None]
    screen_token: Mapped[int] = mapped_column(server_default=text("0"))
    screen_attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    screen_next_at: Mapped[datetime | None]
    screen_error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    deadline_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class GenerationRequest(Base):
    """One request to the model: the unit of work, claimed as a shard is.

    `asked` is committed before the request goes out. A request that is still `asked` when its
    lease is over may have been paid for: it becomes `unknown` and is not sent again by itself.
    `message_batch` is the provider's id of the batch that it is part of; `batch_gone`: the provider
    said that it has no such batch, or its answers no more.
    """

    __tablename__ = "generation_request"
    __table_args__ = (
        one_of("state", RequestState),
        CheckConstraint("(state = 'leased') <= (lease_until IS NOT NULL)", name="lease_when_held"),
        CheckConstraint(
            "state <> 'asked' OR lease_until IS NOT NULL OR message_batch IS NOT NULL",
            name="asked_is_looked_after",
        ),
        CheckConstraint("reserved >= 0 AND reserved < 'Infinity'", name="reserved_is_an_amount"),
        CheckConstraint("NOT batch_gone OR message_batch IS NOT NULL", name="gone_is_a_batch"),
        CheckConstraint("state <> 'answered' OR reply IS NOT NULL", name="answered_has_reply"),
        CheckConstraint(
            "state NOT IN ('refused', 'failed', 'unknown') OR error IS NOT NULL", name="says_why"
        ),
        Index(
            "generation_request_asked_idx",
            "generation_id",
            "number",
            postgresql_where=text("state = 'asked'"),
        ),
    )

    generation_id: Mapped[int] = mapped_column(
        ForeignKey(Generation.id, ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    ask: Mapped[Json]
    state: Mapped[str] = mapped_column(server_default=RequestState.PENDING.value)
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    token: Mapped[int] = mapped_column(server_default=text("0"))
    lease_until: Mapped[datetime | None]
    next_at: Mapped[datetime | None]
    rung_at: Mapped[datetime | None]
    message_batch: Mapped[str | None]
    batch_gone: Mapped[bool] = mapped_column(server_default=text("false"))
    reserved: Mapped[float] = mapped_column(Double, server_default=text("0"))
    cost: Mapped[float | None] = mapped_column(Double)
    input_tokens: Mapped[int | None]
    output_tokens: Mapped[int | None]
    reply: Mapped[Json | None]
    error: Mapped[str | None]


class Candidate(Base):
    """A question that the model wrote, and what became of it.

    `rejection` is the filter that refused it, `detail` what it saw. `facts` holds what informs a
    reviewer and decides nothing: the rank of the source under each strategy, similarities.
    """

    __tablename__ = "candidate"
    __table_args__ = (
        one_of("kind", Kind),
        one_of("state", CandidateState),
        CheckConstraint(
            "(state = 'rejected') = (rejection IS NOT NULL)", name="rejection_when_rejected"
        ),
        ForeignKeyConstraint(
            ["generation_id", "number"],
            [GenerationRequest.generation_id, GenerationRequest.number],
            ondelete="CASCADE",
            name="candidate_generation_id_number_fkey",
        ),
    )

    generation_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    ordinal: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    text: Mapped[str]
    expected: Mapped[Json]
    kind: Mapped[str]
    category: Mapped[str | None]
    tenant: Mapped[str | None]
    language: Mapped[str | None]
    state: Mapped[str] = mapped_column(server_default=CandidateState.DRAFTED.value)
    rejection: Mapped[str | None]
    detail: Mapped[str | None]
    facts: Mapped[Json | None]
    question_id: Mapped[int | None] = mapped_column(ForeignKey(Question.id, ondelete="SET NULL"))
