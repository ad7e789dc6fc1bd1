"""`recallwatch demo`: the main job on real input, and a planted regression being caught."""

import os
import shutil
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from cli.context import Context, pass_context
from cli.lazy import examples
from cli.output import Column, progress, table
from cli.servers import Opened, open_servers
from db.runs import RunContext
from pipeline.errors import UnmeasuredError, UsageError
from pipeline.types import Verdict

STRATEGIES = ("vector", "fulltext", "hybrid")
METRICS = ("hit", "recall", "mrr", "ndcg")
GOLDEN = Path(__file__).parent / "golden.jsonl"

CONFIG = """\
# Written by `recallwatch demo`: its servers, its data, the defaults for all else.
state_dir = "servers"
"""

OVERRIDES = ("DATABASE_URL", "CORPUS_URL", "REDIS_URL")


@click.command(epilog=examples("recallwatch demo"))
@pass_context
def demo(context: Context) -> None:
    """Evaluate search over Python's own documentation, break it, and see it caught.

    The corpus is the documentation of the standard library, read from this interpreter; the 120+
    questions were written and checked by hand. Everything runs on servers of its own under
    .recallwatch/demo, made anew each time; your settings and data are not touched.
    """
    console = context.console
    with _own_settings(context.settings.state_dir / "demo") as own, open_servers(own) as opened:
        chunks, documents = _load(opened)
        console.print(f"1. Corpus: {chunks:,} chunks of {documents:,} documented Python objects.")
        size = _import(opened)
        console.print(f"2. Golden set: {size} questions with the chunks that answer them.\n")
        console.print("3. Evaluate three ways to search, each a run through the queue:\n")
        before = _evaluate(opened)
        console.print(_summary(before))
        console.print()
        spoiled = _plant(opened)
        console.print(
            f"4. A re-index goes wrong: {spoiled:,} chunks, a third of the documents, are\n"
            "   embedded from their first words only. Every chunk is still there, and its\n"
            "   text is right.\n"
        )
        console.print("5. Evaluate again, as the weekly schedule or CI would:\n")
        after = _evaluate(opened)
        console.print(_summary(after))
        _check(before, after)
        console.print(
            "\n6. The message that a channel of kind slack would get; nothing is sent here:\n"
        )
        _print_message(own, opened, after)
    console.print(
        "\nCaught: vector and hybrid regressed, full text did not, and exact search says"
        "\nwhy: the texts or their vectors changed, not the index. `recallwatch eval`"
        f"\nwould have ended with exit code 1. The whole report:\n\n"
        f"  recallwatch --config {_nearby(own.config_path)} runs show {after[0].run.id}\n\n"
        "Next, with your own data: recallwatch init, corpus load, golden import, eval."
    )


def _nearby(path: Path | None) -> str:
    """Return a path as one would type it here."""
    return os.path.relpath(path) if path else ""


@contextmanager
def _own_settings(folder: Path) -> Iterator[Context]:
    """Give a context with the demo's settings only, in a clean folder of its own."""
    _remove(folder)
    folder.mkdir(parents=True)
    config = folder / "recallwatch.toml"
    config.write_text(CONFIG, encoding="utf-8")
    kept = dict(os.environ)
    for name in kept:
        if name in OVERRIDES or name.startswith("RECALLWATCH_"):
            del os.environ[name]
    try:
        yield Context(config_path=config)
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _remove(folder: Path) -> None:
    """Clear what an earlier demo left, its servers included if it was killed."""
    from cli.embedded.stack import open_stack

    if folder.exists():
        with open_stack(folder / "servers", postgres=False, valkey=False):
            pass
        shutil.rmtree(folder)


