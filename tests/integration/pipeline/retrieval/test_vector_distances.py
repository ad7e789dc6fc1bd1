"""Every distance on every type of column, through its index and exactly, against SciPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from pipeline.corpus.distances import Cast, Distance
from pipeline.corpus.indexing import vector_index
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.statistics import fingerprint, show
from pipeline.corpus.table import CorpusTable, describe
from pipeline.corpus.vectors import Comparison
from pipeline.errors import CorpusError
from pipeline.retrieval.exact import ExactVectorRetriever
from pipeline.retrieval.serving import as_searched, unserved
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.tree import StrategyTree
from pipeline.retrieval.vector import VectorRetriever
from pipeline.retrieval.vector_arrays import sparse_texts
from pipeline.types import Failure, FloatMatrix
from tests.integration.pipeline.retrieval.corpora import clustered, plan, questions, ranked

Connection = psycopg.Connection[Any]

CHUNKS, DIMENSIONS = 1200, 24


@dataclass(frozen=True)
class Case:
    """A column's type, what it is cast to, and the distance; `declared`: with its length."""

    type: str
    distance: Distance
    cast: Cast | None = None
    declared: bool = True

    def __str__(self) -> str:
        """Name the case in a test's id."""
        return "-".join(filter(None, [self.type, self.cast, self.distance]))

    @property
    def compared(self) -> str:
        return self.cast or self.type

    @property
    def strategy(self) -> VectorStrategy:
        return VectorStrategy(distance=self.distance, cast=self.cast, ef_search=400)


FLOATS: list[Distance] = ["cosine", "inner_product", "l2", "l1"]
BITS: list[Distance] = ["hamming", "jaccard"]

CASES = [
    *(Case(kind, distance) for kind in ("vector", "halfvec", "sparsevec") for distance in FLOATS),
    *(Case("bit", distance) for distance in BITS),
    *(Case("vector", distance, "halfvec") for distance in FLOATS),
    *(Case("vector", distance, "bit") for distance in BITS),
    Case("halfvec", "hamming", "bit"),
    Case("vector", "l2", "vector", declared=False),
]

SHORT = {"inner_product": "ip"}


def stored_vectors() -> FloatMatrix:
    """Draw vectors of which a third is zero, so that sparse ones are."""
    vectors = clustered(CHUNKS, DIMENSIONS)
    vectors[np.random.default_rng(3).random(vectors.shape) < 0.3] = 0
    return vectors


def literals(vectors: FloatMatrix, kind: str) -> list[str]:
    """Write vectors as PostgreSQL reads their type."""
    if kind == "bit":
        return ["".join("1" if value > 0 else "0" for value in vector) for vector in vectors]
    return sparse_texts(vectors) if kind == "sparsevec" else [str(v.tolist()) for v in vectors]


def expression(case: Case) -> str:
    """Write what a user's index is of, from pgvector's documentation."""
    if case.cast is None:
        return "embedding"
    inner = "binary_quantize(embedding)" if case.cast == "bit" else "embedding"
    return f"({inner}::{case.cast}({DIMENSIONS}))"


def corpus(conn: Connection, case: Case, *, indexed: bool = True) -> CorpusTable:
    """Fill a table of a user's own, and index it for the case."""
    modifier = f"({DIMENSIONS})" if case.declared else ""
    conn.execute(
        f"""CREATE TABLE docs (document_id text, chunk_index int, content text,
        embedding {case.type}{modifier})""".encode()
    )
    with conn.cursor() as cursor, cursor.copy("COPY docs FROM STDIN") as copy:
        for number, literal in enumerate(literals(stored_vectors(), case.type)):
            copy.write_row((f"d{number}", 0, "", literal))
    if indexed:
        operators = f"{case.compared}_{SHORT.get(case.distance, case.distance)}_ops"
        conn.execute(
            f"CREATE INDEX served ON docs USING hnsw ({expression(case)} {operators})".encode()
        )
    conn.execute("VACUUM ANALYZE docs")
    return describe(conn, CorpusSettings(table="docs"))


