"""What the filters of generated questions do to questions that people asked.

Each question of the shared collections is taken as if it had been written from one of its chunks.
None of them is to be refused for its language, or for speaking of a text. Where a question has
several relevant chunks, one is the source, and the filters have to find the others. And for the
questions that a collection says are not answered: how many would be refused as answered after all.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psycopg

from bench.collections import DATA
from cli.embedded.stack import open_stack
from pipeline.corpus.loading import load
from pipeline.corpus.neighbours import near_duplicates
from pipeline.corpus.reading import Chunk, read_chunks
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.corpus.terms import lexemes
from pipeline.embedding.local import LocalEmbedder
from pipeline.generation.ambiguity import LOOKED_AT, Found, Terms, find_answer, propose
from pipeline.generation.filters import LEAST_TERMS, SourceText, Wording, overlap, shared_run
from pipeline.generation.languages import other_language
from pipeline.generation.references import is_generic, reference_to_text
from pipeline.generation.settings import GenerationSettings
from pipeline.generation.words import content_terms, length
from pipeline.types import FloatMatrix, Ranking

COLLECTIONS = {"anthropic-docs-en": "en", "faquad-pt": "pt", "mtrag-un-en": "en"}
SETTINGS = GenerationSettings()
DEPTH = 50


@dataclass(frozen=True)
class Collection:
    """A loaded collection: chunks and questions with their content words and nearest chunks."""

    language: str
    chunks: Mapping[str, Chunk]
    chunk_terms: Mapping[str, Terms]
    questions: Sequence[Mapping[str, Any]]
    question_terms: Sequence[Terms]
    nearest: Sequence[Ranking]
    neighbours: Mapping[str, Ranking]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.screening", description=__doc__)
    parser.add_argument("names", nargs="*", default=COLLECTIONS, metavar="COLLECTION")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as place,
        open_stack(Path(place), postgres=True, valkey=False) as stack,
    ):
        assert stack.servers.database_url is not None
        for name in options.names:
            with psycopg.connect(stack.servers.database_url, autocommit=True) as conn:
                print(f"\n{name}")
                for line in report(loaded(conn, name)):
                    print(f"  {line}")


def loaded(conn: psycopg.Connection[Any], name: str) -> Collection:
    """Load a collection's chunks into the database, in place of what it holds, and ask it."""
    folder = DATA / name
    chunks = list(read_chunks(next(folder.glob("chunks.jsonl*"))))
    with (folder / "golden.jsonl").open(encoding="utf-8") as lines:
        questions = [json.loads(line) for line in lines]
    embedder = LocalEmbedder(256)
    conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
    load(
        conn, chunks, lambda texts: (embedder.embed(texts), {}), model=embedder.model,
        dimensions=256, replace=True,
    )  # fmt: skip
    language = COLLECTIONS[name]
    keys = [chunk.key for chunk in chunks]
    vectors = _unit(embedder.embed([chunk.content for chunk in chunks]))
    asked = _unit(embedder.embed([each["question"] for each in questions]))
    tenants = np.array([chunk.tenant or "" for chunk in chunks])
    return Collection(
        language,
        {chunk.key: chunk for chunk in chunks},
        dict(zip(keys, _terms(conn, [chunk.content for chunk in chunks], language), strict=True)),
        questions,
        _terms(conn, [each["question"] for each in questions], language),
        [
            _ranking(keys, np.where(tenants == (each.get("tenant") or ""), vectors @ one, -1.0))
            for each, one in zip(questions, asked, strict=True)
        ],
        _neighbours(conn, {key for each in questions for key in each["expected"]}),
    )


def report(collection: Collection) -> Iterator[str]:
    """Yield what the filters say, a line each."""
    texts = [each["question"] for each in collection.questions]
    n = len(texts)
    foreign = sum(other_language(text, collection.language) is not None for text in texts)
    wrong = "en" if collection.language != "en" else "pt"
    found = sum(other_language(text, wrong) is not None for text in texts)
    yield f"refused for their language: {foreign} of {n}; as if {wrong} were wanted: {found}"
    yield f"speak of a text: {sum(map(bool, map(reference_to_text, texts)))} of {n}"
    yield f"too generic: {sum(map(is_generic, texts))} of {n}"
    yield from _copying(collection)
    yield from _alternatives(collection)
    yield from _unanswerable(collection)


