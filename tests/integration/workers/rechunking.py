"""What a re-index does to the small corpus of these tests."""

from pipeline.embedding.local import LocalEmbedder
from tests.integration.db.building import execute, fetch
from tests.integration.workers.conftest import TEXTS
from tests.integration.workers.working import DIMENSIONS
from workers.context import Context
from workers.enqueue import StartedBatch


def rewrite(ctx: Context, chunks: dict[str, str]) -> None:
    """Put these chunks, with their vectors, in the place of those that are there."""
    execute(ctx.database, "DELETE FROM recallwatch_corpus.chunks")
    vectors = LocalEmbedder(DIMENSIONS).embed(list(chunks.values()))
    for (key, content), vector in zip(chunks.items(), vectors, strict=True):
        document, _, number = key.rpartition(":")
        execute(
            ctx.database,
            "INSERT INTO recallwatch_corpus.chunks (document_id, chunk_index, content, language,"
            " text_config, embedding, embedding_model, content_hash) VALUES (:document, :number,"
            " :content, 'en', 'english', CAST(:vector AS vector), 'file', '')",
            {"document": document, "number": int(number), "content": content,
             "vector": str(vector.tolist())},
        )  # fmt: skip


def shifted() -> dict[str, str]:
    """Return the corpus with a new chunk before each document's first: every key stands on."""
    chunks: dict[str, str] = {}
    for key, text in TEXTS.items():
        document, _, number = key.partition(":")
        chunks.setdefault(f"{document}:0", "This page was written anew.")
        chunks[f"{document}:{int(number) + 1}"] = text
    return chunks


def joined() -> dict[str, str]:
    """Return the corpus with one chunk a document."""
    chunks: dict[str, str] = {}
    for key, text in TEXTS.items():
        whole = f"{key.partition(':')[0]}:0"
        chunks[whole] = f"{chunks[whole]}\n\n{text}" if whole in chunks else text
    return chunks


def evidence_of(ctx: Context) -> dict[str, str]:
    """Return key -> the text that it was judged on."""
    return dict(fetch(
        ctx.database,
        "SELECT DISTINCT j.key, e.text FROM recallwatch.judgment j"
        " JOIN recallwatch.evidence e ON e.hash = j.evidence_hash",
    ))  # fmt: skip


def set_text(ctx: Context, key: str, content: str) -> None:
    """Give a chunk another text."""
    document, _, number = key.partition(":")
    execute(
        ctx.database,
        "UPDATE recallwatch_corpus.chunks SET content = :content"
        " WHERE document_id = :document AND chunk_index = :number",
        {"content": content, "document": document, "number": int(number)},
    )


def stale_of(started: StartedBatch) -> list[tuple[int, str, str]]:
    """Return position, key and state of the keys that are stale."""
    return sorted((each.position, each.key, each.state) for each in started.keys.stale)
