"""What a reviewer is shown of a question, by the corpus and the strategies as they are."""

from dataclasses import replace

import pytest
from pydantic import SecretStr

from pipeline.embedding.settings import EmbeddingSettings
from pipeline.types import Failure
from tests.integration.db.building import execute
from tests.integration.workers.conftest import GOLDEN, TEXTS, Opener
from tests.integration.workers.working import DIMENSIONS, Bell, finish_runs, rows_of
from workers.context import Context
from workers.looking import Look, Looker

RESET = GOLDEN[0]


def test_texts_of_all_chunks_on_the_screen_are_shown(ctx: Context) -> None:
    look = Looker(ctx, ["vector"], 3).look(RESET, ["warranty:0", "gone:0"])
    assert look.notes == ()
    assert {"reset:0", "reset:1", "warranty:0", *served(look, "vector")} == look.contents.keys()
    assert all(TEXTS[key] == text for key, text in look.contents.items())


def test_each_strategy_serves_what_a_run_of_it_serves(ctx: Context, bell: Bell) -> None:
    names = ("vector", "fulltext", "hybrid")
    for run in finish_runs(ctx, bell, *names):
        retrieved = [list(row[2]) for row in rows_of(ctx, run.id)]
        looker = Looker(ctx, [run.strategy], 3)
        assert [served(looker.look(asked), run.strategy) for asked in GOLDEN] == retrieved


def served(look: Look, strategy: str) -> list[str]:
    found = look.served[strategy]
    assert not isinstance(found, Failure)
    return list(found)


def test_near_duplicates_of_the_expected_chunks_are_shown_with_their_texts(ctx: Context) -> None:
    execute(
        ctx.database,
        "UPDATE recallwatch_corpus.chunks SET embedding = (SELECT embedding FROM"
        " recallwatch_corpus.chunks WHERE document_id = 'reset' AND chunk_index = 0)"
        " WHERE document_id = 'weight'",
    )
    look = Looker(ctx, [], 3).look(RESET)
    [near] = look.near
    assert (near.of, near.key, round(near.similarity, 6)) == ("reset:0", "weight:0", 1.0)
    assert look.contents["weight:0"] == TEXTS["weight:0"]


def test_a_question_is_not_asked_again_while_only_its_keys_change(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    looker = Looker(ctx, ["fulltext"], 3)
    first = looker.look(RESET).served
    with monkeypatch.context() as patched:
        patched.setattr(ctx, "retriever", None)
        assert looker.look(replace(RESET, expected={"gone:0": 1})).served == first
    assert looker.look(replace(RESET, text="Which cells?")).served != first


def test_a_strategy_that_fails_says_why_and_the_others_serve(open_context: Opener) -> None:
    other = EmbeddingSettings(dimensions=DIMENSIONS * 2)
    look = Looker(open_context(embedding=other), ["vector", "fulltext"], 3).look(RESET)
    assert isinstance(look.served["vector"], Failure)
    assert not isinstance(look.served["fulltext"], Failure)


def test_a_corpus_that_is_not_there_is_said_and_nothing_else_is_shown(
    open_context: Opener,
) -> None:
    ctx = open_context(corpus_url=SecretStr("postgresql://nobody@127.0.0.1:1/none"))
    look = Looker(ctx, ["fulltext"], 3).look(RESET)
    [note] = look.notes
    assert "the corpus database does not answer" in note
    assert (look.contents, look.near, look.served) == ({}, (), {})
