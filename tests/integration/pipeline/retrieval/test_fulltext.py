"""Full text search, against plain SQL one question at a time, and against sets in Python."""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import psycopg
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable, describe
from pipeline.retrieval.fulltext import FulltextRetriever
from pipeline.retrieval.lexemes import KEPT_AT_LEAST
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import FulltextStrategy
from pipeline.types import Failure
from tests.integration.pipeline.retrieval.corpora import (
    NAMES,
    Passage,
    fill,
    plan,
    questions,
    ranked,
)

Connection = psycopg.Connection[Any]

UNFILTERED = FulltextStrategy(max_document_frequency=1)
BY_WORD = CorpusSettings.model_validate(
    NAMES.model_dump() | {"text_search": None, "text_config": "simple"}
)
"""No column of parsed texts, and a configuration that leaves words as they are."""

VOCABULARY = [f"word{n}" for n in range(300)]


def zipf_passages(count: int, customers: tuple[str | None, ...] = (None,)) -> list[Passage]:
    """Draw texts whose words are as unevenly frequent as those of real ones."""
    rng = np.random.default_rng(1)
    weights = 1 / np.arange(1, len(VOCABULARY) + 1)
    words = rng.choice(VOCABULARY, size=(count, 12), p=weights / weights.sum())
    return [
        Passage(f"doc-{n // 4}", n % 4, " ".join(row), customers[n % len(customers)])
        for n, row in enumerate(words)
    ]


def zipf_questions(count: int) -> list[str]:
    rng = np.random.default_rng(2)
    return [" ".join(rng.choice(VOCABULARY, size=5)) for _ in range(count)]


def retriever(
    conn: Connection, table: CorpusTable, strategy: FulltextStrategy = UNFILTERED
) -> FulltextRetriever:
    return FulltextRetriever(CorpusSession(conn, table, text_config="simple"), strategy)


def test_answers_are_those_of_plain_sql(conn: Connection) -> None:
    table = fill(conn, zipf_passages(800))
    texts = [*zipf_questions(40), "word1 word2", "word1"]
    for rank, normalization, (match, operator) in product(
        ["ts_rank", "ts_rank_cd"], [0, 33], [("any", "|"), ("all", "&")]
    ):
        strategy = FulltextStrategy.model_validate(
            {"rank": rank, "match": match, "normalization": normalization}
            | {"max_document_frequency": 1}
        )
        answers = ranked(retriever(conn, table, strategy).retrieve(questions(texts=texts), 25))
        for text, answer in zip(texts, answers, strict=True):
            rows = conn.execute(
                f"""SELECT key, {rank}("order", query, {normalization})::float8
                    FROM "Passages", to_tsquery('simple', %s) AS query,
                        concat(doc, ':', "Part") AS key
                    WHERE "order" @@ query
                    ORDER BY 2 DESC, key COLLATE "C" LIMIT 25""".encode(),  # noqa: S608 - ours
                [f" {operator} ".join(text.split())],
            ).fetchall()
            assert answer.keys == [key for key, _ in rows]
            assert answer.scores == [score for _, score in rows]
        assert any(answer.keys for answer in answers)


def test_any_shared_word_is_enough_and_all_means_every_word(conn: Connection) -> None:
    passages = zipf_passages(400)
    table = fill(conn, passages)
    texts = [*zipf_questions(30), "word0 word1"]
    for match in ("any", "all"):
        strategy = FulltextStrategy.model_validate({"match": match, "max_document_frequency": 1})
        answers = ranked(retriever(conn, table, strategy).retrieve(questions(texts=texts), 1000))
        for text, answer in zip(texts, answers, strict=True):
            asked = set(text.split())
            fits = asked.isdisjoint if match == "any" else asked.issubset
            expected = {p.key for p in passages if fits(p.body.split()) is (match == "all")}
            assert set(answer.keys) == expected


