"""The [gate] table: when a run counts as regressed."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.settings_types import Section, Share, StrategyName

Metric = Literal["hit", "recall", "precision", "mrr", "map", "ndcg"]


class GateRules(Section):
    """What one strategy is held to."""

    rule: Literal["noise", "threshold"] = Field(
        "noise",
        description="noise: a drop larger than an unchanged system shows; threshold: max_drop",
    )
    outcome: Metric = Field(
        "recall",
        description="what the noise rules weigh, at k; with one expected key a question, recall"
        " counts net lost questions, as hit does",
    )
    alpha: Annotated[float, Field(gt=0, le=0.05)] = Field(
        0.001, description="noise: chance of a false alarm a run; 0.001: 5 % a year if weekly"
    )
    watch_alpha: Annotated[float, Field(gt=0, le=0.5)] = Field(
        0.05, description="noise: chance below which a drop is shown as watch, without an alarm"
    )
    tolerance: Share = Field(
        0.05, description="noise: a drop that this set must be able to show, else it is warned of"
    )
    max_drop: Share = Field(
        0.02, description="threshold: largest drop that passes; shown beside the noise rule too"
    )
    metrics: list[Metric] = Field(
        ["recall", "ndcg"], min_length=1, description="threshold: what the drop is taken of, at k"
    )
    floor: dict[Metric, Share] = Field(
        {}, description="least values that a run must reach, at k, as { recall = 0.8 }"
    )
    category_max_drop: Share | None = Field(
        None, description="largest drop within a category; unset: no such rule", examples=[0.1]
    )
    category_min: int = Field(
        20, ge=1, description="shared questions that a category needs to be judged"
    )
    must_pass: bool = Field(
        default=True, description="true: a miss of a question marked must_pass is a regression"
    )
    min_shared: Share = Field(
        0.5, description="share of questions that two runs must have in common to be compared"
    )
    max_failed: Share = Field(
        0.01, description="share of questions that may fail before a run counts as unmeasured"
    )
    max_ineligible: Share = Field(
        0.05,
        description="share of answerable questions that may have no usable key before eval does not"
        " start, and a run counts as unmeasured",
    )


class GateSettings(GateRules):
    """When a run counts as regressed."""

    strategies: dict[StrategyName, GateRules] = Field(
        {}, description="the same keys for one strategy alone, as { hybrid = { max_drop = 0.05 } }"
    )

    def of(self, strategy: str) -> GateRules:
        """Return the rules of a strategy: its own where it has them, else everybody's."""
        own = self.strategies.get(strategy)
        shared = self.model_dump(exclude={"strategies"})
        return GateRules(**(shared | (own.model_dump(exclude_unset=True) if own else {})))
