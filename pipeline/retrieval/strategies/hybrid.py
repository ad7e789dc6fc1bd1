"""The settings of a search that fuses others."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from pipeline.settings_types import MAX_K, Section


class HybridStrategy(Section):
    """Reciprocal rank fusion of other strategies: score = sum of weight / (rrf_k + rank)."""

    kind: Literal["hybrid"] = Field("hybrid", description="other strategies, fused by rank")
    arms: dict[str, Annotated[float, Field(gt=0)]] = Field(
        {"vector": 1.0, "fulltext": 1.0}, description="strategy name -> weight", min_length=1
    )
    rrf_k: int = Field(60, ge=1, le=10_000, description="the constant of the formula")
    depth: int = Field(50, ge=1, le=MAX_K, description="candidates asked of each arm; at least k")

    @property
    def needs_vectors(self) -> bool:
        """Never by itself: its parts may."""
        return False

    @property
    def parts(self) -> Iterable[str]:
        """The names of the strategies that it asks."""
        return self.arms
