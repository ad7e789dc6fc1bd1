"""Real hits under real HNSW rebuilds, for `bench.verdicts`.

The chunks of all collections, whole or cut into windows of words, stand in one table with one
index. A question is a hit when an expected chunk, or a window of one, is among the K nearest.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.collections import COLLECTIONS, DATA
from bench.retrieval import Connection, bench_corpus
from pipeline.corpus.reading import read_chunks
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.embedding.local import LocalEmbedder
from pipeline.golden.fingerprint import content_hash
from pipeline.golden.jsonl import read_questions
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.vector import VectorRetriever
from pipeline.scoring import Judged, Measure, score
from pipeline.text import is_blank
from pipeline.types import Kind, Level, QueryBatch

Bools = NDArray[np.bool_]

K = 5
TABLE = "recallwatch_bench.chunks"
REINDEX = "REINDEX TABLE recallwatch_bench.chunks"


@dataclass(frozen=True)
class Texts:
    """The texts of the table's rows, in order, and all questions with their expected rows."""

    rows: list[str]
    questions: list[str]
    expected: list[frozenset[int]]


def read_collections(
    words: int | None = None, names: Sequence[str] = COLLECTIONS, folder: Path = DATA
) -> Texts:
    """Read chunks that are not blank and questions that expect one of them, each question once.

    `words`: cut each chunk into windows of so many, each half of it in the next one too; None:
    a row is a chunk.
    """
    texts = Texts([], [], [])
    for name in names:
        rows: dict[str, range] = {}
        for chunk in read_chunks(next((folder / name).glob("chunks.jsonl*"))):
            parts = windows(chunk.content, words) if words else [chunk.content]
            filled = [part for part in parts if not is_blank(part)]
            rows[chunk.key] = range(len(texts.rows), len(texts.rows) + len(filled))
            texts.rows.extend(filled)
        _add_questions(texts, folder / name / "golden.jsonl", rows)
    return texts


def windows(text: str, words: int) -> list[str]:
    """Cut a text into windows of so many words, each starting half a window after the last."""
    split, step = text.split(), max(1, words // 2)
    starts = range(0, max(1, len(split) - words + step), step)
    return [" ".join(split[start : start + words]) for start in starts]


def _add_questions(texts: Texts, golden: Path, rows: Mapping[str, range]) -> None:
    seen = set()
    for _, question in read_questions(golden):
        expected = {key for key, grade in question.expected.items() if grade >= 1}
        found = frozenset(row for key in expected for row in rows.get(key, ()))
        identity = content_hash(question)
        if question.kind is Kind.ANSWERABLE and found and identity not in seen:
            seen.add(identity)
            texts.questions.append(question.text)
            texts.expected.append(found)


class Collections:
    """The collections, indexed, and their questions to ask."""

    def __init__(self, conn: Connection, texts: Texts, batch: QueryBatch) -> None:
        self._conn = conn
        self._batch = batch
        self._table = describe(conn, CorpusSettings(table=TABLE))
        self._judged = [Judged({_key(row): 1 for row in rows}) for rows in texts.expected]
        self._live = {_key(row) for row in range(len(texts.rows))}

    def hits(self, strategy: VectorStrategy) -> Bools:
        """Return whether each question is a hit at K, shape (questions,)."""
        retriever = VectorRetriever(CorpusSession(self._conn, self._table), strategy)
        scores = score(
            self._judged, retriever.retrieve(self._batch, K),
            k=K, level=Level.CHUNK, measures=[Measure("hit", K)], live=self._live,
        )  # fmt: skip
        assert not np.isnan(scores.values).any(), "a question could not be scored"
        found: Bools = scores.values[:, 0] == 1
        return found

    def rebuilt(self, ef_searches: Sequence[int], rebuilds: int) -> dict[int, Bools]:
        """Build the index anew, again and again; return the hits of each build by ef_search.

        Each has shape (rebuilds, questions).
        """
        found: dict[int, list[Bools]] = {ef: [] for ef in ef_searches}
        for _ in range(rebuilds):
            self._conn.execute(REINDEX)
            for ef, rows in found.items():
                rows.append(self.hits(VectorStrategy(ef_search=ef)))
        return {ef: np.array(rows) for ef, rows in found.items()}


@contextmanager
def indexed(database: str | None, texts: Texts) -> Iterator[Collections]:
    """Embed and index the collections in a database, or in a server of its own."""
    embedder = LocalEmbedder()
    nothing = [None] * len(texts.questions)
    batch = QueryBatch(
        texts=texts.questions, tenants=nothing, languages=nothing,
        vectors=embedder.embed(texts.questions),
    )  # fmt: skip
    with bench_corpus(database, embedder.embed(texts.rows)) as conn:
        yield Collections(conn, texts, batch)


def _key(row: int) -> str:
    """Return the key that `bench_corpus` gives the row."""
    return f"document-{row // 10}:{row % 10}"
