"""A strategy that cannot answer stops its run with the cause, and is not scored as a bad one."""

from dataclasses import replace

from db.session import Database
from pipeline.retrieval.strategies import (
    BUILT_IN,
    FulltextStrategy,
    HybridStrategy,
    SqlStrategy,
    Strategy,
)
from pipeline.types import Kind, Question
from tests.integration.db.building import import_set
from tests.integration.workers.conftest import GOLDEN, Opener
from tests.integration.workers.working import Bell, finish_runs
from workers.context import Context

NOTHING = "SELECT 'reset:0' AS key WHERE :question = 'nobody asks this'"


def with_strategies(open_context: Opener, **named: Strategy) -> Context:
    return open_context(strategies={**BUILT_IN, **named})


def test_one_that_fails_for_all_it_is_tried_with_is_not_asked_any_more(
    open_context: Opener, bell: Bell
) -> None:
    broken = SqlStrategy(statement="SELECT NULL AS key WHERE :question <> ''")
    [run] = finish_runs(with_strategies(open_context, broken=broken), bell, "broken")

    assert (run.status, run.verdict) == ("failed", "unmeasured")
    assert run.reasons is not None
    assert run.reasons[0] == (
        "strategy broken failed for all 3 questions that it was tried with; the first: the"
        " statement of strategy broken returns a key that is NULL"
    )


def test_one_that_fails_for_some_is_measured(open_context: Opener, bell: Bell) -> None:
    first = GOLDEN[0].text.replace("'", "''")
    picky = SqlStrategy(
        statement=f"SELECT 'reset:0' AS key WHERE 1 / (:question <> '{first}')::int > 0",
        tenant="ignore",
    )
    [run] = finish_runs(with_strategies(open_context, picky=picky), bell, "picky")
    assert (run.status, run.n_failed) == ("completed", 1)


def test_one_that_finds_nothing_at_all_scores_no_zeros(open_context: Opener, bell: Bell) -> None:
    silent = SqlStrategy(statement=NOTHING, tenant="ignore")
    [run] = finish_runs(with_strategies(open_context, silent=silent), bell, "silent")

    assert (run.status, run.metrics) == ("failed", None)
    assert run.reasons is not None
    assert run.reasons[0] == (
        "strategy silent found nothing for any of the first 3 questions; see: recallwatch"
        " strategies probe silent QUESTION"
    )


def test_words_that_no_chunk_holds_point_to_the_language(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    foreign = [Question(f"zxqv{n} wvut{n}?", {"reset:0": 1}) for n in range(4)]
    import_set(db, foreign, replace=True)
    words = FulltextStrategy(match="all")
    [run] = finish_runs(with_strategies(open_context, words=words), bell, "words")
    assert run.reasons is not None
    assert (
        "(are their words those of the chunks' language, [corpus] text_config?)" in run.reasons[0]
    )


def test_tenants_that_the_corpus_does_not_know_are_pointed_to(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    import_set(db, [replace(each, tenant="nobody") for each in GOLDEN[:4]], replace=True)
    [run] = finish_runs(open_context(), bell, "vector")
    assert run.reasons is not None
    assert "found nothing for any of the first 3 questions (each has a tenant" in run.reasons[0]


def test_an_arm_that_finds_nothing_is_named(open_context: Opener, bell: Bell) -> None:
    silent = SqlStrategy(statement=NOTHING, tenant="ignore")
    both = HybridStrategy(arms={"fulltext": 1.0, "silent": 1.0})
    ctx = with_strategies(open_context, silent=silent, both=both)
    [run] = finish_runs(ctx, bell, "both")
    assert run.reasons is not None
    assert run.reasons[0].startswith("stage silent of strategy both found nothing for any of")


def test_two_questions_that_find_nothing_prove_nothing(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    unanswerable = [Question(f"What is {n}?", {}, kind=Kind.UNANSWERABLE) for n in range(5)]
    import_set(db, [*GOLDEN[:2], *unanswerable], replace=True)
    silent = SqlStrategy(statement=NOTHING, tenant="ignore")
    [run] = finish_runs(with_strategies(open_context, silent=silent), bell, "silent")
    assert run.status == "completed"
    assert run.metrics is not None
    assert run.metrics["hit@3"] == 0
