"""Vectors of other models and of other chunks than production's, to compare them with it."""

from datetime import datetime

from sqlalchemy import LargeBinary, func
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base


class SideVector(Base):
    """A text's vector by one model: kept, so that a comparison never pays for it twice.

    `source` names model, server, dimensions and input type; `text_hash` is the text's SHA-256,
    hexadecimal; `vector` holds float32 numbers, little-endian.
    """

    __tablename__ = "side_vector"

    source: Mapped[str] = mapped_column(primary_key=True)
    text_hash: Mapped[str] = mapped_column(primary_key=True)
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    made_at: Mapped[datetime] = mapped_column(server_default=func.now())
