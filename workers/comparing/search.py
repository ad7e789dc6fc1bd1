"""Exact search among vectors held in memory, each tenant's questions among its own chunks."""

from collections.abc import Sequence

import numpy as np

from pipeline.embedding.base import usable
from pipeline.errors import CorpusError
from pipeline.retrieval.nearest import Nearest
from pipeline.types import Failure, FloatMatrix, Ranking

NO_VECTOR = Failure("the model gave this question no vector")


class TenantSearch:
    """The nearest chunks of n questions by cosine, whatever order the chunks come in.

    A question with a tenant is compared with that tenant's chunks alone, one without with all. A
    question whose vector cannot be searched with is a Failure. `vectors`: shape (n, d).
    """

    def __init__(self, vectors: FloatMatrix, tenants: Sequence[str | None], limit: int) -> None:
        self._n = len(tenants)
        self._dimensions = vectors.shape[1]
        self._positions: dict[str | None, list[int]] = {}
        for position in np.flatnonzero(usable(vectors)).tolist():
            self._positions.setdefault(tenants[position], []).append(position)
        self._nearest = {
            tenant: Nearest(vectors[asked], limit) for tenant, asked in self._positions.items()
        }

    def offer(
        self, keys: Sequence[str], tenants: Sequence[str | None], vectors: FloatMatrix
    ) -> int:
        """Take b more chunks, their vectors of shape (b, d); return how many had none to use.

        Raises CorpusError where they are of another length than the questions'.
        """
        rows = np.flatnonzero(usable(vectors)).tolist()
        if rows and self._nearest and vectors.shape[1] != self._dimensions:
            raise CorpusError(
                f"the chunks' vectors have {vectors.shape[1]} dimensions, and the questions'"
                f" {self._dimensions}: set [embedding] to the model that the corpus was embedded"
                " with"
            )
        for tenant, nearest in self._nearest.items():
            within = [row for row in rows if tenant is None or tenants[row] == tenant]
            if within:
                nearest.offer([keys[row] for row in within], vectors[within])
        return len(keys) - len(rows)

    def rankings(self) -> list[Ranking | Failure]:
        """Return a ranking a question, in their order; scores are cosine similarities."""
        found: list[Ranking | Failure] = [NO_VECTOR] * self._n
        for tenant, positions in self._positions.items():
            for position, ranking in zip(positions, self._nearest[tenant].rankings(), strict=True):
                found[position] = ranking
        return found
