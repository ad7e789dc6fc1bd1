"""How far batched vector search is from the same searches in a loop inside the server.

Four ways put the same questions to the same HNSW index, in turns, so that load on the machine
meets all alike:

loop: a PL/pgSQL function searches for question after question. No result crosses the network: the
measure for the others.
batched: VectorRetriever, as the workers use it.
single: a statement a question, prepared, with the vector sent in binary.
piped: the same statement as a strategy of kind sql, of which a hundred are sent before an answer.

The vectors are random: Gaussian clusters, the questions from the same clusters. The table stands in
a schema of its own, which is dropped at the end.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg import sql

from cli.embedded.stack import open_stack
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.retrieval.base import Retriever
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.sql import SqlRetriever
from pipeline.retrieval.strategies import SqlStrategy, VectorStrategy
from pipeline.retrieval.vector import VectorRetriever
from pipeline.retrieval.vector_arrays import VectorArray, register_vector_array
from pipeline.types import FloatMatrix, QueryBatch, Ranking

Connection = psycopg.Connection[tuple[Any, ...]]

CLUSTERS = 200
SPREAD = 0.7
"""Standard deviation within a cluster; between clusters it is 1."""

SETUP = """
CREATE EXTENSION IF NOT EXISTS vector;
DROP SCHEMA IF EXISTS recallwatch_bench CASCADE;
CREATE SCHEMA recallwatch_bench;
CREATE TABLE recallwatch_bench.chunks (
    document_id text, chunk_index int, content text, embedding vector,
    PRIMARY KEY (document_id, chunk_index));
CREATE FUNCTION recallwatch_bench.search_all(questions vector[], k int) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    question vector;
    keys text[];
    found bigint := 0;
BEGIN
    FOREACH question IN ARRAY questions LOOP
        SELECT array_agg(nearest.key) INTO keys FROM (
            SELECT document_id || ':' || chunk_index AS key FROM recallwatch_bench.chunks
            ORDER BY embedding <=> question LIMIT k) AS nearest;
        found := found + cardinality(keys);
    END LOOP;
    RETURN found;
END $$;
"""

INDEX = "CREATE INDEX ON recallwatch_bench.chunks USING hnsw (embedding vector_cosine_ops)"

SINGLE = """SELECT document_id || ':' || chunk_index, 1 - (embedding <=> %(question)b)
FROM recallwatch_bench.chunks ORDER BY embedding <=> %(question)b LIMIT %(k)s"""

PIPED = """SELECT document_id || ':' || chunk_index AS key, 1 - (embedding <=> :vector) AS score
FROM recallwatch_bench.chunks ORDER BY embedding <=> :vector LIMIT :k"""


def make_vectors(
    chunks: int, questions: int, dimensions: int, seed: int
) -> tuple[FloatMatrix, FloatMatrix]:
    """Draw chunk and question vectors around the same random centres."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((CLUSTERS, dimensions), dtype=np.float32)
    total = chunks + questions
    noise = rng.standard_normal((total, dimensions), dtype=np.float32)
    vectors = centres[rng.integers(0, CLUSTERS, size=total)] + np.float32(SPREAD) * noise
    return vectors[:chunks], vectors[chunks:]


@contextmanager
def bench_corpus(database: str | None, vectors: FloatMatrix) -> Iterator[Connection]:
    """Fill and index the table in a database, or in a server of its own; drop it at the end."""
    if database is None:
        with (
            tempfile.TemporaryDirectory() as folder,
            open_stack(Path(folder), postgres=True, valkey=False) as stack,
            bench_corpus(stack.servers.database_url, vectors) as conn,
        ):
            yield conn
        return
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(SETUP)
        try:
            register_vector(conn)
            register_vector_array(conn)
            _fill(conn, vectors)
            yield conn
        finally:
            conn.execute("DROP SCHEMA recallwatch_bench CASCADE")


