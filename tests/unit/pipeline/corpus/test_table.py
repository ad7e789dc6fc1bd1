import pytest
from psycopg import sql

from pipeline.corpus.table import CorpusTable


def _table() -> CorpusTable:
    return CorpusTable(
        schema="my schema",
        name='chunks"',
        columns={"document_id": "Doc", "chunk_index": "n", "content": "t", "embedding": "e"},
        types={
            "document_id": "text",
            "chunk_index": "integer",
            "content": "text",
            "embedding": "vector",
        },
        dimensions=3,
        managed=False,
    )


def test_every_name_is_quoted() -> None:
    statement = sql.SQL("SELECT {} FROM {}").format(_table().key_expression(), _table().relation)

    assert statement.as_string() == (
        """SELECT ("Doc"::text || ':' || "n"::text) FROM "my schema"."chunks\"\"\""""
    )


def test_columns_stand_behind_the_alias_that_is_asked_for() -> None:
    assert _table().column("content").as_string() == '"t"'
    assert _table().column("content", "c").as_string() == '"c"."t"'
    assert (
        _table().key_expression("c").as_string() == """("c"."Doc"::text || ':' || "c"."n"::text)"""
    )


def test_an_optional_column_that_is_not_configured_is_told_and_never_made_up() -> None:
    assert _table().has("content")
    assert not _table().has("tenant")
    with pytest.raises(KeyError):
        _table().column("tenant")
