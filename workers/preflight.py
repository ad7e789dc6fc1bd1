"""What is looked at before a batch starts, so that a mistake is said at once and in one line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from db import golden
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.loading import FROM_FILE
from pipeline.corpus.statistics import CorpusFingerprint, embedding_models
from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError
from pipeline.retrieval.tree import tree_of
from pipeline.types import Level, document_of, make_key
from workers.context import Context


def check_corpus(
    ctx: Context, strategies: Sequence[str], table: CorpusTable, corpus: CorpusFingerprint
) -> None:
    """Refuse a corpus that cannot answer: empty, or embedded by another model or not at all.

    Raises CorpusError.
    """
    if corpus.chunks == 0:
        raise CorpusError(f"corpus table {table} is empty; run: recallwatch corpus load FILE")
    known = ctx.settings.strategies
    if any(tree_of(name, known).needs_vectors for name in strategies):
        _check_vectors(ctx, table, corpus)


def _check_vectors(ctx: Context, table: CorpusTable, corpus: CorpusFingerprint) -> None:
    if corpus.embedded == 0:
        raise CorpusError(
            f"no chunk of corpus table {table} has an embedding: embed them, or evaluate"
            " strategies that need none"
        )
    embedder = ctx.embedder(dimensions=table.dimensions)
    advice = "set [embedding] to the model that the corpus was embedded with"
    if embedder.dimensions and table.dimensions and embedder.dimensions != table.dimensions:
        raise CorpusError(
            f"the vectors of corpus table {table} have {table.dimensions} dimensions, but"
            f" {embedder.model} gives {embedder.dimensions}: {advice}"
        )
    models = set(embedding_models(ctx.corpus(), table)) - {FROM_FILE}
    if models and embedder.model not in models:
        raise CorpusError(
            f"corpus table {table} was embedded with {', '.join(sorted(models))}, but the"
            f" questions would be with {embedder.model}: {advice}"
        )


@dataclass(frozen=True, slots=True)
class DocumentKeys:
    """What a golden version expects of one document.

    `expected`: distinct keys, of which `gone` are not in the corpus; `questions` counts those that
    expect one of the gone.
    """

    document_id: str
    expected: int
    gone: Sequence[str]
    questions: int


@dataclass(frozen=True, slots=True)
class DocumentCheck:
    """Documents that a version expects keys of, and those that the corpus has no chunk of."""

    expected: Sequence[DocumentKeys]
    unknown: Sequence[str]


def check_documents(ctx: Context, version_id: int, document_ids: Sequence[str]) -> DocumentCheck:
    """Look up what a version expects of some documents, in the order given."""
    table = ctx.corpus_table()
    wanted = list(dict.fromkeys(document_ids))
    with ctx.database.begin() as session:
        positions = golden.positions_by_key(session, version_id, wanted)
    live = live_keys(ctx.corpus(), table, positions, Level.CHUNK)
    there = live_keys(ctx.corpus(), table, [make_key(each, 0) for each in wanted], Level.DOCUMENT)
    keys: dict[str, list[str]] = {}
    for key in positions:
        keys.setdefault(document_of(key), []).append(key)
    found = [_document(each, keys[each], live, positions) for each in wanted if each in keys]
    return DocumentCheck(found, [each for each in wanted if each not in there])


def _document(
    document_id: str, keys: Sequence[str], live: set[str], positions: Mapping[str, Sequence[int]]
) -> DocumentKeys:
    gone = [key for key in keys if key not in live]
    asked = {position for key in gone for position in positions[key]}
    return DocumentKeys(document_id, len(keys), gone, len(asked))
