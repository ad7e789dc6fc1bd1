"""What a generation asks for, and what is refused before anything is asked."""

import pytest

from pipeline.errors import CorpusError, UsageError
from tests.integration.db.building import fetch
from tests.integration.workers.generating import wanted, work
from tests.integration.workers.working import Bell
from workers.context import Context
from workers.generating import prepare, start


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
    assert fetch(asker.database, "SELECT count(*) FROM recallwatch.generation") == [0]


def test_a_model_that_also_answers_users_is_warned_of(asker: Context) -> None:
    settings = asker.settings.generation.model_copy(update={"production_model": "claude-haiku-4-5"})

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
