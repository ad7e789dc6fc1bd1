"""Full text search by PostgreSQL's other query syntaxes, weights, filters and accents."""

from itertools import product
from typing import Any

import psycopg
import pytest

from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable, describe
from pipeline.errors import CorpusError
from pipeline.retrieval.fulltext import FulltextRetriever
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import FulltextStrategy
from tests.integration.pipeline.retrieval.corpora import (
    NAMES,
    Passage,
    fill,
    plan,
    questions,
    ranked,
)

Connection = psycopg.Connection[Any]

PARSED_HERE = CorpusSettings.model_validate(
    NAMES.model_dump() | {"text_search": None, "text_config": "simple"}
)

TEXTS = [
    "red car", "car red", "a red fast car", "blue car", "red bicycle", "car", "the red, red car",
    "green bicycle", "a café in São Paulo", "a cafe in Sao Paulo",
]  # fmt: skip


def strategy(**given: object) -> FulltextStrategy:
    return FulltextStrategy.model_validate({"max_document_frequency": 1} | given)


def keys(
    conn: Connection, table: CorpusTable, text: str, customer: str | None = None, **given: object
) -> list[str]:
    searching = FulltextRetriever(CorpusSession(conn, table), strategy(**given))
    [answer] = ranked(searching.retrieve(questions(texts=[text], tenants=[customer]), 20))
    return list(answer.keys)


def passages(customers: tuple[str | None, ...] = (None,)) -> list[Passage]:
    return [
        Passage("text", number, body, customers[number % len(customers)])
        for number, body in enumerate(TEXTS)
    ]


@pytest.mark.parametrize(
    ("match", "function"),
    [("websearch", "websearch_to_tsquery"), ("phrase", "phraseto_tsquery")],
)
def test_other_syntaxes_are_postgresqls_own(conn: Connection, match: str, function: str) -> None:
    table = fill(conn, passages())
    asked = [
        "red car", '"red car"', "red or green", "car -red", '"fast car" or bicycle', "-car",
        "the", '"', "' & | !", "red \\ car",
    ]  # fmt: skip
    searching = FulltextRetriever(CorpusSession(conn, table), strategy(match=match))
    for text, answer in zip(
        asked, ranked(searching.retrieve(questions(texts=asked), 4)), strict=True
    ):
        rows = conn.execute(
            f"""SELECT key, ts_rank("order", query)::float8
                FROM "Passages", {function}('english', %s) AS query,
                    concat(doc, ':', "Part") AS key
                WHERE "order" @@ query ORDER BY 2 DESC, key COLLATE "C" LIMIT 4""".encode(),  # noqa: S608 - ours
            [text],
        ).fetchall()
        assert list(zip(answer.keys, answer.scores, strict=True)) == rows


def test_a_phrase_stands_side_by_side(conn: Connection) -> None:
    table = fill(conn, passages())
    assert set(keys(conn, table, "red car", match="phrase")) == {"text:0", "text:6"}
    assert set(keys(conn, table, "car -red", match="websearch")) == {"text:3", "text:5"}


def test_weights_and_normalization_go_to_the_ranking_function(conn: Connection) -> None:
    fill(conn, passages())
    conn.execute("""
        ALTER TABLE "Passages" DROP COLUMN "order", ADD "order" tsvector GENERATED ALWAYS AS (
            setweight(to_tsvector('english', split_part(body, ' ', 1)), 'A')
            || setweight(to_tsvector('english', body), 'D')) STORED""")
    table = describe(conn, NAMES)
    for rank, weights in product(
        ["ts_rank", "ts_rank_cd"], [[0.5, 1.0, 1.0, 0.25], [0.1, 0.2, 0.4, 1.0]]
    ):
        own = strategy(rank=rank, rank_weights=weights, normalization=2)
        searching = FulltextRetriever(CorpusSession(conn, table), own)
        [answer] = ranked(searching.retrieve(questions(texts=["red car"]), 20))
        rows = conn.execute(
            f"""SELECT concat(doc, ':', "Part"), {rank}(%s::float4[], "order", query, 2)::float8
                FROM "Passages", to_tsquery('english', 'red | car') AS query
                WHERE "order" @@ query""".encode(),  # noqa: S608 - ours
            [weights],
        ).fetchall()
        assert dict(zip(answer.keys, answer.scores, strict=True)) == dict(rows)
        assert len(set(answer.scores)) > 1


def test_only_chunks_that_meet_the_condition_are_searched(conn: Connection) -> None:
    table = fill(conn, passages())
    found = keys(conn, table, "car", where="c.\"Part\" % 2 = 0 AND body LIKE '%red%' -- even")
    assert set(found) == {"text:0", "text:2", "text:6"}