def _fill(conn: Connection, vectors: FloatMatrix) -> None:
    copy_in = "COPY recallwatch_bench.chunks FROM STDIN (FORMAT BINARY)"
    with conn.cursor() as cursor, cursor.copy(copy_in) as copy:
        copy.set_types(["text", "int4", "text", "vector"])
        for number, vector in enumerate(vectors):
            copy.write_row((f"document-{number // 10}", number % 10, "", Vector(vector)))
    dimensions = sql.Literal(vectors.shape[1])
    table = sql.SQL("recallwatch_bench.chunks")
    conn.execute(
        sql.SQL("ALTER TABLE {} ALTER embedding TYPE vector({})").format(table, dimensions)
    )
    conn.execute(INDEX)
    conn.execute(sql.SQL("VACUUM ANALYZE {}").format(table))


def ways(
    conn: Connection, questions: FloatMatrix, k: int, ef_search: int
) -> dict[str, Callable[[], int]]:
    """Return each way by name; a call asks all questions and returns the number of rows found."""
    conn.execute("SELECT set_config('hnsw.ef_search', %s, false)", [str(ef_search)])
    table = describe(conn, CorpusSettings(table="recallwatch_bench.chunks"))
    session = CorpusSession(conn, table)
    by_vector = VectorRetriever(session, VectorStrategy(ef_search=ef_search))
    by_sql = SqlRetriever("piped", session, SqlStrategy(statement=PIPED))
    nothing = [None] * len(questions)
    batch = QueryBatch(
        texts=[""] * len(questions), tenants=nothing, languages=nothing, vectors=questions
    )

    def loop() -> int:
        ((found,),) = conn.execute(
            "SELECT recallwatch_bench.search_all(%b::vector[], %s)", [VectorArray(questions), k]
        )
        return int(found)

    def found_by(retriever: Retriever) -> int:
        answers = retriever.retrieve(batch, k)
        return sum(len(answer.keys) for answer in answers if isinstance(answer, Ranking))

    def single() -> int:
        cursor = conn.cursor(binary=True)
        return sum(
            len(cursor.execute(SINGLE, {"question": Vector(q), "k": k}, prepare=True).fetchall())
            for q in questions
        )

    return {
        "loop": loop,
        "batched": lambda: found_by(by_vector),
        "single": single,
        "piped": lambda: found_by(by_sql),
    }


def _seconds(way: Callable[[], int], expected: int) -> float:
    """Time one call; every way must find as many rows."""
    start = time.perf_counter()
    found = way()
    elapsed = time.perf_counter() - start
    assert found == expected, f"{found} rows instead of {expected}"
    return elapsed


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each way's microseconds a question (median) and its ratio to the loop."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--database",
        default=os.environ.get("DATABASE_URL"),
        help="PostgreSQL with pgvector (DATABASE_URL, else a server started for the purpose)",
    )
    parser.add_argument("--chunks", type=int, default=20_000, help="in the index (20000)")
    parser.add_argument("--dimensions", type=int, default=256, help="of each vector (256)")
    parser.add_argument("--questions", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--k", type=int, default=10, help="results a question (10)")
    parser.add_argument("--ef-search", type=int, default=40, help="hnsw.ef_search (40)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each way (5)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random vectors (1)")
    options = parser.parse_args(arguments)
    chunks, questions = make_vectors(
        options.chunks, options.questions, options.dimensions, options.seed
    )
    with bench_corpus(options.database, chunks) as conn:
        asked = ways(conn, questions, options.k, options.ef_search)
        rows = options.questions * min(options.k, options.chunks)
        rounds = [
            {name: _seconds(way, rows) for name, way in asked.items()}
            for _ in range(options.rounds + 1)
        ][1:]
    print(
        f"{options.chunks} chunks x {options.dimensions}, {options.questions} questions, "
        f"k = {options.k}, ef_search = {options.ef_search}, {options.rounds} rounds"
    )
    for name in asked:
        each = statistics.median(one[name] for one in rounds) / options.questions
        ratios = sorted(one[name] / one["loop"] for one in rounds)
        print(
            f"{name:<8} {each * 1e6:>8,.0f} us/question   ratio {statistics.median(ratios):.2f}"
            f"  ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
