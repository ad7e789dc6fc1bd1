"""What a tenant filter does to a vector index: rows that come back, how many are right, the time.

A corpus of random vectors in Gaussian clusters, one tenant with a share of it (1 % by default) and
another with the rest, behind one HNSW index. The small tenant's questions are asked in every way
that a strategy can be set to; what is right is what exact search finds. Once without an index of
the tenants, where PostgreSQL has nothing but the vector index, and once with a B-tree, where its
planner chooses by what it guesses either costs.

The table stands in a schema of its own, which is dropped at the end.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector

from bench.page import with_section
from bench.retrieval import Connection, make_vectors
from cli.embedded.stack import open_stack
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.retrieval.exact import ExactVectorRetriever
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.underfill import underfill_cause
from pipeline.retrieval.vector import VectorRetriever
from pipeline.types import FloatMatrix, QueryBatch, Ranking

PAGE = Path(__file__).parents[1] / "docs" / "results.md"

SMALL, LARGE = "small", "large"

SETUP = """
CREATE EXTENSION IF NOT EXISTS vector;
DROP SCHEMA IF EXISTS recallwatch_underfill CASCADE;
CREATE SCHEMA recallwatch_underfill;
CREATE TABLE recallwatch_underfill.chunks (
    document_id text, chunk_index int, content text, tenant text, embedding vector({}));
"""
INDEX = """
SET maintenance_work_mem = '512MB';
CREATE INDEX ON recallwatch_underfill.chunks USING hnsw (embedding vector_cosine_ops);
RESET maintenance_work_mem;
"""
BY_TENANT = """
CREATE INDEX ON recallwatch_underfill.chunks (tenant);
ANALYZE recallwatch_underfill.chunks;
"""

WAYS: Mapping[str, VectorStrategy] = {
    "iterative_scan off": VectorStrategy(iterative_scan="off"),
    "off, ef_search 400": VectorStrategy(iterative_scan="off", ef_search=400),
    "strict_order": VectorStrategy(iterative_scan="strict_order"),
    "relaxed_order": VectorStrategy(iterative_scan="relaxed_order"),
    "strict_order, max_scan_tuples 1,000": VectorStrategy(max_scan_tuples=1000),
    "exact_below above its size": VectorStrategy(exact_below=10_000_000),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What one way brought: rows and right rows a question, questions short of k, milliseconds."""

    way: str
    rows: float
    right: float
    short: int
    ms: float
    cause: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the two tables, or write them into docs/results.md."""
    options = _options(arguments)
    share = round(1 / options.share)
    chunks, questions = make_vectors(options.chunks, options.questions, options.dimensions, 1)
    with _corpus(options.database, chunks, share) as conn:
        without = _table(_measure(conn, questions, options.k))
        conn.execute(BY_TENANT)
        within = _table(_measure(conn, questions, options.k))
    text = _page(options, without, within)
    if options.write:
        PAGE.write_text(with_section(PAGE.read_text(), "bench.underfill", text))
    print(text)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.underfill",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--database",
        default=os.environ.get("DATABASE_URL"),
        help="PostgreSQL with pgvector (DATABASE_URL, else one of its own)",
    )
    parser.add_argument("--chunks", type=int, default=100_000, help="in the corpus (100000)")
    parser.add_argument("--share", type=float, default=0.01, help="of the small tenant (0.01)")
    parser.add_argument("--dimensions", type=int, default=128, help="of each vector (128)")
    parser.add_argument("--questions", type=int, default=200, help="of the small tenant (200)")
    parser.add_argument("--k", type=int, default=10, help="results a question (10)")
    parser.add_argument("--write", action="store_true", help="write into docs/results.md")
    return parser.parse_args(arguments)  # fmt: skip


@contextmanager
def _corpus(database: str | None, vectors: FloatMatrix, share: int) -> Iterator[Connection]:
    """Fill and index the table in a database, or in a server of its own; drop it at the end."""
    if database is None:
        with (
            tempfile.TemporaryDirectory() as folder,
            open_stack(Path(folder), postgres=True, valkey=False) as stack,
            _corpus(stack.servers.database_url, vectors, share) as conn,
        ):
            yield conn
        return
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(SETUP.format(vectors.shape[1]).encode())
        try:
            register_vector(conn)
            _fill(conn, vectors, share)
            yield conn
        finally:
            conn.execute("DROP SCHEMA recallwatch_underfill CASCADE")


def _fill(conn: Connection, vectors: FloatMatrix, share: int) -> None:
    """Give every `share`-th chunk to the small tenant."""
    copying = "COPY recallwatch_underfill.chunks FROM STDIN (FORMAT BINARY)"
    with conn.cursor() as cursor, cursor.copy(copying) as copy:
        copy.set_types(["text", "int4", "text", "text", "vector"])
        for number, vector in enumerate(vectors):
            tenant = LARGE if number % share else SMALL
            copy.write_row((f"document-{number // 10}", number % 10, "", tenant, Vector(vector)))
    conn.execute(INDEX.encode())
    conn.execute("VACUUM ANALYZE recallwatch_underfill.chunks")


def _measure(conn: Connection, questions: FloatMatrix, k: int) -> Iterator[Seen]:
    settings = CorpusSettings(table="recallwatch_underfill.chunks", tenant="tenant")
    session = CorpusSession(conn, describe(conn, settings))
    count = len(questions)
    batch = QueryBatch([""] * count, [SMALL] * count, [None] * count, questions)
    exact = _rankings(ExactVectorRetriever(session).retrieve(batch, k))
    for way, strategy in WAYS.items():
        retriever = VectorRetriever(session, strategy)
        retriever.retrieve(batch, k)
        started = time.perf_counter()
        found = _rankings(retriever.retrieve(batch, k))
        ms = 1000 * (time.perf_counter() - started) / count
        right = sum(len({*a.keys} & {*b.keys}) for a, b in zip(found, exact, strict=True))
        short = sum(len(each.keys) < k for each in found)
        cause = underfill_cause(strategy, k, tenant=SMALL, method="hnsw") if short else ""
        rows = sum(len(each.keys) for each in found)
        yield Seen(way, rows / count, right / count, short, ms, cause or "")


def _rankings(answers: Sequence[object]) -> list[Ranking]:
    return [answer for answer in answers if isinstance(answer, Ranking)]


def _table(seen: Iterator[Seen]) -> str:
    lines = [
        "| strategy | rows | of these right | short of k | ms a question | named cause |",
        "|---|---:|---:|---:|---:|---|",
        *(
            f"| {each.way} | {each.rows:.2f} | {each.right:.2f} | {each.short} | {each.ms:.2f} |"
            f" {each.cause} |"
            for each in seen
        ),
    ]
    return "\n".join(lines)


def _page(options: argparse.Namespace, without: str, within: str) -> str:
    asked = f"{options.questions} questions of a tenant with {options.share:.0%} of the corpus"
    corpus = f"{options.chunks:,} chunks of {options.dimensions} random numbers, in clusters"
    return f"""
# A tenant filter behind a vector index

{asked}, which has {corpus};
k = {options.k}, one HNSW index, `ef_search` 40 unless said. What is right is what exact search
finds. Made by

    python -m bench.underfill --write

Without an index of the tenants:

{without}

With a B-tree on the tenant, PostgreSQL's planner may go by that one instead:

{within}
"""


if __name__ == "__main__":
    main()
