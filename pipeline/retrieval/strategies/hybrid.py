"""The settings of a search that fuses others."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from pipeline.retrieval.fusion import Formula, Method, Normalize
from pipeline.settings_types import MAX_K, Section


class HybridStrategy(Section):
    """Other strategies, fused: score = sum of weight / (rrf_k + rank), or of weighted scores."""

    kind: Literal["hybrid"] = Field("hybrid", description="other strategies, fused")
    arms: dict[str, Annotated[float, Field(gt=0)]] = Field(
        {"vector": 1.0, "fulltext": 1.0}, description="strategy name -> weight", min_length=1
    )
    fusion: Method = Field(
        "rrf", description="rrf: by ranks, reciprocally; weighted: by scores, on one scale"
    )
    rrf_k: int = Field(60, ge=1, le=10_000, description="with rrf: the constant of the formula")
    normalize: Normalize = Field(
        "min_max",
        description="with weighted: the scale of an arm's scores; min_max: 0 to 1, z_score: less"
        " their mean, over their deviation, none: as they are",
    )
    depth: int = Field(50, ge=1, le=MAX_K, description="candidates asked of each arm; at least k")

    @property
    def formula(self) -> Formula:
        """How the arms' rankings are fused."""
        return Formula(self.fusion, self.rrf_k, self.normalize)

    @property
    def needs_vectors(self) -> bool:
        """Never by itself: its parts may."""
        return False

    @property
    def parts(self) -> Iterable[str]:
        """The names of the strategies that it asks."""
        return self.arms