def _load(opened: Opened) -> tuple[int, int]:
    """Load the standard library's documentation; return chunks and documents."""
    from cli.demo.corpus import standard_library_chunks
    from pipeline.corpus.loading import load
    from pipeline.corpus.reading import Chunk
    from pipeline.corpus.statistics import show

    if sys.flags.optimize > 1:
        raise UsageError("python -OO strips the documentation that the demo searches")
    chunks = [Chunk(**record) for record in standard_library_chunks()]
    embedder = opened.work.chunk_embedder()
    with progress("loading", len(chunks)) as bar:
        load(
            opened.work.corpus(), chunks, embedder.embed, model=embedder.model,
            dimensions=embedder.dimensions or 0, on_progress=bar.advance,
        )  # fmt: skip
    summary = show(opened.work.corpus(), opened.work.corpus_table())
    return summary.chunks, summary.documents


def _import(opened: Opened) -> int:
    from db.golden_import import import_questions
    from pipeline.golden.formats import ReadOptions
    from pipeline.golden.jsonl import read
    from pipeline.golden.staging import staged

    source = str(GOLDEN)
    with (
        staged(source, read(source, options=ReadOptions())) as plan,
        opened.work.database.begin() as session,
    ):
        return import_questions(session, "default", plan.questions()).added


def _evaluate(opened: Opened) -> list[RunContext]:
    from cli.following import follow
    from workers.enqueue import Request, start

    started = start(opened.work, Request(strategies=STRATEGIES))
    return follow(opened, started.run_ids)


def _plant(opened: Opened) -> int:
    """Give a third of the documents the vectors of their first words; return how many chunks."""
    from cli.demo.corpus import first_words, standard_library_chunks
    from pipeline.corpus.loading import load
    from pipeline.corpus.reading import Chunk

    embedder = opened.work.chunk_embedder()
    spoiled = [r for r in standard_library_chunks() if _is_spoiled(r["document_id"])]
    vectors, failures = embedder.embed([first_words(record["content"]) for record in spoiled])
    chunks = [
        Chunk(**record, embedding=vectors[i]) for i, record in enumerate(spoiled)
        if i not in failures
    ]  # fmt: skip
    load(
        opened.work.corpus(), chunks, embedder.embed, model=embedder.model,
        dimensions=embedder.dimensions or 0,
    )  # fmt: skip
    return len(chunks)


def _is_spoiled(document_id: str) -> bool:
    """Pick a third of the documents, the same ones on every machine."""
    return zlib.crc32(document_id.encode()) % 3 == 0


def _summary(found: Sequence[RunContext]) -> object:
    """Compare strategies: a row each, headline metrics at k."""
    k = found[0].run.k
    means = [Column(f"{name}@{k}", right=True) for name in METRICS]
    columns: list[str | Column] = [
        Column("run", right=True),
        "strategy",
        *means,
        Column("scored", right=True),
        "verdict",
    ]
    rows = []
    for each in found:
        metrics = each.run.metrics or {}
        shown = [f"{metrics[f'{name}@{k}']:.4f}" for name in METRICS]
        scored = f"{each.run.n_scored}/{each.run.size}"
        rows.append([each.run.id, each.run.strategy, *shown, scored, each.run.verdict])
    return table(None, columns, rows)


def _print_message(context: Context, opened: Opened, found: Sequence[RunContext]) -> None:
    """Print the message to Slack about the vector run, made as a worker makes it."""
    from cli.slack_preview import preview
    from pipeline.alerts.slack_message import slack_message
    from pipeline.types import AlertKind
    from workers.composing import alert_of

    fallen = next(each for each in found if each.run.strategy == "vector")
    with opened.work.database.begin() as session:
        alert = alert_of(session, fallen, AlertKind.REGRESSED)
    context.console.print(preview(slack_message(alert), "Slack"))


def _check(before: Sequence[RunContext], after: Sequence[RunContext]) -> None:
    """Raise UnmeasuredError unless the demo showed what it says it shows."""
    verdicts = {each.run.strategy: each.run.verdict for each in after}
    expected = {
        "vector": Verdict.REGRESSED, "fulltext": Verdict.OK, "hybrid": Verdict.REGRESSED
    }  # fmt: skip
    if {each.run.verdict for each in before} != {Verdict.BASELINE} or verdicts != expected:
        raise UnmeasuredError(f"the demo went otherwise than it should: {verdicts}")
