"""What every way to retrieve looks like from outside."""

from typing import Protocol

from pipeline.types import Failure, QueryBatch, Ranking


class Retriever(Protocol):
    """Answers a batch of questions with rankings of chunk keys."""

    @property
    def needs_vectors(self) -> bool:
        """Whether `QueryBatch.vectors` must be there."""
        ...

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """Return, in the order of the batch, each question's best `limit` chunks at most.

        A Failure stands for one question that could not be asked; it is never a miss. The number
        of rows that came back is `len(ranking.keys)`: it can fall short of `limit`.

        Raises TransientError where the same batch may work later, PermanentError or CorpusError
        where it never will; both concern the whole batch.
        """
        ...