def oracle(case: Case, asked: FloatMatrix) -> NDArray[np.float64]:
    """Return the scores of all chunks for each question, in float64."""
    scores: NDArray[np.float64] = _scores(case, asked)
    return scores


def _scores(case: Case, asked: FloatMatrix) -> Any:  # noqa: ANN401 - what numpy and SciPy return
    one, other = asked.astype(np.float64), stored_vectors().astype(np.float64)
    if case.compared == "halfvec":
        one, other = (side.astype(np.float16).astype(np.float64) for side in (one, other))
    if case.compared == "bit":
        bits = cdist(one > 0, other > 0, case.distance)
        return 1 - bits if case.distance == "jaccard" else -bits * DIMENSIONS
    match case.distance:
        case "cosine":
            return 1 - cdist(one, other, "cosine")
        case "inner_product":
            return one @ other.T
        case _:
            return -cdist(one, other, "euclidean" if case.distance == "l2" else "cityblock")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_exact_scores_are_the_oracles_here_and_in_the_server(conn: Connection, case: Case) -> None:
    session = CorpusSession(conn, corpus(conn, case))
    asked = clustered(15, DIMENSIONS, seed=2)
    best = -np.sort(-oracle(case, asked), axis=1)[:, :10]
    by_server = case.strategy.model_copy(update={"exact": True})

    here = ranked(ExactVectorRetriever(session, by_server).retrieve(questions(vectors=asked), 10))
    there = ranked(VectorRetriever(session, by_server).retrieve(questions(vectors=asked), 10))

    for one, other, expected in zip(here, there, best, strict=True):
        np.testing.assert_allclose(one.scores, expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other.scores, expected, rtol=2e-5, atol=2e-5)
        assert one.keys == other.keys


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_index_of_the_distance_and_the_expression_serves_the_search(
    conn: Connection, case: Case
) -> None:
    table = corpus(conn, case)
    retriever = VectorRetriever(CorpusSession(conn, table), case.strategy)
    asked = clustered(15, DIMENSIONS, seed=2)
    conn.execute("SET enable_seqscan = off; SET enable_sort = off")
    planned = plan(
        CorpusSession(conn, table),
        retriever.statement(5),
        retriever.parameters(asked),
        retriever.planner_settings(5),
    )
    assert "Index Scan using served" in planned
    served = ranked(retriever.retrieve(questions(vectors=asked), 5))
    expected = -np.sort(-oracle(case, asked), axis=1)[:, :5]
    near = [np.isclose(one.scores, best, rtol=2e-5, atol=2e-5).mean()
            for one, best in zip(served, expected, strict=True)]  # fmt: skip
    assert np.mean(near) > 0.9

    comparison = Comparison(table, case.distance, case.cast)
    index = vector_index(conn, table, comparison)
    assert index is not None
    assert index.name == "served"
    assert show(conn, table).vector_index == "served"


def test_an_index_of_another_distance_or_expression_does_not_serve(conn: Connection) -> None:
    table = corpus(conn, Case("vector", "l2"))

    assert vector_index(conn, table) is None
    assert vector_index(conn, table, Comparison(table, "l2", "halfvec")) is None
    assert vector_index(conn, table, Comparison(table, "l2")) is not None


@pytest.mark.parametrize("kind", ["vector", "halfvec", "sparsevec", "bit"])
def test_a_corpus_of_any_type_is_described_and_its_vectors_are_hashed(
    conn: Connection, kind: str
) -> None:
    case = Case(kind, "hamming" if kind == "bit" else "cosine", declared=kind == "bit")
    table = corpus(conn, case, indexed=False)
    before = fingerprint(conn, table)

    assert table.dimensions == DIMENSIONS
    assert show(conn, table).dimensions == {DIMENSIONS: CHUNKS}
    conn.execute("""UPDATE docs SET embedding = (SELECT embedding FROM docs WHERE
        document_id = 'd1') WHERE document_id = 'd0'""")
    after = fingerprint(conn, table)
    assert before.vectors != after.vectors
    assert before.texts == after.texts