def test_words_that_too_many_chunks_hold_are_left_out_unless_a_question_has_no_others(
    conn: Connection,
) -> None:
    passages = zipf_passages(1000)
    table = fill(conn, passages)
    counts = Counter(word for p in passages for word in set(p.body.split()))
    frequent = {word for word, count in counts.items() if count > 150}
    assert len(frequent) > KEPT_AT_LEAST
    common = " ".join(sorted(frequent))
    texts = [*zipf_questions(60), common, f"{common} word299"]
    strategy = FulltextStrategy(max_document_frequency=0.1, min_frequent=150)
    answers = ranked(retriever(conn, table, strategy).retrieve(questions(texts=texts), 1000))
    for text, answer in zip(texts, answers, strict=True):
        asked = set(text.split()) & set(counts)
        rarest = sorted(asked, key=lambda word: (counts[word], word))[:KEPT_AT_LEAST]
        kept = asked - frequent or set(rarest)
        assert set(answer.keys) == {p.key for p in passages if kept & set(p.body.split())}


def test_a_word_is_frequent_only_above_both_the_share_and_the_count(conn: Connection) -> None:
    """The word stands in 8 of 10 chunks; the question's other word stands in none."""
    passages = [Passage("a", n, "often" if n < 8 else "never") for n in range(10)]
    table = fill(conn, passages)
    asked = questions(texts=["often seldom"])
    for share, least, found in [(0.5, 0, 0), (0.5, 7, 0), (0.5, 8, 8), (0.8, 0, 8), (1, 0, 8)]:
        strategy = FulltextStrategy(max_document_frequency=share, min_frequent=least)
        [answer] = ranked(retriever(conn, table, strategy).retrieve(asked, 20))
        assert len(answer.keys) == found, (share, least)


def test_ties_are_ordered_by_the_keys_bytes(conn: Connection) -> None:
    documents = ["é", "a", "B", "a-b", "Z", "_", "a b"]
    passages = [Passage(d, part, "red car") for d in documents for part in (10, 2)]
    passages.append(Passage("zz", 0, "red red red car car"))
    searching = retriever(conn, fill(conn, passages))
    tied = sorted((p.key for p in passages[:-1]), key=str.encode)
    for limit in range(1, len(passages) + 1):
        [answer] = ranked(searching.retrieve(questions(texts=["red car"]), limit))
        assert answer.keys == ["zz:0", *tied][:limit]


def test_a_question_never_gets_another_tenants_chunk(conn: Connection) -> None:
    passages = zipf_passages(400, ("a", "b", "c", None))
    searching = retriever(conn, fill(conn, passages))

    @settings(max_examples=25, deadline=None)
    @given(
        asked=st.lists(
            st.tuples(
                st.lists(st.sampled_from(VOCABULARY[:60]), max_size=4),
                st.sampled_from(["a", "b", "c", "unknown", None]),
            ),
            max_size=10,
        )
    )
    def check(asked: list[tuple[list[str], str | None]]) -> None:
        batch = questions(
            texts=[" ".join(words) for words, _ in asked], tenants=[tenant for _, tenant in asked]
        )
        for (words, tenant), answer in zip(
            asked, ranked(searching.retrieve(batch, 1000)), strict=True
        ):
            assert set(answer.keys) == {
                p.key
                for p in passages
                if tenant in (None, p.customer) and set(words) & set(p.body.split())
            }

    check()


def test_the_text_index_is_used_inside_the_lateral_join(conn: Connection) -> None:
    table = fill(conn, zipf_passages(4000))
    conn.execute('CREATE INDEX "Passages_order" ON "Passages" USING gin ("order")')
    session = CorpusSession(conn, table)
    statement = FulltextRetriever(session, FulltextStrategy()).statement(10)
    queries = ["'word200' | 'word201'"] * 100
    text = plan(session, statement, {"numbers": list(range(1, 101)), "queries": queries})
    assert 'Bitmap Index Scan on "Passages_order"' in text
    assert "Seq Scan" not in text


def test_without_a_column_of_parsed_texts_an_index_of_the_expression_is_used(
    conn: Connection,
) -> None:
    fill(conn, zipf_passages(4000))
    conn.execute(
        """CREATE INDEX "Passages_body" ON "Passages" USING gin (to_tsvector('simple', body))"""
    )
    conn.execute('ANALYZE "Passages"')
    session = CorpusSession(conn, describe(conn, BY_WORD))
    statement = FulltextRetriever(session, FulltextStrategy()).statement(10, config="simple")
    text = plan(session, statement, {"numbers": [1], "queries": ["'word200'"]})
    assert 'Bitmap Index Scan on "Passages_body"' in text


