from typing import Any

import pytest
from pydantic import SecretStr

from db import generations
from db.session import Database
from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import TransientError
from pipeline.settings import EvalSettings
from pipeline.types import Question
from tests.integration.db.building import execute, import_set, together
from tests.integration.db.generating import field, spent, status
from tests.integration.workers.conftest import Opener, embedding_of
from tests.integration.workers.screened import (
    BATTERY,
    PARCEL,
    drafted,
    facts_of,
    outcomes,
    searched,
    synthetic,
)
from tests.integration.workers.working import Bell
from tests.loopback.openai_server import OpenAIServer, refuse
from workers import deciding, generating, screening
from workers.context import Context
from workers.doorbell import SCREEN_GENERATION
from workers.generation_sweeping import sweep_generations
from workers.screening import screen


def test_a_second_message_changes_nothing(ctx: Context, db: Database) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY), ("battery:0", "???")])
    assert screen(ctx, generation_id)
    before = (synthetic(db), outcomes(db, generation_id))

    assert not screen(ctx, generation_id)

    assert (synthetic(db), outcomes(db, generation_id)) == before


def test_two_workers_at_once_decide_on_each_candidate_once(
    open_context: Opener, db: Database
) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY), ("weight:0", PARCEL)])
    first, second = open_context(), open_context()

    finished = together(lambda: screen(first, generation_id), lambda: screen(second, generation_id))

    assert sorted(finished) == [False, True]
    assert len(synthetic(db)) == 2


def test_what_was_stored_before_a_fault_stays_and_the_rest_follows(
    ctx: Context, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY), ("weight:0", PARCEL)])
    monkeypatch.setattr(screening, "BATCH", 1)
    decide = deciding.decide

    def once(ctx: Context, generation: Any, batch: Any) -> Any:  # noqa: ANN401 - as decide
        if batch[0].number == 2:
            raise TransientError("the corpus went away")
        return decide(ctx, generation, batch)

    monkeypatch.setattr(screening, "decide", once)
    assert not screen(ctx, generation_id)
    assert [state for state, _ in outcomes(db, generation_id)] == ["kept", "drafted"]
    assert field(db, generation_id, "screen_error") == "the corpus went away"
    assert status(db, generation_id) == "screening"

    monkeypatch.setattr(screening, "decide", decide)
    assert not screen(ctx, generation_id), "it waits before it is tried again"
    wait_is_over(db)
    assert screen(ctx, generation_id)

    assert [question["text"] for question in synthetic(db)] == [BATTERY, PARCEL]


def test_who_died_with_the_candidates_is_followed_by_another(ctx: Context, db: Database) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY)])
    with db.begin() as session:
        assert generations.claim_screening(session, generation_id, lease=60, attempts=5)
    assert not screen(ctx, generation_id), "the other one may be alive"

    wait_is_over(db)

    assert screen(ctx, generation_id)
    assert len(synthetic(db)) == 1


def wait_is_over(db: Database) -> None:
    execute(db, "UPDATE recallwatch.generation SET screen_next_at = NULL", {})


@pytest.mark.parametrize("event", ["taken over", "cancelled"])
def test_who_lost_the_candidates_stores_nothing(
    ctx: Context, db: Database, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY)])
    decide = deciding.decide

    def while_something_happens(ctx: Context, generation: Any, batch: Any) -> Any:  # noqa: ANN401 - as decide
        if event == "cancelled":
            with db.begin() as session:
                generations.cancel(session, generation_id)
        else:
            execute(db, "UPDATE recallwatch.generation SET screen_token = screen_token + 1", {})
        return decide(ctx, generation, batch)

    monkeypatch.setattr(screening, "decide", while_something_happens)

    assert not screen(ctx, generation_id)

    assert synthetic(db) == []
    assert outcomes(db, generation_id) == [("drafted", None)]


def test_a_task_passes_the_rest_on_before_its_time_is_up(
    ctx: Context, db: Database, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY), ("weight:0", PARCEL)])
    monkeypatch.setattr(screening, "BATCH", 1)
    monkeypatch.setattr(screening, "SHARE", 0)
    bell.take()

    assert not screen(ctx, generation_id)

    assert bell.take() == [(SCREEN_GENERATION, (generation_id,))]
    assert not screen(ctx, generation_id)
    assert screen(ctx, generation_id)
    assert len(synthetic(db)) == 2


def test_a_question_stored_by_somebody_else_meanwhile_is_a_duplicate(
    ctx: Context, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY)])
    decide = deciding.decide

    def and_then(ctx: Context, generation: Any, batch: Any) -> Any:  # noqa: ANN401 - as decide
        decisions = decide(ctx, generation, batch)
        import_set(db, [Question(BATTERY, {"battery:0": 1}, language="en")])
        return decisions

    monkeypatch.setattr(screening, "decide", and_then)

    assert screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", "duplicate")]


def test_without_an_embedder_words_are_compared_and_the_facts_say_so(
    open_context: Opener, db: Database
) -> None:
    ctx = open_context(embedding=EmbeddingSettings(provider="openai", model="m", dimensions=64))
    duplicate = "How long does the battery of the remote last?"
    generation_id = drafted(
        db, [("weight:0", PARCEL), ("battery:0", duplicate)],
        plans=searched(embedding=ctx.settings.embedding),
    )  # fmt: skip

    assert screen(ctx, generation_id)

    assert outcomes(db, generation_id)[0] == ("kept", None)
    assert outcomes(db, generation_id)[1][0] == "rejected"
    facts = facts_of(db, generation_id)
    assert "OPENAI_API_KEY" in facts["notes"][0]
    assert set(facts["ranks"]) == {"fulltext"}
    assert set(facts["not_asked"]) == {"vector", "hybrid"}


