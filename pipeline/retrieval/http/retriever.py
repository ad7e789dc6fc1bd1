"""Search by a server of the owner's: Elasticsearch, Qdrant, a route of their own application."""

from collections.abc import Sequence
from typing import Any

from pipeline.errors import CorpusError, PermanentError
from pipeline.retrieval.expressions import ExpressionError, apply, mentions
from pipeline.retrieval.http.call import Call, Refused
from pipeline.retrieval.http.endpoint import Endpoint
from pipeline.retrieval.http.replies import rankings
from pipeline.retrieval.strategies.http import HttpStrategy
from pipeline.types import Failure, QueryBatch, Ranking

Json = dict[str, Any]


class HttpRetriever:
    """Asks an endpoint, `batch` questions a request. Scores are the server's own.

    A request that is refused is a Failure of its question; those of one of several questions are
    asked again, each alone.
    """

    def __init__(self, name: str, strategy: HttpStrategy, endpoint: Endpoint) -> None:
        self._name = name
        self._strategy = strategy
        self._endpoint = endpoint

    @property
    def needs_vectors(self) -> bool:
        """Whether the request holds the question's vector."""
        return self._strategy.needs_vectors

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`.

        Raises CorpusError where a question has a tenant and the request does not; and as
        `Endpoint.post_all` does.
        """
        self._check_tenants(batch)
        asked = [self._question(batch, position, limit) for position in range(len(batch))]
        call = Call()
        answers = self._ask(asked, self._strategy.batch, limit, call)
        # What one question spoils must not cost its neighbours.
        again = [i for i in self._shared(len(asked)) if isinstance(answers[i], Failure)]
        alone = self._ask([asked[i] for i in again], 1, limit, call)
        call.end()
        for position, answer in zip(again, alone, strict=True):
            answers[position] = answer
        return answers

    def _shared(self, questions: int) -> range:
        """Return the positions of the questions that were not alone in their request."""
        last_is_alone = questions % self._strategy.batch == 1
        return range(0 if self._strategy.batch == 1 else questions - last_is_alone)

    def _ask(
        self, asked: Sequence[Json], size: int, limit: int, call: Call
    ) -> list[Ranking | Failure]:
        groups = [asked[start : start + size] for start in range(0, len(asked), size)]
        replies = self._endpoint.post_all([self._body(group, limit) for group in groups], call)
        return [
            answer
            for group, reply in zip(groups, replies, strict=True)
            for answer in self._answers(reply, len(group), limit)
        ]

    def _answers(self, reply: object, questions: int, limit: int) -> list[Ranking | Failure]:
        if isinstance(reply, Refused):
            return [Failure(reply.reason)] * questions
        return rankings(reply, self._strategy, questions, limit)

    def _body(self, group: Sequence[Json], limit: int) -> object:
        context = group[0] if self._strategy.batch == 1 else {"questions": group, "k": limit}
        try:
            return apply(self._strategy.body, context)
        except ExpressionError as error:
            raise PermanentError(f"strategies.{self._name}.request: {error}") from None

    def _question(self, batch: QueryBatch, position: int, limit: int) -> Json:
        vector = None
        if self.needs_vectors and batch.vectors is not None:
            vector = batch.vectors[position].tolist()
        return {
            "question": batch.texts[position],
            "k": limit,
            "tenant": batch.tenants[position] if self._strategy.tenant == "question" else None,
            "language": batch.languages[position],
            "vector": vector,
        }

    def _check_tenants(self, batch: QueryBatch) -> None:
        """Refuse to search for a tenant's question in all tenants' chunks."""
        if self._strategy.tenant == "ignore" or mentions(self._strategy.body, "tenant"):
            return
        tenant = next((tenant for tenant in batch.tenants if tenant is not None), None)
        if tenant is not None:
            raise CorpusError(
                f"a question has the tenant {tenant!r}, but the request of strategy {self._name}"
                ' does not read tenant: filter by it, or set tenant = "ignore"'
            )
