"""Two runs compared as the reducer compares them, by number of questions: seconds and memory.

Pairing, means, intervals, p-values and groups of two finished runs of one golden version, with six
measures and ten categories, in a PostgreSQL server of its own. Of the questions a share is lost and
as many are won. Memory is the highest of this process; the server's is bounded by its work_mem.
"""

import argparse
import logging
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import structlog
from sqlalchemy import text
from sqlalchemy.orm import Session

from cli.embedded.stack import open_stack
from db import comparisons, migrate, runs
from db.session import Database

SIZES = (10_000, 100_000, 1_000_000)
MOVED = 0.05

_VERSION = text("""
    INSERT INTO recallwatch.golden_version (set_name, fingerprint, size)
    VALUES ('bench', gen_random_uuid()::text, :n) RETURNING id
""")
_ITEMS = text("""
    INSERT INTO recallwatch.golden_item (version_id, position, question_id, content_hash, text,
        expected, kind, source, must_pass, category)
    SELECT :version, i, i, md5(i::text), 'question ' || i, jsonb_build_object('document', 1),
        'answerable', 'manual', false, 'category ' || (i % 10)
    FROM generate_series(0, :n - 1) AS i
""")
_BATCH = text("""
    INSERT INTO recallwatch.batch (version_id, trigger) VALUES (:version, 'manual') RETURNING id
""")
_RUN = text("""
    INSERT INTO recallwatch.run (batch_id, strategy, settings, needs_vectors, k, level, convention,
        measures, relevance_threshold, gate, size, corpus_fingerprint, deadline_at)
    VALUES (:batch, 'vector', '{}', true, 5, 'chunk', 'rw-1',
        '{hit@5, recall@5, precision@5, mrr@5, map@5, ndcg@5}', 1,
        jsonb_build_object('metrics', jsonb_build_array('recall@5'), 'category_min', 20), :n,
        jsonb_build_object('chunks', 1, 'embedded', 1, 'texts', null, 'vectors', null),
        now() + interval '1 day')
    RETURNING id
""")
# The second run turns the hits of a share of the questions round.
_RESULTS = text("""
    INSERT INTO recallwatch.result (run_id, position, outcome, retrieved, scores, measured,
        first_rank, missing)
    SELECT :run, i, 'scored', '{a, b, c, d, e}', '{5, 4, 3, 2, 1}',
        ARRAY[hit, hit, hit / 5, hit / rank, hit / rank, hit / log(2.0, rank + 1)]::float8[], rank,
        '{}'
    FROM (
        SELECT i, 1 + i % 5 AS rank,
            CASE WHEN :turned AND hashint4(i + 7) % 1000 + 1000 < 2000 * :moved
                THEN 1 - kept ELSE kept END AS hit
        FROM (SELECT i, (hashint4(i) % 10 <> 0)::int::float8 AS kept
              FROM generate_series(0, :n - 1) AS i) AS first
    ) AS questions
""")


def fill(session: Session, n: int, moved: float) -> tuple[int, int]:
    """Make two finished runs of n questions; return the later one and its reference."""
    version = session.scalar(_VERSION, {"n": n})
    session.execute(_ITEMS, {"version": version, "n": n})
    batch = session.scalar(_BATCH, {"version": version})
    reference, run = (session.scalar(_RUN, {"batch": batch, "n": n}) for _ in range(2))
    for run_id, turned in ((reference, False), (run, True)):
        values = {"run": run_id, "turned": turned, "n": n, "moved": moved}
        session.execute(_RESULTS, values)
    for table in ("golden_item", "result"):
        session.execute(text(f"ANALYZE recallwatch.{table}"))
    assert run is not None
    assert reference is not None
    return run, reference


def measure(database: Database, n: int, moved: float) -> str:
    """Return a line of the table: questions, lost, won, seconds, MiB."""
    with database.begin() as session:
        run_id, reference_id = fill(session, n, moved)
    with database.begin() as session:
        run, reference = (runs.get(session, each).run for each in (run_id, reference_id))
        started = time.perf_counter()
        found = comparisons.compare(session, run, reference)
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{n:>9,}  {found.lost:>7,}  {found.won:>7,}  {seconds:>7.2f}  {peak:>6.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line a number of questions."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.comparing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="QUESTIONS",
                        help=f"default: {' '.join(map(str, SIZES))}")  # fmt: skip
    parser.add_argument("--moved", type=float, default=MOVED,
                        help=f"share of the questions that are lost or won ({MOVED})")  # fmt: skip
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    print("questions     lost      won  seconds     MiB")
    with (
        tempfile.TemporaryDirectory() as folder,
        open_stack(Path(folder), postgres=True, valkey=False) as stack,
    ):
        assert stack.servers.database_url is not None
        database = Database(stack.servers.database_url)
        migrate.upgrade(database)
        for n in options.sizes:
            print(measure(database, n, options.moved), flush=True)
        database.close()


if __name__ == "__main__":
    main()
