"""Golden sets: questions as people edit them, and the versions that runs evaluate."""

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, Json, one_of
from pipeline.types import (
    EditAction,
    Kind,
    Source,
    Status,
)


class Question(Base):
    """A golden question as people edit it; runs never read this table, they read versions."""

    __tablename__ = "question"
    __table_args__ = (
        one_of("kind", Kind),
        one_of("source", Source),
        one_of("status", Status),
        CheckConstraint("btrim(text) <> ''", name="text_not_blank"),
        CheckConstraint("rejection IS NULL OR status = 'rejected'", name="rejection_when_rejected"),
        Index("question_status_idx", "set_name", "status", "id"),
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
    provenance: Mapped[Json | None]
    reviewed_at: Mapped[datetime | None]
    reviewed_by: Mapped[str | None]
    rejection: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Evidence(Base):
    """A chunk's text as it was when somebody judged it; `hash` is its SHA-256, hexadecimal."""

    __tablename__ = "evidence"

    hash: Mapped[str] = mapped_column(primary_key=True)
    text: Mapped[str]


class Judgment(Base):
    """One expected key of a question, its grade, and what was judged."""

    __tablename__ = "judgment"
    __table_args__ = (
        Index(
            "judgment_evidence_hash_idx",
            "evidence_hash",
            postgresql_where=text("evidence_hash IS NOT NULL"),
        ),
    )

    question_id: Mapped[int] = mapped_column(
        ForeignKey(Question.id, ondelete="CASCADE"), primary_key=True
    )
    key: Mapped[str] = mapped_column(primary_key=True)
    grade: Mapped[int] = mapped_column(Integer)
    evidence_hash: Mapped[str | None] = mapped_column(ForeignKey(Evidence.hash))
    judged_at: Mapped[datetime] = mapped_column(server_default=func.now())
    judged_by: Mapped[str | None]


class ProposedKey(Base):
    """A key that may be expected too, for a person to decide: a near-duplicate, a better hit."""

    __tablename__ = "proposed_key"

    question_id: Mapped[int] = mapped_column(
        ForeignKey(Question.id, ondelete="CASCADE"), primary_key=True
    )
    key: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    similarity: Mapped[float | None] = mapped_column(Double)


class Edit(Base):
    """One act that changed questions, and that can be undone as one."""

    __tablename__ = "edit"
    __table_args__ = (
        one_of("action", EditAction),
        CheckConstraint("undone_by IS NULL OR undone_at IS NOT NULL", name="undone_at_some_time"),
        Index("edit_set_name_idx", "set_name", "id"),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    set_name: Mapped[str]
    action: Mapped[str]
    edited_by: Mapped[str | None]
    edited_at: Mapped[datetime] = mapped_column(server_default=func.now())
    undone_at: Mapped[datetime | None]
    undone_by: Mapped[str | None]


class EditItem(Base):
    """A question before and after an edit, in the form that `db.edits` reads and writes."""

    __tablename__ = "edit_item"
    __table_args__ = (Index("edit_item_question_id_idx", "question_id"),)

    edit_id: Mapped[int] = mapped_column(ForeignKey(Edit.id, ondelete="CASCADE"), primary_key=True)
    question_id: Mapped[int] = mapped_column(
        ForeignKey(Question.id, ondelete="CASCADE"), primary_key=True
    )
    before: Mapped[Json]
    after: Mapped[Json]


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
