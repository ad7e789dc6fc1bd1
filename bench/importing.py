"""`recallwatch golden import` of golden sets of several sizes, side by side: seconds and memory.

Each file is imported twice, by the real command in a process of its own, into a PostgreSQL server
that stands beside it: all questions are new the first time, and known the second. A tenth of the
lines repeat an earlier one, and every question brings the text that was judged. Memory is the
highest of the importing process; the ratio is to the smallest file. The server's is bounded by its
work_mem.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import structlog

from cli.embedded.stack import open_stack
from db import migrate
from db.session import Database

SIZES = (10_000, 100_000, 1_000_000)

_MEASURED = """
import resource, sys
from cli.main import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


def lines(questions: int) -> Iterator[str]:
    """Yield a golden set of so many lines as a person's file would hold them."""
    for number in range(questions):
        asked = number if number % 10 else number // 2
        key = f"https://docs.example/page-{asked % 5_000}:{asked % 7}"
        yield json.dumps({
            "question": f"What does the manual say about part number {asked}, and where?",
            "expected": {key: 1 + asked % 3},
            "category": f"category {asked % 12}",
            "evidence": {key: f"What page {asked % 5_000} says of it in part {asked % 7}. " * 4},
        }) + "\n"  # fmt: skip


def measure(file: Path, questions: int, folder: Path) -> tuple[float, float]:
    """Import a file; return the seconds and the MiB that it took."""
    command = (sys.executable, "-c", _MEASURED, "golden", "import", str(file),
               "--set", f"of-{questions}")  # fmt: skip
    started = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    seconds = time.perf_counter() - started
    said, peak = done.stdout.strip().rsplit("\n", 1)
    print(f"          {said}", flush=True)
    return seconds, int(peak) / 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Print two lines a number of questions."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.importing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="QUESTIONS",
                        help=f"default: {' '.join(map(str, SIZES))}")  # fmt: skip
    sizes = sorted(parser.parse_args(arguments).sizes)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    smallest: dict[str, float] = {}
    print("questions  import  seconds     MiB  ratio")
    with (
        tempfile.TemporaryDirectory() as name,
        open_stack(Path(name), postgres=True, valkey=True) as stack,
    ):
        assert stack.servers.database_url is not None
        assert stack.servers.redis_url is not None
        os.environ["DATABASE_URL"] = stack.servers.database_url
        os.environ["REDIS_URL"] = stack.servers.redis_url
        migrate.upgrade(Database(stack.servers.database_url, pooled=False))
        for questions in sizes:
            file = Path(name) / f"{questions}.jsonl"
            with file.open("w") as stream:
                stream.writelines(lines(questions))
            for which in ("first", "again"):
                seconds, peak = measure(file, questions, Path(name))
                ratio = peak / smallest.setdefault(which, peak)
                print(f"{questions:>9,}  {which:>6}  {seconds:>7.1f}  {peak:>6.0f}  {ratio:>5.2f}",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
