"""What is told of a shard beside its metrics."""

import pytest

from db.session import Database
from pipeline.corpus.settings import CorpusSettings
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.types import Question
from tests.integration.db.building import execute, fetch, import_set
from tests.integration.workers.conftest import GOLDEN, Opener
from tests.integration.workers.working import Bell, finish_runs, rows_of, run_of, start_runs
from workers.context import Context


def underfilled(ctx: Context, bell: Bell, db: Database, strategy: str) -> int:
    """Evaluate after most chunks went: fewer rows come back than the corpus had at the start."""
    run_id = start_runs(ctx, strategy).run_ids[0]
    execute(db, "DELETE FROM recallwatch_corpus.chunks WHERE document_id <> 'reset'")
    bell.work(ctx)
    facts = run_of(ctx, run_id).facts
    assert facts is not None
    return sum(each["questions"] for each in facts["underfilled"])


@pytest.mark.parametrize("tenant", ["tenant", None])
def test_searches_that_came_back_short_are_counted_with_and_without_tenants(
    open_context: Opener, bell: Bell, db: Database, tenant: str | None
) -> None:
    table = CorpusSettings(table="recallwatch_corpus.chunks", tenant=tenant)
    import_set(db, [q for q in GOLDEN if q.tenant is None], replace=True)

    assert underfilled(open_context(corpus=table), bell, db, "vector") == 7


def test_full_text_is_never_underfilled(ctx: Context, bell: Bell, db: Database) -> None:
    assert underfilled(ctx, bell, db, "fulltext") == 0


def test_full_searches_are_not_underfilled(ctx: Context, bell: Bell) -> None:
    [run] = finish_runs(ctx, bell, "vector")

    assert run.facts is not None
    # A tenant's two chunks are all there are: three cannot be had.
    assert run.facts["underfilled"] == []


def test_looking_deeper_says_at_which_rank_a_miss_would_come(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    import_set(db, [Question("reset the router", {"warranty:0": 1})], replace=True)
    exact = {"exact": VectorStrategy(exact=True)}
    eval_settings = open_context().settings.eval

    ranks = []
    for depth in (3, 50):
        deep = open_context(
            strategies=exact,
            eval=eval_settings.model_copy(update={"look_depth": depth, "strategies": ["exact"]}),
        )
        [run] = finish_runs(deep, bell, "exact")
        [(_, outcome, retrieved, _, measured, rank, _, _)] = rows_of(deep, run.id)
        assert (outcome, len(retrieved)) == ("scored", 3)
        assert measured[run.measures.index("hit@3")] == 0
        ranks.append(rank)

    assert ranks[0] is None
    assert 3 < ranks[1] <= 8


def test_a_question_is_searched_within_its_tenant(ctx: Context, bell: Bell) -> None:
    [run] = finish_runs(ctx, bell, "vector")

    position = [question.tenant for question in GOLDEN].index("acme")
    assert set(rows_of(ctx, run.id)[position][2]) == {"return:0", "return:1"}


@pytest.mark.parametrize("kept", [True, False])
def test_the_rankings_of_a_hybrids_arms_are_stored_where_that_is_wanted(
    open_context: Opener, bell: Bell, kept: bool
) -> None:
    settings = open_context().settings.eval.model_copy(update={"store_stages": kept})
    ctx = open_context(eval=settings)
    _, vector = finish_runs(ctx, bell, "hybrid", "vector")
    stages = fetch(
        ctx.database,
        "SELECT position, retrieved FROM recallwatch.stage_ranking"
        " WHERE stage = 'vector' ORDER BY position",
    )
    if not kept:
        assert stages == []
        return
    assert [position for position, _ in stages] == list(range(len(GOLDEN)))
    # An arm is asked deeper than k; its first k are those of the arm alone.
    alone = [row[2] for row in rows_of(ctx, vector.id)]
    assert [retrieved[:3] for _, retrieved in stages] == alone