@pytest.mark.parametrize(
    ("kind", "strategy", "advice"),
    [
        ("bit", VectorStrategy(), "is bit, which has no distance cosine: set distance = hamming"),
        ("vector", VectorStrategy(distance="hamming"), 'no distance hamming: set cast = "bit"'),
        ("sparsevec", VectorStrategy(cast="halfvec"), "cannot be cast to halfvec: leave cast out"),
    ],
)
def test_what_pgvector_has_no_operator_for_is_refused_with_advice(
    conn: Connection, kind: str, strategy: VectorStrategy, advice: str
) -> None:
    table = corpus(conn, Case(kind, "hamming"), indexed=False)
    with pytest.raises(CorpusError, match=advice):
        VectorRetriever(CorpusSession(conn, table), strategy)


def test_a_question_too_large_for_half_precision_fails_alone(conn: Connection) -> None:
    table = corpus(conn, Case("vector", "l2"), indexed=False)
    strategy = VectorStrategy(distance="l2", cast="halfvec")
    asked = clustered(2, DIMENSIONS)
    asked[0, 0] = 1e6
    for retriever in (
        VectorRetriever(CorpusSession(conn, table), strategy),
        ExactVectorRetriever(CorpusSession(conn, table), strategy),
    ):
        first, second = retriever.retrieve(questions(vectors=asked), 3)
        assert isinstance(first, Failure)
        assert len(ranked([second])[0].keys) == 3


def test_a_vector_of_length_zero_has_a_distance_but_no_cosine(conn: Connection) -> None:
    table = corpus(conn, Case("vector", "l2"), indexed=False)
    conn.execute("UPDATE docs SET embedding = %s WHERE document_id = 'd7'", [str([0] * DIMENSIONS)])
    asked = questions(vectors=np.zeros((1, DIMENSIONS), dtype=np.float32))
    session = CorpusSession(conn, table)
    for kind in (VectorRetriever, ExactVectorRetriever):
        [found] = ranked(kind(session, VectorStrategy(distance="l2")).retrieve(asked, 1))
        assert found.keys == ["d7:0"]
        [failed] = kind(session, VectorStrategy(distance="cosine")).retrieve(asked, 1)
        assert isinstance(failed, Failure)


def _tree(strategy: VectorStrategy) -> StrategyTree:
    return StrategyTree("mine", strategy)


def test_a_search_that_no_index_serves_is_named_with_the_index_that_would(
    conn: Connection,
) -> None:
    table = corpus(conn, Case("vector", "l2"))
    halves = VectorStrategy(distance="inner_product", cast="halfvec")

    [found] = unserved(conn, table, _tree(halves))

    assert str(found) == (
        "no index serves strategy mine: each search compares all chunks; one that would:"
        f' CREATE INDEX ON "public"."docs" USING hnsw (("embedding"::halfvec({DIMENSIONS}))'
        " halfvec_ip_ops)"
    )
    conn.execute(found.creation.encode())
    assert list(unserved(conn, table, _tree(halves))) == []
    assert list(unserved(conn, table, _tree(VectorStrategy(distance="l2")))) == []
    assert list(unserved(conn, table, _tree(VectorStrategy(exact=True)))) == []
    assert list(unserved(conn, table, _tree(VectorStrategy(where="true")))) == []


def test_a_runs_fingerprint_has_the_index_that_serves_its_strategy(conn: Connection) -> None:
    table = corpus(conn, Case("vector", "l2"))
    conn.execute("CREATE INDEX usual ON docs USING hnsw (embedding vector_cosine_ops)")
    whole = fingerprint(conn, table)

    def index(strategy: VectorStrategy) -> str | None:
        found = as_searched(conn, table, whole, _tree(strategy)).index
        return found["name"] if found else None

    assert index(VectorStrategy()) == "usual"
    assert index(VectorStrategy(distance="l2")) == "served"
    assert index(VectorStrategy(distance="l1")) is None
    assert index(VectorStrategy(distance="l1", exact=True)) == "usual"
