"""The root of the mapped classes, and what their columns have in common."""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    MetaData,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase

from pipeline.types import (
    Kind,
    Level,
)

SCHEMA = "recallwatch"

Json = dict[str, Any]


def one_of(column: str, values: type[Kind] | type[Level] | type[Any]) -> CheckConstraint:
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