def _copying(collection: Collection) -> Iterator[str]:
    wordings = list(_wordings(collection))
    judged = [overlap(each)[0] for each in wordings if len(each.terms) >= LEAST_TERMS]
    shares = "; ".join(
        f"over {cap:.0%}: {sum(share > cap for share in judged) / len(wordings):.1%}"
        for cap in (0.7, 0.8, 0.9)
    )
    yield f"content words of the question in its chunk: {shares}"
    runs = [length(shared_run(each)) for each in wordings]
    cap = SETTINGS.max_shared_run
    yield f"more than {cap} words in a row: {sum(run > cap for run in runs) / len(runs):.1%}"


def _wordings(collection: Collection) -> Iterator[Wording]:
    for each, terms in zip(collection.questions, collection.question_terms, strict=True):
        for key in list(each["expected"])[:1]:
            source = SourceText(key, collection.chunks[key].content, collection.chunk_terms[key])
            yield Wording(each["question"], terms, [source])


def _alternatives(collection: Collection) -> Iterator[str]:
    proposed = right = above = caught = 0
    for each, nearest in zip(collection.questions, collection.nearest, strict=True):
        expected = set(each["expected"])
        for source in expected if len(expected) > 1 else ():
            found = Found({"vector": nearest.keys}, collection.neighbours, collection.chunk_terms)
            keys = {one.key for one in propose([source], found, SETTINGS.near_duplicate)}
            best = list(nearest.keys[:LOOKED_AT])
            before = set(best[: best.index(source)] if source in best else best) & expected
            proposed, right = proposed + len(keys), right + len(keys & expected)
            above, caught = above + len(before), caught + len(before & keys)
    if proposed:
        yield (
            f"proposed keys: {proposed}, relevant by the collection: {right / proposed:.0%};"
            f" of {above} relevant chunks above a source, proposed: {caught / above:.0%}"
        )


def _unanswerable(collection: Collection) -> Iterator[str]:
    rows = list(
        zip(collection.questions, collection.question_terms, collection.nearest, strict=True)
    )
    usual = median(
        max(scores)
        for each, _, nearest in rows
        if (scores := [s for key, s in zip(nearest.keys, nearest.scores, strict=True)
                       if key in each["expected"]])
    )  # fmt: skip
    for what, wanted in (("unanswerable", True), ("answerable", False)):
        some = [
            row for row in rows
            if (row[0]["category"] == "unanswerable" if wanted else row[0]["expected"])
        ]  # fmt: skip
        answered = sum(
            find_answer(terms, _best(nearest), (), collection.chunk_terms, usual) is not None
            for _, terms, nearest in some
        )
        if some:
            yield f"refused as answered, of {len(some)} {what} questions: {answered}"


def _best(nearest: Ranking) -> Ranking:
    return Ranking(nearest.keys[:LOOKED_AT], nearest.scores[:LOOKED_AT])


def _terms(conn: psycopg.Connection[Any], texts: Sequence[str], language: str) -> list[Terms]:
    return [content_terms(each) for each in lexemes(conn, texts, [language] * len(texts))]


def _neighbours(conn: psycopg.Connection[Any], keys: set[str]) -> dict[str, Ranking]:
    near: dict[str, list[tuple[str, float]]] = {}
    for each in near_duplicates(conn, describe(conn, CorpusSettings()), keys, least=-1.0):
        near.setdefault(each.of, []).append((each.key, each.similarity))
    return {
        key: Ranking([one for one, _ in found], [cosine for _, cosine in found])
        for key, found in near.items()
    }


def _ranking(keys: Sequence[str], cosines: FloatMatrix) -> Ranking:
    best = np.argsort(-cosines, kind="stable")[:DEPTH]
    return Ranking([keys[i] for i in best], [float(cosines[i]) for i in best])


def _unit(vectors: FloatMatrix) -> FloatMatrix:
    lengths: FloatMatrix = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


if __name__ == "__main__":
    main()
