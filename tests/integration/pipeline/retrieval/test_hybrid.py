"""A hybrid over a real corpus: its arms' rankings, fused; the same first k at any depth."""

from typing import Any

import numpy as np
import psycopg
import pytest

from pipeline.retrieval.build import Resources, build
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import FulltextStrategy, HybridStrategy, Strategy, VectorStrategy
from pipeline.retrieval.tree import tree_of
from pipeline.types import Failure, QueryBatch
from tests.integration.pipeline.retrieval.corpora import (
    Passage,
    clustered,
    fill,
    questions,
    ranked,
)

Connection = psycopg.Connection[Any]

STRATEGIES: dict[str, Strategy] = {
    "near": VectorStrategy(ef_search=30),
    "words": FulltextStrategy(max_document_frequency=0.05, min_frequent=0),
    "mixed": HybridStrategy(arms={"near": 2.0, "words": 0.5}, rrf_k=20, depth=25),
}


@pytest.fixture
def session(conn: Connection) -> CorpusSession:
    rng = np.random.default_rng(3)
    vectors = clustered(3000, 16)
    words = rng.integers(0, 400, size=(len(vectors), 8))
    passages = [
        Passage(f"doc-{n // 5}", n % 5, " ".join(f"word{w}" for w in words[n]), vector=vector)
        for n, vector in enumerate(vectors)
    ]
    return CorpusSession(conn, fill(conn, passages, hnsw=16))


def asked(count: int, seed: int = 4) -> QueryBatch:
    rng = np.random.default_rng(seed)
    texts = [" ".join(f"word{w}" for w in rng.integers(0, 400, size=5)) for _ in range(count)]
    return questions(vectors=clustered(count, 16, seed=seed), texts=texts)


def test_scores_are_the_weighted_reciprocal_ranks_in_the_arms(session: CorpusSession) -> None:
    batch = asked(30)
    near, words = (
        ranked(build(tree_of(name, STRATEGIES), Resources(session)).retrieve(batch, 25))
        for name in ("near", "words")
    )
    mixed = ranked(build(tree_of("mixed", STRATEGIES), Resources(session)).retrieve(batch, 10))
    for by_vector, by_words, answer in zip(near, words, mixed, strict=True):
        sums: dict[str, float] = {}
        for weight, ranking in ((2.0, by_vector), (0.5, by_words)):
            for rank, key in enumerate(ranking.keys, start=1):
                sums[key] = sums.get(key, 0.0) + weight / (20 + rank)
        assert answer.scores == pytest.approx(sorted(sums.values(), reverse=True)[:10])
        assert [sums[key] for key in answer.keys] == pytest.approx(list(answer.scores))


def test_a_text_that_one_arm_cannot_take_fails_the_question(session: CorpusSession) -> None:
    batch = asked(3)
    spoilt = QueryBatch(["word1", "a\0b", "word2"], batch.tenants, batch.languages, batch.vectors)
    retriever = build(tree_of("mixed", STRATEGIES), Resources(session))
    first, failed, last = retriever.retrieve(spoilt, 5)
    assert isinstance(failed, Failure)
    assert failed.reason.startswith("words: the question cannot be searched for")
    assert [len(answer.keys) for answer in ranked([first, last])] == [5, 5]
