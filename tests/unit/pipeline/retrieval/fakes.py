"""A retriever that answers from a list and writes down what it was asked."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.types import Failure, QueryBatch, Ranking


class FakeRetriever:
    """Answers the i-th question with the i-th of its answers, cut to the limit."""

    def __init__(
        self, answers: Sequence[Ranking | Failure], *, needs_vectors: bool = False
    ) -> None:
        self.answers = answers
        self.needs_vectors = needs_vectors
        self.limits: list[int] = []

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        self.limits.append(limit)
        return [
            answer
            if isinstance(answer, Failure)
            else replace(answer, keys=answer.keys[:limit], scores=answer.scores[:limit])
            for answer in self.answers[: len(batch)]
        ]


def batch_of(count: int) -> QueryBatch:
    nothing = [None] * count
    return QueryBatch(texts=["?"] * count, tenants=nothing, languages=nothing)
