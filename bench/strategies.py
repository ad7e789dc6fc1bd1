"""Evaluate the shared collections by every kind of strategy, and write docs/results.md.

Each through the real commands, as bench.collections does. The search that stands for people's own
is BM25 in plain Python, once as Python, once behind an HTTP server, once as a reranker.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.bm25 import Bm25Search
from bench.collections import COLLECTIONS, DATA, METRICS, REPOSITORY, RESULTS, K
from bench.page import with_section

SECTION = "bench.strategies"

STRATEGIES = """
python_folder = "{repository}"

[strategies.vector-exact]
kind = "vector"
exact = true

[strategies.fulltext-all]
kind = "fulltext"
match = "all"

[strategies.fulltext-websearch]
kind = "fulltext"
match = "websearch"

[strategies.fulltext-cd]
kind = "fulltext"
rank = "ts_rank_cd"
normalization = 32

[strategies.hybrid-weighted]
kind = "hybrid"
fusion = "weighted"

[strategies.sql]
kind = "sql"
statement = '''
SELECT document_id, chunk_index, 1 - (embedding <=> :vector) AS score
FROM recallwatch_corpus.chunks WHERE :tenant IS NULL OR tenant = :tenant
ORDER BY embedding <=> :vector LIMIT :k
'''

[strategies.python-bm25]
kind = "python"
path = "bench.bm25:Bm25Search"
settings = {{ chunks = "{chunks}" }}
tenant = "ignore"

[strategies.http-bm25]
kind = "http"
url = "{url}"
tenant = "ignore"

[strategies.hybrid-bm25]
kind = "hybrid"
arms = {{ vector = 1.0, python-bm25 = 1.0 }}

[strategies.hybrid-reranked]
kind = "rerank"
candidates = "hybrid"

[strategies.hybrid-reranked.reranker]
kind = "python"
path = "bench.bm25:Bm25Search"
settings = {{ chunks = "{chunks}" }}
"""

NAMES = (
    "vector", "vector-exact", "sql", "fulltext", "fulltext-all", "fulltext-websearch",
    "fulltext-cd", "python-bm25", "http-bm25", "hybrid", "hybrid-weighted", "hybrid-bm25",
    "hybrid-reranked",
)  # fmt: skip

HEAD = """\
# Every kind of strategy

The same collections, by chunks, through every kind of strategy that the embedded servers can serve
(`trigram` needs an extension that they lack). Made by

    python -m bench.strategies --write

`sql` is the vector search in a statement of one's own; `python-bm25` is BM25 in plain Python
(bench/bm25.py), `http-bm25` the same behind an HTTP server, `hybrid-bm25` its fusion with `vector`,
`hybrid-reranked` the candidates of `hybrid`, reranked by it. All other settings are the defaults.
`ms` are the p50 and p95 of one search, from the worker, without embedding; `failed` and `scored`
count questions. A strategy that finds nothing for the first 500 questions is not measured.
"""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.strategies", description=__doc__)
    parser.add_argument("names", nargs="*", default=COLLECTIONS, metavar="COLLECTION",
                        help=f"default: {' '.join(COLLECTIONS)}")  # fmt: skip
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}, not stdout")
    options = parser.parse_args()
    text = "\n".join([HEAD, *(line for name in options.names for line in _section(name))])
    if options.write:
        before = RESULTS.read_text(encoding="utf-8")
        RESULTS.write_text(with_section(before, SECTION, text), encoding="utf-8")
    else:
        print(text)


def _section(name: str) -> Iterator[str]:
    """Evaluate one collection and yield its part of the page."""
    folder = DATA / name
    chunks = next(folder.glob("chunks.jsonl*"))
    with tempfile.TemporaryDirectory() as place, _served(Bm25Search(str(chunks))) as url:
        told = STRATEGIES.format(repository=REPOSITORY, chunks=chunks, url=url)
        (Path(place) / "recallwatch.toml").write_text(told, encoding="utf-8")
        _run(place, "corpus", "load", str(chunks))
        _run(place, "golden", "import", str(folder / "golden.jsonl"))
        asked = [part for strategy in NAMES for part in ("--strategy", strategy)]
        done = json.loads(_run(place, "eval", *asked, "--k", str(K), "--json"))
    yield f"## {name}, by strategy\n"
    yield f"| strategy | {' | '.join(f'{m}@{K}' for m in METRICS)} | scored | failed | ms |"
    yield f"|---|{'---:|' * (len(METRICS) + 3)}"
    yield from (_row(run) for run in done["runs"])
    yield ""


def _row(run: dict[str, Any]) -> str:
    if not run["metrics"]:
        return (
            f"| {run['strategy']} | {' | '.join('-' * len(METRICS))} | {run['verdict']} | - | - |"
        )
    means = " | ".join(f"{run['metrics'][f'{metric}@{K}']:.4f}" for metric in METRICS)
    ms = run["latency"]["search_ms"]
    took = f"{ms['p50']:.1f}, {ms['p95']:.1f}" if ms else "-"
    scored = f"{run['scored']}/{run['questions']}"
    return f"| {run['strategy']} | {means} | {scored} | {run['failed']} | {took} |"


@contextmanager
def _served(search: Bm25Search) -> Iterator[str]:
    """Serve a search over HTTP, as {query, k} -> {results: [{key, score}]}."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = search.search(asked["query"], asked["k"])
            results = [{"key": key, "score": score} for key, score in found]
            body = json.dumps({"results": results}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/search"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _run(place: str, *arguments: str) -> str:
    """Run a command; a run that is regressed or unmeasured is a figure too."""
    done = subprocess.run(
        (sys.executable, "-m", "cli.main", *arguments), cwd=place, check=False, text=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    if done.returncode not in {0, 1, 3}:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
