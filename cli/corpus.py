"""`recallwatch corpus`: the chunks that are searched."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import click

from cli.context import Context, pass_context
from cli.lazy import OrderedGroup, examples
from cli.output import Column, print_json, progress, table
from cli.servers import open_servers
from pipeline.corpus.reading import Chunk
from pipeline.corpus.statistics import CorpusSummary
from pipeline.embedding.checked import CheckedEmbedder


@click.group(
    cls=OrderedGroup,
    epilog=examples("recallwatch corpus load chunks.jsonl.gz", "recallwatch corpus show"),
)
def corpus() -> None:
    """Load chunks, or look at the chunks table."""


@corpus.command("load", epilog=examples(
    "recallwatch corpus load chunks.jsonl", "recallwatch corpus load --replace chunks.jsonl.gz",
    "recallwatch corpus load scifact/",
))  # fmt: skip
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--replace",
    is_flag=True,
    help="Drop what the table holds; needed after a change of the embedding model.",
)
@click.option("--document-ids", is_flag=True, help="Each _id of BEIR's names a document.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def load_file(
    context: Context, file: Path, replace: bool, document_ids: bool, as_json: bool
) -> None:
    """Load chunks into recallwatch's own chunks table.

    FILE holds a JSON object a line, plain or gzipped: "document_id", "chunk_index", "content",
    and optionally "tenant", "language" and "embedding". Or it is a BEIR folder, or its
    corpus.jsonl: "_id", "text", "title". Loading again embeds only what changed.
    """
    from pipeline.corpus.loading import load
    from pipeline.corpus.reading import corpus_file, read_chunks
    from pipeline.errors import UsageError

    if not context.settings.corpus.is_managed:
        raise UsageError(
            f"[corpus] table is {context.settings.corpus.table!r}, a table of yours: recallwatch"
            " only reads it; leave table unset to load chunks into one of its own"
        )
    # Read to the end first: a fault in the last line must not leave half of the file loaded. What
    # is no regular file, as a pipe, can be read once only.
    file = corpus_file(file)
    total = sum(1 for _ in read_chunks(file, document_ids=document_ids)) if file.is_file() else None
    chunks = read_chunks(file, document_ids=document_ids)
    first = next(chunks)
    with open_servers(context) as opened, progress("loading", total) as bar:
        embedder = opened.work.chunk_embedder()
        report = load(
            opened.work.corpus(),
            chain([first], chunks),
            embedder.embed,
            model=embedder.model,
            dimensions=_dimensions(embedder, first),
            replace=replace,
            on_progress=bar.advance,
        )
    if as_json:
        print_json(report)
        return
    blank = f", {report.without_embedding} blank" if report.without_embedding else ""
    context.console.print(
        f"corpus: {report.inserted} inserted, {report.updated} updated,"
        f" {report.unchanged} unchanged; {report.embedded} embedded{blank};"
        f" {report.total} chunks in all",
        soft_wrap=True,
    )
    for warning in report.warnings:
        context.err.print(f"warning: {warning}", soft_wrap=True)


def _dimensions(embedder: CheckedEmbedder, first: Chunk) -> int:
    """Return how long the table's vectors are: as those of the file, else as the model's."""
    if first.embedding is not None:
        return len(first.embedding)
    if embedder.dimensions is not None:
        return embedder.dimensions
    vectors, _ = embedder.embed(["how long are your vectors?"])
    return int(vectors.shape[1])


@corpus.command(
    "show", epilog=examples("recallwatch corpus show", "recallwatch corpus show --json")
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def show_corpus(context: Context, as_json: bool) -> None:
    """Count chunks, documents, tenants and vectors, and list the indexes."""
    from pipeline.corpus.statistics import show

    with open_servers(context) as opened:
        summary = show(opened.work.corpus(), opened.work.corpus_table())
    if as_json:
        print_json(summary)
        return
    context.console.print(table(None, ["corpus", Column("", wrap=True)], _facts(summary)))


def _facts(summary: CorpusSummary) -> list[list[object]]:
    """Lay a summary out as rows of name and value."""
    rows: list[list[object]] = [
        ["table", summary.table],
        ["chunks", f"{summary.chunks:,} in {summary.documents:,} documents"],
        ["blank chunks", f"{summary.blank_contents:,}"],
        ["missing embeddings", f"{summary.missing_embeddings:,}"],
        ["dimensions", _counted(summary.dimensions)],
        ["embedding models", _counted(summary.models)],
        ["tenants", _counted(summary.tenants)],
        ["languages", _counted(summary.languages)],
        ["text search column", summary.text_search],
        ["vector index", summary.vector_index or "none: every vector search scans the table"],
        ["size", _megabytes(summary.size)],
    ]
    for index in summary.indexes:
        state = "" if index.valid else ", INVALID: drop it and build it again"
        rows.append(
            [
                "index",
                f"{index.name}: {index.method} ({index.keys}), {_megabytes(index.size)}{state}",
            ]
        )
    return rows


def _counted(counts: Mapping[Any, int], most: int = 8) -> str | None:
    """Return "name (count)" for the largest few."""
    if not counts:
        return None
    largest = sorted(counts.items(), key=lambda item: -item[1])
    shown = [f"{'none' if name is None else name} ({n:,})" for name, n in largest[:most]]
    more = [f"and {len(largest) - most} more"] if len(largest) > most else []
    return ", ".join(shown + more)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
