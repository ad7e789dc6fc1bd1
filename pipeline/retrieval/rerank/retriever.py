"""A strategy's candidates, put into the order of a reranker."""

from collections.abc import Mapping, Sequence

from pipeline.corpus.neighbours import returned_contents
from pipeline.retrieval.base import Retriever
from pipeline.retrieval.rerank.base import Candidates, Reranker, Scored
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.stages import stages_of
from pipeline.retrieval.tree import CANDIDATES
from pipeline.types import Failure, QueryBatch, Ranking

Answer = Ranking | Failure


class RerankRetriever:
    """Asks for `depth` candidates, or `limit` where that is more, and reranks their texts.

    Scores are the reranker's; ties keep the order of the candidates. What the reranker leaves out
    is not returned. The texts are read from the corpus, once for all questions; a candidate that
    it does not hold cannot be reranked, and is left out too.
    """

    def __init__(
        self, session: CorpusSession, candidates: Retriever, reranker: Reranker, depth: int
    ) -> None:
        self._session = session
        self._candidates = candidates
        self._reranker = reranker
        self._depth = depth

    @property
    def needs_vectors(self) -> bool:
        """Whether the candidates are searched for by vector."""
        return self._candidates.needs_vectors

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Answer]:
        """See `Retriever.retrieve`. A question that fails in either stage fails, naming it."""
        answers = self._candidates.retrieve(batch, max(self._depth, limit))
        found = {i: each for i, each in enumerate(answers) if isinstance(each, Ranking)}
        texts = self._texts(batch, found)
        known = {i: [key for key in found[i].keys if key in texts[i]] for i in found}
        asked = [i for i in found if known[i]]
        scored = self._reranker.score(
            [Candidates(batch.texts[i], [texts[i][key] for key in known[i]]) for i in asked]
        )
        by_position = dict(zip(asked, scored, strict=True))
        return [
            self._answer(answers[i], known.get(i, []), by_position.get(i), limit)
            for i in range(len(batch))
        ]

    def _texts(
        self, batch: QueryBatch, found: Mapping[int, Ranking]
    ) -> dict[int, Mapping[str, str]]:
        """Return the candidates' texts by question: the tenant's own where it has a key."""
        wanted = [(batch.tenants[i], ranking.keys) for i, ranking in found.items()]
        texts = returned_contents(self._session.conn, self._session.table, wanted)
        return {i: texts[batch.tenants[i]] for i in found}

    def _answer(
        self,
        candidates: Answer,
        known: Sequence[str],
        scored: Sequence[Scored] | Failure | None,
        limit: int,
    ) -> Answer:
        if isinstance(candidates, Failure):
            return Failure(f"{CANDIDATES}: {candidates.reason}")
        if isinstance(scored, Failure):
            return Failure(f"reranker: {scored.reason}")
        if scored is None and candidates.keys:
            return Failure(f"none of the candidates, as {candidates.keys[0]}, is in the corpus")
        best = sorted(scored or (), key=lambda each: (-each.score, each.position))[:limit]
        keys = [known[each.position] for each in best]
        return Ranking(keys, [each.score for each in best], stages_of(CANDIDATES, candidates))
