"""The read-only role that docs/deployment.md gives for CORPUS_URL: enough to evaluate, no more."""

import re
import uuid
from collections.abc import Iterator

import psycopg
import pytest
from pydantic import SecretStr

from pipeline.corpus.settings import CorpusSettings
from tests.conftest import REPOSITORY
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import Bell, finish_runs, rows_of
from workers.context import Context

STRATEGIES = ("vector", "fulltext", "hybrid")

OWN_TABLE = CorpusSettings(
    table="public.chunks", tenant="tenant", language="language", text_search="text_search"
)


def documented_statements() -> str:
    page = (REPOSITORY / "docs" / "deployment.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sql\n(.*?)```", page, flags=re.DOTALL)
    assert "CREATE ROLE recallwatch_reader LOGIN" in block
    return str(block)


@pytest.fixture
def reader_url(url: str) -> Iterator[str]:
    """Give the URL of the documented role, for a corpus that stands in the user's own table."""
    role = f"reader_{uuid.uuid4().hex}"  # a role is of the whole server, which tests share
    statements = documented_statements().replace("recallwatch_reader", role)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("ALTER TABLE recallwatch_corpus.chunks SET SCHEMA public")
        owner.execute(statements.encode())
    yield url.replace("//postgres@", f"//{role}@")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def measured(ctx: Context, bell: Bell) -> list[object]:
    return [rows_of(ctx, run.id) for run in finish_runs(ctx, bell, *STRATEGIES)]


def test_the_documented_role_measures_what_the_owner_does(
    reader_url: str, open_context: Opener, bell: Bell
) -> None:
    owner = open_context(corpus=OWN_TABLE)
    reader = open_context(corpus=OWN_TABLE, corpus_url=SecretStr(reader_url))
    assert measured(reader, bell) == measured(owner, bell)
    row = reader.corpus().execute("SELECT current_user").fetchone()
    assert str(row).startswith("('reader_")


def test_the_documented_role_reads_only_unless_it_asks_otherwise(reader_url: str) -> None:
    with psycopg.connect(reader_url, autocommit=True) as reader:
        assert reader.execute("SHOW transaction_read_only").fetchone() == ("on",)


def test_no_statement_of_the_documented_role_runs_for_ever(reader_url: str) -> None:
    with psycopg.connect(reader_url, autocommit=True) as reader:
        assert reader.execute("SHOW statement_timeout").fetchone() == ("5min",)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM public.chunks",
        "CREATE TABLE public.mine (x int)",
        "SELECT FROM recallwatch.run",
        "SELECT FROM recallwatch.question",
    ],
)
def test_the_documented_role_may_do_nothing_else_even_when_it_asks(
    reader_url: str, statement: str
) -> None:
    writing = "-c default_transaction_read_only=off"
    with psycopg.connect(reader_url, autocommit=True, options=writing) as reader:
        assert reader.execute("SHOW transaction_read_only").fetchone() == ("off",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(statement.encode())
