"""Golden sets: questions as people edit them, and the versions that runs evaluate."""

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
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
