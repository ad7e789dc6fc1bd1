"""Trigram search, over the real pg_trgm where the server has it, else over the same in SQL."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.errors import CorpusError
from pipeline.retrieval.build import Resources, build
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import TrigramStrategy
from pipeline.retrieval.tree import StrategyTree
from pipeline.types import Failure, Ranking
from tests.integration.pipeline.retrieval.corpora import NAMES, Passage, fill, questions, ranked

Connection = psycopg.Connection[Any]
Measured = Callable[[str, str], float]

IN_SQL = Path(__file__).with_name("pg_trgm.sql")
NEVER_PARSED = CorpusSettings.model_validate(NAMES.model_dump() | {"text_search": None})

TEXTS = [
    "resetting the router", "the router was reset", "rooter", "Router resets", "a rotor",
    "nothing alike", "reset", "reset the router", "router", "",
]  # fmt: skip


def install(conn: Connection, schema: str = "public") -> None:
    """Bring pg_trgm, or what stands in for it, into a schema that need not be on the path."""
    conn.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    there = conn.execute("SELECT FROM pg_available_extensions WHERE name = 'pg_trgm'").fetchone()
    if there is not None:
        conn.execute(f"CREATE EXTENSION pg_trgm SCHEMA {schema}".encode())
        return
    with conn.transaction():
        conn.execute(f"SET LOCAL search_path = {schema}".encode())
        # What they call is found by the path that they were made under.
        functions = IN_SQL.read_text().replace(" AS $$", f" SET search_path = {schema} AS $$")
        conn.execute(functions.encode())


def search(
    conn: Connection,
    texts: Sequence[str],
    tenants: Sequence[str | None] = (),
    limit: int = 20,
    **given: object,
) -> list[Ranking | Failure]:
    session = CorpusSession(conn, describe(conn, NEVER_PARSED))
    tree = StrategyTree("spelled", TrigramStrategy.model_validate(given))
    return build(tree, Resources(session)).retrieve(questions(texts=texts, tenants=tenants), limit)


def passages(customers: Sequence[str | None] = (None,)) -> list[Passage]:
    return [
        Passage("text", number, body, customers[number % len(customers)])
        for number, body in enumerate(TEXTS)
    ]


def trigrams(text: str) -> set[str]:
    padded = [f"  {word} " for word in re.findall(r"[a-z0-9]+", text.lower())]
    return {word[n : n + 3] for word in padded for n in range(len(word) - 2)}


def alike(one: str, other: str) -> float:
    return len(trigrams(one) & trigrams(other)) / len(trigrams(one) | trigrams(other) or {""})


def of_words(question: str, text: str) -> float:
    """Return the similarity of a question and the run of whole words that is most like it."""
    words = text.split()
    runs = [" ".join(words[m:n]) for m in range(len(words)) for n in range(m + 1, len(words) + 1)]
    return max((alike(question, run) for run in runs), default=0.0)


def expected(scores: Mapping[str, float], threshold: float) -> dict[str, float]:
    found = {key: score for key, score in scores.items() if score >= threshold}
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


@pytest.mark.parametrize(
    ("similarity", "measured", "default"),
    [("similarity", alike, 0.3), ("strict_word_similarity", of_words, 0.5)],
)
def test_chunks_above_the_threshold_come_back_the_most_alike_first(
    conn: Connection, similarity: str, measured: Measured, default: float
) -> None:
    install(conn)
    fill(conn, passages())
    asked = ["reset router", "ruter", "ROUTER!", "zzz", ""]
    for threshold in (None, 0.0, 0.1, 0.45, 1.0):
        answers = ranked(search(conn, asked, similarity=similarity, threshold=threshold))
        for text, answer in zip(asked, answers, strict=True):
            scores = {p.key: measured(text, p.body) for p in passages()}
            wanted = expected(scores, default if threshold is None else threshold)
            assert answer.keys == list(wanted)
            assert answer.scores == pytest.approx(list(wanted.values()))


def test_word_similarity_looks_for_a_part_of_a_chunk(conn: Connection) -> None:
    install(conn)
    fill(conn, passages())
    whole, part = (
        ranked(search(conn, ["router"], similarity=similarity, threshold=0.9))[0]
        for similarity in ("similarity", "word_similarity")
    )
    assert list(whole.keys) == ["text:8"]
    assert list(part.keys) == ["text:0", "text:1", "text:3", "text:7", "text:8"]
    assert list(part.scores) == [1.0] * 5


def test_the_threshold_holds_for_its_own_search_only(conn: Connection) -> None:
    install(conn)
    fill(conn, passages())
    first, low, again = (
        len(ranked(search(conn, ["ruter"], threshold=threshold))[0].keys)
        for threshold in (None, 0.2, None)
    )
    assert (low > first, again) == (True, first)


def test_an_extension_in_a_schema_of_its_own_is_found(conn: Connection) -> None:
    install(conn, "extensions")
    fill(conn, passages())
    [answer] = ranked(search(conn, ["router"], similarity="similarity", threshold=0.9))
    assert list(answer.keys) == ["text:8"]


def test_a_search_keeps_to_its_limit_tenant_condition_and_least_score(conn: Connection) -> None:
    install(conn)
    fill(conn, passages(("a", "b")))

    def found(customer: str | None, limit: int = 20, **given: object) -> list[str]:
        [answer] = ranked(search(conn, ["router"], [customer], limit, threshold=0.9, **given))
        return list(answer.keys)

    assert found("a") == ["text:0", "text:8"]
    assert found("b") == ["text:1", "text:3", "text:7"]
    assert found(None, 2) == ["text:0", "text:1"]
    assert found("b", where="body NOT LIKE '%reset' OR c.body = 'x%'") == ["text:3", "text:7"]
    assert len(found("b", tenant="ignore")) == 5
    assert found(None, similarity="similarity", min_score=1.0) == ["text:8"]
    assert found(None, similarity="similarity", min_score=1.1) == []


def test_a_text_that_postgresql_cannot_take_fails_its_own_question_only(conn: Connection) -> None:
    install(conn)
    fill(conn, passages())
    first, failed, last = search(conn, ["router", "a\0b", "50% 'reset' {0} %s"], threshold=0.3)
    assert isinstance(failed, Failure)
    assert "cannot contain NUL" in failed.reason
    assert all(answer.keys for answer in ranked([first, last]))


def test_a_database_without_the_extension_is_told_what_to_do(conn: Connection) -> None:
    fill(conn, passages())
    with pytest.raises(CorpusError, match=r"needs pg_trgm.*run `CREATE EXTENSION pg_trgm`"):
        search(conn, ["router"])