def test_without_a_column_of_parsed_texts_the_answers_are_the_same(conn: Connection) -> None:
    with_column = fill(conn, zipf_passages(600))
    without = describe(conn, BY_WORD)
    asked = questions(texts=zipf_questions(30))
    strategy = FulltextStrategy(max_document_frequency=0.05, min_frequent=0)
    assert retriever(conn, without, strategy).retrieve(asked, 20) == retriever(
        conn, with_column, strategy
    ).retrieve(asked, 20)


def test_a_question_without_lexemes_finds_nothing_and_does_not_fail(conn: Connection) -> None:
    table = fill(conn, [Passage("a", 0, "what is the best of all")])
    searching = FulltextRetriever(CorpusSession(conn, table), UNFILTERED)
    blank = ["what is the", "", "   ", "?!", "\U0001f600", "the & of | !a <-> b:*"]
    answers = ranked(searching.retrieve(questions(texts=[*blank, "best"]), 5))
    assert [list(answer.keys) for answer in answers] == [[]] * len(blank) + [["a:0"]]
    assert ranked(searching.retrieve(questions(texts=blank), 5)) == answers[:-1]


TEXTS_AND_A_CHUNK_FOR_EACH = [
    ("o'neil's", "the o'neil report"),
    ("C:\\temp\\log.txt", "see C:\\temp\\log.txt there"),
    ("'quoted' & (a|b) <-> !crash:*", "it came to a crash"),
    ("\"double\" \\'both\\'", "with double quotes"),
    ("50% %s {0} $1 :name", "about 50 percent"),
    ("naïve \U0001f642 café", "a café"),
    ("日本語", "日本語 text"),
    ("foo.example.com/a?b='c'", "at foo.example.com/a?b='c' now"),
    ("report " * 1200, "the o'neil report"),
    (" ".join(f"term{n}" for n in range(1000)), "only term77 here"),
]


def test_any_text_can_be_asked(conn: Connection) -> None:
    """Each question has a tenant of its own, with the chunk it is after and another one."""
    passages = [
        Passage(document, number, body, f"tenant {number}")
        for number, (_, fitting) in enumerate(TEXTS_AND_A_CHUNK_FOR_EACH)
        for document, body in [("right", fitting), ("wrong", "something else entirely")]
    ]
    searching = FulltextRetriever(CorpusSession(conn, fill(conn, passages)), UNFILTERED)
    numbers = range(len(TEXTS_AND_A_CHUNK_FOR_EACH))
    batch = questions(
        texts=[text for text, _ in TEXTS_AND_A_CHUNK_FOR_EACH],
        tenants=[f"tenant {number}" for number in numbers],
    )
    answers = ranked(searching.retrieve(batch, 5))
    assert [list(answer.keys) for answer in answers] == [[f"right:{n}"] for n in numbers]


def test_a_question_finds_every_text_it_is_a_copy_of(conn: Connection) -> None:
    """Whatever the parser makes of a text, the query made of its lexemes matches it."""
    searching = retriever(conn, fill(conn, []))

    @settings(max_examples=150, deadline=None)
    @given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
    def check(text: str) -> None:
        conn.execute('TRUNCATE "Passages"')
        conn.execute("""INSERT INTO "Passages" VALUES ('a', 0, %s)""", [text])
        row = conn.execute("SELECT length(to_tsvector('english', %s)) > 0", [text]).fetchone()
        english = questions(texts=[text], languages=["en"])
        [answer] = ranked(searching.retrieve(english, 5))
        assert row == (bool(answer.keys),)

    check()


def test_a_text_that_postgresql_cannot_take_fails_its_own_question_only(conn: Connection) -> None:
    table = fill(conn, [Passage("a", 0, "best of all")])
    searching = FulltextRetriever(CorpusSession(conn, table), UNFILTERED)
    untakeable = {
        "a\0b": "cannot contain NUL",
        "a\ud800b": "not valid Unicode",
        " ".join(f"word{n}" for n in range(150_000)): "string is too long for tsvector",
    }
    texts = [text for bad in untakeable for text in ("best", "all best", bad, "best")]
    for text, answer in zip(texts, searching.retrieve(questions(texts=texts), 5), strict=True):
        if text in untakeable:
            assert isinstance(answer, Failure)
            assert untakeable[text] in answer.reason
            assert "\n" not in answer.reason
        else:
            assert ranked([answer])[0].keys == ["a:0"]
