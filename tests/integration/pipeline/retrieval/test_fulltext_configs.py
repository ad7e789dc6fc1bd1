"""Which configuration parses a question, and how often a corpus is counted."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable, describe
from pipeline.errors import CorpusError
from pipeline.retrieval.fulltext import FulltextRetriever
from pipeline.retrieval.lexemes import FrequentLexemes
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import FulltextStrategy
from tests.integration.pipeline.retrieval.corpora import NAMES, Passage, fill, questions, ranked

Connection = psycopg.Connection[Any]

ANY = FulltextStrategy(max_document_frequency=1)
BY_ROW = FulltextStrategy(max_document_frequency=1, config="row")

PARSED_HERE = CorpusSettings.model_validate(NAMES.model_dump() | {"text_search": None})


def found(
    conn: Connection,
    table: CorpusTable,
    text: str,
    language: str | None = None,
    text_config: str | None = None,
    strategy: FulltextStrategy = ANY,
) -> list[str]:
    searching = FulltextRetriever(CorpusSession(conn, table, text_config=text_config), strategy)
    asked = questions(texts=[text], languages=[language])
    return sorted(ranked(searching.retrieve(asked, 10))[0].keys)


def load_managed(conn: Connection, chunks: list[Chunk]) -> CorpusTable:
    load(
        conn,
        chunks,
        lambda texts: (np.ones((len(texts), 3), dtype=np.float32), {}),
        model="ones",
        dimensions=3,
    )
    return describe(conn, CorpusSettings.model_validate({}))


PORTUGUESE = Chunk("pt", 0, "os livros foram perdidos", None, "pt", None)
ENGLISH = Chunk("en", 0, "the running horses", None, "en", None)


def test_a_question_is_parsed_in_its_own_language(conn: Connection) -> None:
    table = load_managed(conn, [PORTUGUESE, ENGLISH])
    assert found(conn, table, "perder livro", "pt-BR") == ["pt:0"]
    assert found(conn, table, "horse runs", "english") == ["en:0"]
    assert found(conn, table, "livro", "en") == []


def test_without_a_language_the_managed_corpus_is_searched_as_most_chunks_are_parsed(
    conn: Connection,
) -> None:
    more = Chunk("pt", 1, "o livro novo", None, "pt", None)
    table = load_managed(conn, [PORTUGUESE, more, ENGLISH])
    assert found(conn, table, "livros") == ["pt:0", "pt:1"]


def test_the_setting_decides_for_questions_without_a_language_only(conn: Connection) -> None:
    table = load_managed(conn, [PORTUGUESE, ENGLISH])
    assert found(conn, table, "livro", text_config="portuguese") == ["pt:0"]
    assert found(conn, table, "livro", text_config="simple") == []
    assert found(conn, table, "horse", "en", text_config="portuguese") == ["en:0"]


def test_a_column_generated_with_one_configuration_is_searched_with_that_one(
    conn: Connection,
) -> None:
    """It is English throughout: nothing parsed otherwise could match."""
    table = fill(conn, [Passage("a", 0, "the running horses")])
    assert found(conn, table, "horse") == ["a:0"]
    assert found(conn, table, "horse", "pt") == ["a:0"]


def test_a_column_that_names_no_configuration_is_searched_in_simple(conn: Connection) -> None:
    table = fill(conn, [Passage("a", 0, "the running horses")])
    conn.execute('ALTER TABLE "Passages" ALTER "order" DROP EXPRESSION')
    assert found(conn, table, "horses") == []
    assert found(conn, table, "hors") == ["a:0"]


def test_texts_without_a_column_are_parsed_as_their_question_is(conn: Connection) -> None:
    fill(conn, [Passage("a", 0, "the running horses"), Passage("b", 0, "livros perdidos")])
    table = describe(conn, PARSED_HERE)
    assert found(conn, table, "horse", "en") == ["a:0"]
    assert found(conn, table, "livro", "pt") == ["b:0"]
    assert found(conn, table, "livro", text_config="portuguese") == ["b:0"]
    assert found(conn, table, "livro") == []


def test_questions_of_many_languages_can_be_asked_together(conn: Connection) -> None:
    table = load_managed(conn, [PORTUGUESE, ENGLISH])
    searching = FulltextRetriever(CorpusSession(conn, table), ANY)
    asked = questions(texts=["livro", "horse", "perder"], languages=["pt", "en", "pt"])
    answers = ranked(searching.retrieve(asked, 10))
    assert [list(answer.keys) for answer in answers] == [["pt:0"], ["en:0"], ["pt:0"]]


def test_by_row_each_chunk_is_compared_as_it_was_parsed_itself(conn: Connection) -> None:
    table = load_managed(conn, [PORTUGUESE, ENGLISH, Chunk("xx", 0, "livros", None, None, None)])
    for language in ("pt", "en", None):
        both = found(conn, table, "livro horse", language, strategy=BY_ROW)
        assert both == ["en:0", "pt:0"]
    assert found(conn, table, "livros", "en", strategy=BY_ROW) == ["pt:0", "xx:0"]


def test_by_row_the_parts_are_put_together_by_score_then_key(conn: Connection) -> None:
    """Every second chunk is Portuguese; the texts, and so the scores, are equal in both."""
    bodies = ["radio", "radio other", "radio radio"]
    chunks = [
        Chunk(f"d{n}", 0, bodies[n % 3], None, "pt" if n % 2 else "en", None) for n in range(12)
    ]
    table = load_managed(conn, chunks)
    session = CorpusSession(conn, table)
    for limit in (1, 3, 7, 20):
        [answer] = ranked(
            FulltextRetriever(session, BY_ROW).retrieve(questions(texts=["radio"]), limit)
        )
        rows = conn.execute(
            """SELECT key, ts_rank(text_search, to_tsquery(text_config, 'radio'))::float8
               FROM recallwatch_corpus.chunks, concat(document_id, ':0') AS key
               ORDER BY 2 DESC, key COLLATE "C" LIMIT %s""",
            [limit],
        ).fetchall()
        assert list(zip(answer.keys, answer.scores, strict=True)) == rows


def test_by_row_an_owners_chunks_are_read_in_their_languages(conn: Connection) -> None:
    fill(
        conn,
        [
            Passage("en", 0, "the running horses", "English"),
            Passage("pt", 0, "livros perdidos", "pt-BR"),
            Passage("pt", 1, "o livro novo", "por"),
            Passage("no", 0, "horses e livros", None),
        ],
    )
    named = PARSED_HERE.model_dump() | {"tenant": None, "language": "customer"}
    table = describe(conn, CorpusSettings.model_validate(named))
    assert found(conn, table, "livro horse", strategy=BY_ROW) == ["en:0", "pt:0", "pt:1"]
    assert found(conn, table, "livros", strategy=BY_ROW) == ["no:0", "pt:0", "pt:1"]


def test_by_row_a_column_of_one_configuration_is_searched_with_that_one(conn: Connection) -> None:
    table = fill(conn, [Passage("a", 0, "the running horses")])
    assert found(conn, table, "horse", "pt", strategy=BY_ROW) == ["a:0"]


def test_by_row_nothing_is_found_in_an_empty_corpus(conn: Connection) -> None:
    assert found(conn, load_managed(conn, []), "horse", strategy=BY_ROW) == []


def test_by_row_frequent_words_are_counted_among_chunks_that_are_parsed_alike(
    conn: Connection,
) -> None:
    """In Portuguese the word stands in 9 of 10 chunks, in all of them in one of three."""
    chunks = [Chunk("pt", n, "radio" if n else "outro", None, "pt", None) for n in range(10)]
    chunks += [Chunk("en", n, "radio" if n < 1 else "other", None, "en", None) for n in range(20)]
    table = load_managed(conn, chunks)
    strategy = FulltextStrategy(max_document_frequency=0.5, min_frequent=0, config="row")
    assert found(conn, table, "radio other outro", strategy=strategy)[:1] == ["en:0"]
    rare = found(conn, table, "radio outro", strategy=strategy)
    assert rare == ["en:0", "pt:0"]


def test_by_row_an_owners_table_must_say_in_which_language_a_chunk_is(conn: Connection) -> None:
    fill(conn, [Passage("a", 0, "horses")])
    with pytest.raises(CorpusError, match=r"no language column; name it in \[corpus\] language"):
        found(conn, describe(conn, PARSED_HERE), "horse", strategy=BY_ROW)


def test_a_configuration_that_does_not_exist_is_named(conn: Connection) -> None:
    table = fill(conn, [Passage("a", 0, "horses")])
    with pytest.raises(CorpusError, match='configuration "klingon" does not exist'):
        found(conn, table, "horse", text_config="klingon")
    with pytest.raises(CorpusError, match='configuration "klingon" does not exist'):
        found(conn, table, "horse", strategy=FulltextStrategy(config="klingon"))


def test_a_corpus_is_counted_once_for_each_fingerprint(conn: Connection) -> None:
    table = fill(conn, [Passage("a", n, "often") for n in range(9)])
    frequent = FrequentLexemes()
    strategy = FulltextStrategy(max_document_frequency=0.5, min_frequent=0)

    def count(fingerprint: str) -> int:
        session = CorpusSession(conn, table, fingerprint=fingerprint)
        searching = FulltextRetriever(session, strategy, frequent)
        [answer] = ranked(searching.retrieve(questions(texts=["often seldom"]), 20))
        return len(answer.keys)

    assert count("before") == 0
    conn.execute("""UPDATE "Passages" SET body = 'other' WHERE "Part" > 0""")
    assert count("before") == 0
    assert count("after") == 1
    for number in range(8):
        count(f"other {number}")
    assert count("before") == 1, "the oldest counts make room"


def test_a_corpus_is_not_counted_where_no_word_can_be_too_frequent(conn: Connection) -> None:
    """Chunks are counted first, words only where the limit is below the number of chunks."""
    table = fill(conn, [Passage("a", n, "often") for n in range(9)])
    asked = questions(texts=["often"], languages=["en"])
    for strategy, counts in [
        (FulltextStrategy(match="all", max_document_frequency=0.5, min_frequent=0), 0),
        (FulltextStrategy(max_document_frequency=1, min_frequent=0), 0),
        (FulltextStrategy(max_document_frequency=0.5, min_frequent=9), 1),
        (FulltextStrategy(max_document_frequency=0.5, min_frequent=0), 2),
    ]:
        session = RecordingSession(conn, table)
        ranked(FulltextRetriever(session, strategy).retrieve(asked, 5))
        counting = [text for text in session.statements if re.search(r"ts_stat|count\(", text)]
        assert len(counting) == counts


class RecordingSession(CorpusSession):
    """Writes down the statements that are run."""

    def __init__(self, conn: Connection, table: CorpusTable) -> None:
        super().__init__(conn, table)
        self.statements: list[str] = []

    def fetch(
        self,
        statement: sql.Composed,
        parameters: Mapping[str, object] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        share: float = 1.0,
    ) -> list[tuple[Any, ...]]:
        self.statements.append(statement.as_string(self.conn))
        return super().fetch(statement, parameters, settings=settings, share=share)