def test_a_condition_does_not_lift_the_tenants(conn: Connection) -> None:
    table = fill(conn, passages(("a", "b")))
    assert set(keys(conn, table, "car", "a", where="true OR true")) == {
        "text:0", "text:2", "text:6"
    }  # fmt: skip


def test_tenants_can_be_ignored(conn: Connection) -> None:
    table = fill(conn, passages(("a", "b")))
    assert len(keys(conn, table, "car", "a", tenant="ignore")) == 6


def test_results_below_the_least_score_are_left_out(conn: Connection) -> None:
    table = fill(conn, passages())
    searching = FulltextRetriever(CorpusSession(conn, table), strategy())
    [every] = ranked(searching.retrieve(questions(texts=["red car"]), 20))
    bound = every.scores[2]
    some = keys(conn, table, "red car", min_score=bound)
    assert some == [
        key for key, score in zip(every.keys, every.scores, strict=True) if score >= bound
    ]
    assert 0 < len(some) < len(every.keys)


def test_one_configuration_can_be_named_for_all(conn: Connection) -> None:
    """An English column is asked for words as they are: only stems are found in it."""
    table = fill(conn, [Passage("a", 0, "the running horses")])
    assert keys(conn, table, "horses") == ["a:0"]
    assert keys(conn, table, "horses", config="simple") == []
    assert keys(conn, table, "hors", config="simple") == ["a:0"]
    assert keys(conn, table, "horses", config="pg_catalog.english") == ["a:0"]


def test_a_named_configuration_uses_an_index_of_its_expression(conn: Connection) -> None:
    fill(conn, [Passage("text", number, f"word{number}") for number in range(3000)])
    conn.execute(
        """CREATE INDEX "Passages_body" ON "Passages" USING gin (to_tsvector('german', body))"""
    )
    conn.execute('ANALYZE "Passages"')
    session = CorpusSession(conn, describe(conn, PARSED_HERE))
    searching = FulltextRetriever(session, strategy(config="german"))
    text = plan(
        session,
        searching.statement(10, config="german"),
        {"numbers": [1], "queries": ["'word200'"]},
    )
    assert 'Bitmap Index Scan on "Passages_body"' in text


UNACCENT = """CREATE FUNCTION {} (text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    AS $$ SELECT translate($1, 'áâãàéêíóôõúç', 'aaaaeeiooouc') $$"""


def test_accents_stay_on_where_the_column_has_them(conn: Connection) -> None:
    conn.execute(UNACCENT.format("unaccent").encode())
    table = fill(conn, passages())
    for setting in ("auto", False):
        assert keys(conn, table, "são café", unaccent=setting) == ["text:8"]
        assert keys(conn, table, "sao cafe", unaccent=setting) == ["text:9"]
    assert keys(conn, table, "são café", unaccent=True) == ["text:9"]


@pytest.mark.parametrize("wrapper", ["public.f_unaccent", "search.my_unaccent2"])
def test_questions_lose_their_accents_as_the_column_did_by_whatever_function(
    conn: Connection, wrapper: str
) -> None:
    conn.execute("CREATE SCHEMA search")
    conn.execute(UNACCENT.format(wrapper).encode())
    fill(conn, passages())
    conn.execute(
        f"""ALTER TABLE "Passages" DROP COLUMN "order", ADD "order" tsvector
            GENERATED ALWAYS AS (to_tsvector('english', {wrapper}(body))) STORED""".encode()
    )
    table = describe(conn, NAMES)
    for text, setting in product(["são café", "sao cafe"], ["auto", True]):
        assert keys(conn, table, text, unaccent=setting) == ["text:8", "text:9"]
    assert keys(conn, table, "são café", unaccent=False) == []


def test_texts_parsed_here_lose_their_accents_where_the_setting_is_true(conn: Connection) -> None:
    conn.execute("CREATE SCHEMA extensions")
    conn.execute(UNACCENT.format("extensions.unaccent").encode())
    fill(conn, passages())
    table = describe(conn, PARSED_HERE)
    for text in ("são café", "sao cafe"):
        assert keys(conn, table, text, unaccent=True) == ["text:8", "text:9"]
    assert keys(conn, table, "são café") == ["text:8"]
    assert keys(conn, table, '"café in são"', unaccent=True, match="websearch") == [
        "text:8", "text:9"
    ]  # fmt: skip


def test_a_database_without_unaccent_is_told_what_to_do(conn: Connection) -> None:
    table = fill(conn, passages())
    with pytest.raises(CorpusError, match="no function unaccent; run `CREATE EXTENSION unaccent`"):
        keys(conn, table, "são", unaccent=True)
