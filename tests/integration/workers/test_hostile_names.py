"""Names and texts that try to change a statement: real PostgreSQL, a whole evaluation each."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from psycopg import sql

from db import golden
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.statistics import fingerprint, show
from pipeline.errors import CorpusError
from pipeline.retrieval.strategies import BUILT_IN, FulltextStrategy
from pipeline.types import Kind, Question
from tests.integration.db.building import import_set
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import Bell, finish_runs, rows_of
from workers.context import Context
from workers.enqueue import Request, start
from workers.preflight import check_documents

STRATEGIES = ("vector", "fulltext", "hybrid")
ROLES = ("document_id", "chunk_index", "content", "embedding", "tenant", "language", "text_search")

ENGLISH = {"text_config": "english"}
"""As the managed table's chunks are parsed, which a table of another name does not tell."""

HOSTILE = (
    'x"; DROP TABLE recallwatch.run; --',
    "x'; DELETE FROM recallwatch.question; --",
    "{0} {key} {{}} \\' \\",
    "$1 $$ /* */ --",
    "ключ 鍵 \U0001f511 İ",
    "a" * 63,
)

PLACEHOLDERS = "%s %(tenant)s %b %%"

TEXTS = (
    *HOSTILE,
    PLACEHOLDERS,
    "'; DROP TABLE recallwatch_corpus.chunks; --",
    "reset' | 'router' & !('x':*A",
    "router <-> reset <1> \\:* ",
    "<!channel> ::warning::reset the router \x1b[2J",
    "reset " * 1300,
)


def rename(url: str, names: Sequence[str]) -> CorpusSettings:
    """Give the managed corpus's schema, table and columns these names; return what says so."""
    schema, table, *columns = names
    named = dict(zip(ROLES, columns, strict=True))
    old = sql.Identifier("recallwatch_corpus", "chunks")
    with psycopg.connect(url, autocommit=True) as owner:
        for role, column in named.items():
            change = sql.SQL("ALTER TABLE {} RENAME {} TO {}")
            owner.execute(change.format(old, sql.Identifier(role), sql.Identifier(column)))
        owner.execute(sql.SQL("ALTER TABLE {} RENAME TO {}").format(old, sql.Identifier(table)))
        change = sql.SQL("ALTER SCHEMA recallwatch_corpus RENAME TO {}")
        owner.execute(change.format(sql.Identifier(schema)))
    return CorpusSettings.model_validate({"table": f"{schema}.{table}", **named} | ENGLISH)


def hostile_names(turn: int) -> list[str]:
    """Return names for schema, table and columns, all different; each turn gives others.

    Without dots, as in the settings one stands between schema and table, and not longer than
    PostgreSQL keeps.
    """
    taken = [HOSTILE[(number + turn) % len(HOSTILE)] for number in range(9)]
    short = [name.replace(".", ":").encode()[:62].decode(errors="ignore") for name in taken]
    return [f"{number}{name}" for number, name in enumerate(short)]


COUNTING = {
    **BUILT_IN,
    "fulltext": FulltextStrategy(max_document_frequency=0.3, min_frequent=0),
}
"""Strategies that count the lexemes too, which takes a statement within a statement."""


def measured(ctx: Context, bell: Bell) -> list[Any]:
    return [rows_of(ctx, run.id) for run in finish_runs(ctx, bell, *STRATEGIES)]


@pytest.fixture
def plainly(open_context: Opener, bell: Bell) -> list[Any]:
    """Give what the runs find where nothing is hostile."""
    return measured(open_context(strategies=COUNTING), bell)


@pytest.mark.parametrize("turn", [0, 3])
def test_hostile_names_of_table_and_columns_change_no_result(
    url: str, plainly: list[Any], open_context: Opener, bell: Bell, turn: int
) -> None:
    corpus = rename(url, hostile_names(turn))
    unparsed = corpus.model_copy(update={"text_search": None})
    ctx = open_context(corpus=corpus, strategies=COUNTING)

    assert measured(ctx, bell) == plainly
    assert measured(open_context(corpus=unparsed, strategies=COUNTING), bell) == plainly

    table = ctx.corpus_table()
    assert show(ctx.corpus(), table).chunks == fingerprint(ctx.corpus(), table).chunks == 8
    with ctx.database.begin() as session:
        version = golden.current(session, "default")
    assert version is not None
    assert check_documents(ctx, version.id, ["reset", *TEXTS]).unknown == list(TEXTS)


@pytest.mark.parametrize("position", range(9))
def test_a_name_that_looks_like_parameters_is_refused(
    url: str, open_context: Opener, position: int
) -> None:
    names = ["app", "passages", *(f"my_{role}" for role in ROLES)]
    names[position] = PLACEHOLDERS
    ctx = open_context(corpus=rename(url, names))
    with pytest.raises(CorpusError, match="holds a %, which cannot be searched: name a view"):
        ctx.corpus_table()


def test_hostile_texts_tenants_and_languages_are_asked_as_they_are(
    open_context: Opener, bell: Bell
) -> None:
    ctx = open_context()
    # One that is found: a search that finds nothing at all is not measured.
    asked = [Question("How do I reset the router?", {"reset:0": 1})]
    asked += [
        Question(text, {"reset:0": 1}, tenant=tenant, language=language, category=text[:100])
        for text in TEXTS
        for tenant in (None, text[:100])
        for language in (None, text[:100])
    ]
    name = HOSTILE[0]
    import_set(ctx.database, asked, name)

    started = start(ctx, Request(strategies=STRATEGIES, set_name=name))
    bell.work(ctx)

    for run_id in started.run_ids:
        rows = rows_of(ctx, run_id)
        assert len(rows) == len(asked)
        assert {(row[1], row[7]) for row in rows} == {("scored", None)}
        # Nobody has such a tenant: its questions find nothing.
        for question, row in zip(asked, rows, strict=True):
            assert question.tenant is None or row[2] == []
    with ctx.database.begin() as session:
        stored = [each.question.text for each in golden.questions(session, name)]
    assert stored == [question.text for question in asked]
    assert show(ctx.corpus(), ctx.corpus_table()).chunks == 8


def test_hostile_keys_are_looked_up_and_not_run(open_context: Opener, bell: Bell) -> None:
    ctx = open_context()
    asked = [Question(f"reset {n}?", {f"{text[:400]}:0": 1, "reset:0": 1}) for n, text in
             enumerate(TEXTS)]  # fmt: skip
    asked.append(Question("none?", {}, kind=Kind.UNANSWERABLE))
    import_set(ctx.database, asked, "keys")

    started = start(ctx, Request(strategies=["fulltext"], set_name="keys"))
    bell.work(ctx)

    rows = rows_of(ctx, started.run_ids[0])
    assert [row[6] for row in rows] == [[f"{text[:400]}:0"] for text in TEXTS] + [[]]
    assert started.keys.gone == len(set(TEXTS))
