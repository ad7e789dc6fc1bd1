"""The settings of vector search."""

from typing import Literal

from pydantic import Field

from pipeline.settings_types import Section


class VectorStrategy(Section):
    """Nearest neighbours by cosine distance, through the index or exactly."""

    kind: Literal["vector"] = Field("vector", description="nearest neighbours by cosine distance")
    ef_search: int = Field(
        40, ge=1, le=1000, description="hnsw.ef_search; raised to k where it is lower"
    )
    iterative_scan: Literal["off", "strict_order", "relaxed_order"] = Field(
        "strict_order",
        description="hnsw.iterative_scan within a tenant: off, strict_order or relaxed_order",
    )
    exact: bool = Field(default=False, description="true: scan all vectors, without the index")
    questions_per_statement: int = Field(
        100, ge=1, le=1000, description="questions that one SQL statement searches for"
    )

    @property
    def needs_vectors(self) -> bool:
        """Always."""
        return True
