"""What a generation asks for, and what is refused before anything is asked."""

import math

import pytest

from pipeline.corpus.sampling import Sampler
from pipeline.errors import CorpusError, InputError, UsageError
from tests.integration.db.building import execute, fetch
from tests.integration.workers.generating import begin, seen, wanted, work
from tests.integration.workers.working import Bell
from tests.loopback.anthropic_server import AnthropicServer
from workers.context import Context
from workers.generating import prepare, resume, start
from workers.generation import cancel


def test_a_second_generation_draws_other_chunks_unless_asked_for_the_same(
    asker: Context, bell: Bell
) -> None:
    first = prepare(asker, wanted(asker))
    start(asker, first)
    work(asker, bell)

    second = prepare(asker, wanted(asker))
    same = prepare(asker, wanted(asker, again=True))

    keys = [{chunk.key for ask in each.asks for chunk in ask.chunks} for each in (first, second)]
    assert not keys[0] & keys[1]
    assert same.asks == first.asks


def test_what_is_wrong_with_an_order_is_said_before_anything_is_asked(asker: Context) -> None:
    with pytest.raises(UsageError, match="above the cap"):
        prepare(asker, wanted(asker, max_cost=0.000001))
    with pytest.raises(CorpusError, match="no chunk of tenant 'nobody' has 20 characters"):
        prepare(asker, wanted(asker, tenant="nobody"))
    for no_amount in (math.nan, math.inf):
        with pytest.raises(UsageError, match="a number of US dollars from 0 on"):
            prepare(asker, wanted(asker, max_cost=no_amount))
    assert fetch(asker.database, "SELECT count(*) FROM recallwatch.generation") == [0]


@pytest.mark.parametrize("production", ["claude-haiku-4-5", "claude-haiku-4-5-20251001"])
def test_a_model_that_also_answers_users_is_warned_of(asker: Context, production: str) -> None:
    settings = asker.settings.generation.model_copy(update={"production_model": production})

    (warning,) = prepare(asker, wanted(asker, generation=settings)).warnings

    assert "also answers your users" in warning


def test_a_cap_without_a_price_is_refused(asker: Context) -> None:
    settings = asker.settings.generation.model_copy(update={"prices": {}, "max_cost": 2.0})

    with pytest.raises(UsageError, match="needs a price"):
        prepare(asker, wanted(asker, generation=settings))


def test_several_chunks_are_of_one_tenant_and_forbidden_terms_are_theirs(asker: Context) -> None:
    prepared = prepare(asker, wanted(asker, sample=0, multi_chunk=8, forbid_terms=True))

    assert prepared.asks
    for each in prepared.asks:
        assert len(each.chunks) == 2
        assert len({chunk.tenant for chunk in each.chunks}) == 1
        assert each.forbidden
        text = " ".join(chunk.content.casefold() for chunk in each.chunks)
        assert all(term in text for term in each.forbidden)


def test_of_two_that_are_started_at_once_the_second_asks_for_nothing_twice(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    first, second = prepare(asker, wanted(asker)), prepare(asker, wanted(asker))
    start(asker, first)

    with pytest.raises(UsageError, match="asks for the chunks of 3 of 3 requests: run the command"):
        start(asker, second)

    work(asker, bell)
    assert len(claude.paid) == 3
    start(asker, prepare(asker, wanted(asker, again=True)))


def test_chunks_that_a_later_generation_paid_for_are_not_paid_for_by_a_resume(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    cancelled = begin(asker)
    bell.take()
    cancel(asker, cancelled)
    begin(asker)
    work(asker, bell)

    with pytest.raises(InputError, match="3 requests: another generation of the set asked for"):
        resume(asker, cancelled, ask_again=False, max_cost=None)

    assert len(claude.paid) == 3


def test_a_resume_takes_no_cap_that_nothing_can_be_held_against(
    asker: Context, bell: Bell, claude: AnthropicServer
) -> None:
    generation_id = begin(asker)
    bell.take()
    for no_amount in (math.nan, math.inf, -1.0):
        with pytest.raises(UsageError, match="a number of US dollars from 0 on"):
            resume(asker, generation_id, ask_again=False, max_cost=no_amount)
    execute(asker.database, "UPDATE recallwatch.generation SET settings = jsonb_set(settings,"
                            " '{generation,prices}', '{}')")  # fmt: skip
    with pytest.raises(UsageError, match=rf"generation {generation_id} was started without one"):
        resume(asker, generation_id, ask_again=False, max_cost=1.0)

    assert seen(asker, generation_id)[0].max_cost is None
    assert claude.requests == []


def test_where_no_chunk_has_a_companion_that_is_said(
    asker: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where in ("neighbours", "similar"):
        monkeypatch.setattr(Sampler, where, lambda *_, **__: [])

    with pytest.raises(CorpusError, match="has a neighbour or a similar chunk"):
        prepare(asker, wanted(asker, sample=0, multi_chunk=3))


def test_a_tenant_that_is_not_there_is_said_to_be_so_whatever_was_asked_before(
    asker: Context, bell: Bell
) -> None:
    begin(asker)
    bell.take()

    with pytest.raises(CorpusError, match="no chunk of tenant 'nobody' has 20 characters"):
        prepare(asker, wanted(asker, tenant="nobody"))


def test_what_got_less_than_it_asked_for_is_named_and_where_it_helps_again_is(
    asker: Context, bell: Bell
) -> None:
    (short,) = prepare(asker, wanted(asker, sample=20, unanswerable=2)).warnings
    assert "of 20 for --sample, none of 2 for --unanswerable: the corpus has no more" in short
    assert "--again" not in short

    begin(asker)
    bell.take()

    (short,) = prepare(asker, wanted(asker, sample=20)).warnings
    assert "chunks that the set was generated from are left out (--again)" in short


def test_a_cap_that_makes_message_batches_wait_for_each_other_is_warned_of(asker: Context) -> None:
    estimated = prepare(asker, wanted(asker, message_batches=True)).estimate
    assert estimated.cost is not None
    tight = {"max_cost": estimated.cost * 1.01}

    together = prepare(asker, wanted(asker, message_batches=True, **tight)).warnings
    alone = prepare(asker, wanted(asker, max_cost=2 * tight["max_cost"])).warnings

    assert any("message batches go one after the other" in each for each in together)
    assert not any("message batches" in each for each in alone)


def test_a_generation_keeps_how_its_questions_are_to_be_looked_for(
    asker: Context, bell: Bell
) -> None:
    generation_id = begin(asker, again=True)
    bell.take()

    plan = seen(asker, generation_id)[0].settings

    assert plan["search"].keys() == set(asker.settings.eval.strategies)
    assert plan["search"]["vector"]["strategy"]["kind"] == "vector"
    assert plan["corpus"]["table"] == asker.settings.corpus.table
    assert (plan["k"], plan["again"]) == (3, True)
