"""Several strategies asked side by side, their rankings fused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.retrieval.base import Retriever
from pipeline.retrieval.fusion import Formula, fuse
from pipeline.retrieval.stages import stages_of
from pipeline.types import Failure, QueryBatch, Ranking


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the strategies that a hybrid asks, with its name and its weight in the fusion."""

    name: str
    weight: float
    retriever: Retriever


class HybridRetriever:
    """Fuses the rankings of its arms. Scores are the fused ones.

    Each arm is asked for `depth` candidates, or `limit` where that is more.
    """

    def __init__(self, arms: Sequence[Arm], *, formula: Formula, depth: int) -> None:
        self._arms = arms
        self._formula = formula
        self._depth = depth

    @property
    def needs_vectors(self) -> bool:
        """Whether any arm does."""
        return any(arm.retriever.needs_vectors for arm in self._arms)

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A question that fails in an arm fails, naming the arm."""
        depth = max(self._depth, limit)
        by_arm = [arm.retriever.retrieve(batch, depth) for arm in self._arms]
        return [self._fuse(answers, limit) for answers in zip(*by_arm, strict=True)]

    def _fuse(self, answers: Sequence[Ranking | Failure], limit: int) -> Ranking | Failure:
        """Fuse one question's answers, one an arm, and keep them as its stages."""
        rankings, stages = [], dict[str, Ranking]()
        for arm, answer in zip(self._arms, answers, strict=True):
            if isinstance(answer, Failure):
                return Failure(f"{arm.name}: {answer.reason}")
            rankings.append(answer)
            stages |= stages_of(arm.name, answer)
        fused = fuse(rankings, [arm.weight for arm in self._arms], self._formula, limit)
        return replace(fused, stages=stages)