def test_a_strategy_that_cannot_be_asked_is_noted_and_holds_nothing_up(
    ctx: Context, db: Database
) -> None:
    search = searched()
    search["search"]["hybrid"]["strategy"] = {"name": "hybrid", "kind": "graph"}
    generation_id = drafted(db, [("weight:0", PARCEL)], plans=search)

    assert screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("kept", None)]
    assert "'hybrid' do not fit" in facts_of(db, generation_id)["not_asked"]["hybrid"]


def test_candidates_are_checked_by_the_settings_of_their_generation_not_by_todays(
    ctx: Context, open_context: Opener, provider: OpenAIServer, db: Database
) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY)])
    execute(db, f"CREATE TABLE elsewhere (LIKE {ctx.corpus_table()} INCLUDING ALL)")
    changed = open_context(
        corpus=CorpusSettings(table="public.elsewhere"),
        embedding=embedding_of(provider),
        eval=EvalSettings(strategies=["fulltext"], k=1, look_depth=1),
    )

    assert screen(changed, generation_id)

    assert outcomes(db, generation_id) == [("kept", None)]
    facts = facts_of(db, generation_id)
    assert set(facts["ranks"]) == {"vector", "fulltext", "hybrid"}
    assert facts["rank_depth"] > 1
    assert provider.requests == []


@pytest.mark.usefixtures("bell")
def test_where_no_source_is_in_the_corpus_nothing_is_refused_and_it_can_be_resumed(
    ctx: Context, db: Database
) -> None:
    table = str(ctx.corpus_table())
    reindexed = "UPDATE {} SET document_id = 'v2-' || document_id"
    restored = "UPDATE {} SET document_id = substr(document_id, 4)"
    generation_id = drafted(db, [("battery:0", BATTERY), ("weight:0", "???")])
    execute(db, reindexed.format(table))

    for _ in range(ctx.settings.queue.attempts):
        assert not screen(ctx, generation_id)
        wait_is_over(db)
    sweep_generations(ctx, quiet=0)

    assert outcomes(db, generation_id) == [("drafted", None)] * 2
    assert status(db, generation_id) == "failed"
    assert "holds none of the chunks" in str(field(db, generation_id, "error"))

    execute(db, restored.format(table))
    generating.resume(ctx, generation_id, ask_again=False, max_cost=None)
    assert screen(ctx, generation_id)
    assert outcomes(db, generation_id) == [("kept", None), ("rejected", "empty")]


def test_a_server_whose_words_cannot_be_stored_holds_nothing_up(
    open_context: Opener, provider: OpenAIServer, db: Database
) -> None:
    ctx = open_context(
        embedding=embedding_of(provider), openai_api_key=SecretStr("sk-canary-0123456789")
    )
    search = searched(embedding=ctx.settings.embedding)
    generation_id = drafted(db, [("weight:0", PARCEL)], plans=search)
    provider.default = refuse(401, "bad \x00\ud800 key")

    assert screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("kept", None)]
    assert facts_of(db, generation_id)["notes"]


def test_a_provider_that_does_not_answer_is_tried_again_later(
    open_context: Opener, provider: OpenAIServer, db: Database
) -> None:
    ctx = open_context(
        embedding=embedding_of(provider), openai_api_key=SecretStr("sk-canary-0123456789")
    )
    search = searched(embedding=ctx.settings.embedding)
    generation_id = drafted(db, [("weight:0", PARCEL)], plans=search)
    provider.script = [refuse(503)] * 20

    assert not screen(ctx, generation_id)

    assert status(db, generation_id) == "screening"
    assert outcomes(db, generation_id) == [("drafted", None)]


def test_embedding_counts_as_spent_and_keeps_to_the_cap(
    open_context: Opener, provider: OpenAIServer, db: Database
) -> None:
    priced = embedding_of(provider).model_copy(update={"price": 100_000.0})
    ctx = open_context(embedding=priced, openai_api_key=SecretStr("sk-canary-0123456789"))
    search = searched(embedding=priced)
    free = drafted(db, [("weight:0", PARCEL)], plans=search)
    before = spent(db, free)
    assert screen(ctx, free)
    assert spent(db, free) > before

    capped = drafted(db, [("battery:0", BATTERY)], plans=search, max_cost=0.1)
    asked_for = spent(db, capped)
    assert screen(ctx, capped)
    assert spent(db, capped) == asked_for
    assert "the cost cap" in facts_of(db, capped)["notes"][0]
    assert outcomes(db, capped) == [("kept", None)]


def test_a_question_that_the_set_gets_while_candidates_are_looked_at_is_not_asked_twice(
    ctx: Context, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY), ("weight:0", PARCEL)])
    decide = deciding.decide

    def meanwhile(*arguments: Any) -> object:  # noqa: ANN401 - passed on
        decisions = decide(*arguments)
        import_set(db, [Question(BATTERY.upper(), {"battery:1": 1}, external_id="mine")])
        return decisions

    monkeypatch.setattr(screening, "decide", meanwhile)

    assert screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", "duplicate"), ("kept", None)]
