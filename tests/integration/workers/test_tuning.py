"""Tuning on what a run stored, against runs with the settings that were tried."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cli.embedded.stack import Servers
from db.models import Run
from pipeline.corpus.reading import Chunk
from pipeline.embedding.local import LocalEmbedder
from pipeline.errors import UsageError
from pipeline.retrieval.strategies import (
    FulltextStrategy,
    HybridStrategy,
    Strategy,
    VectorStrategy,
)
from pipeline.settings import EvalSettings
from pipeline.types import Level, Question
from tests.conftest import at_database
from tests.integration.conftest import copy_of
from tests.integration.db.building import execute, fetch
from tests.integration.workers.conftest import Opener
from tests.integration.workers.templates import filled
from tests.integration.workers.working import DIMENSIONS, Bell, finish_runs, start_runs
from workers.context import Context
from workers.tuning import TUNED, Floats, Plan, Wanted, measure, plan, tune

WORDS = (
    "router", "battery", "parcel", "warranty", "refund", "invoice", "password", "cable", "antenna",
    "screen", "manual", "charger", "store", "delivery", "repair", "signal", "light", "button",
)  # fmt: skip

CHUNKS, QUESTIONS = 200, 40

ARMS: dict[str, Strategy] = {
    "near": VectorStrategy(exact=True),
    "words": FulltextStrategy(max_document_frequency=1),
    "dense": FulltextStrategy(rank="ts_rank_cd", normalization=2, max_document_frequency=1),
}

STRATEGIES: dict[str, Strategy] = ARMS | {
    "both": HybridStrategy(arms={"near": 1.0, "words": 1.0}, depth=30),
    "three": HybridStrategy(arms={"near": 1.0, "words": 1.0, "dense": 1.0}, depth=20),
    "single": HybridStrategy(arms={"near": 1.0}),
}


def sentence(seed: str) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=7))  # noqa: S311 - made-up texts


def chunks() -> Iterator[Chunk]:
    texts = [sentence(f"chunk {n}") for n in range(CHUNKS)]
    vectors = LocalEmbedder(DIMENSIONS).embed(texts)
    for n, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        yield Chunk(f"doc-{n // 3}", n % 3, text, None, "en", vector)


def golden() -> Iterator[Question]:
    """Yield questions in some words of the chunk that they expect; one key of each is dead."""
    for n in range(QUESTIONS):
        about = (17 * n) % CHUNKS
        text = " ".join(sentence(f"chunk {about}").split()[:3])
        beside = f"doc-{about // 3}:{(about + 1) % 3}"
        expected = {f"doc-{about // 3}:{about % 3}": 2, beside: 1, f"gone-{n}:0": 1}
        yield Question(f"{text} {n}", expected)


@pytest.fixture(scope="module")
def tuning_template(servers: Servers, migrated_template: str) -> Iterator[str]:
    with filled(servers, migrated_template, chunks(), golden()) as name:
        yield name


@pytest.fixture
def url(servers: Servers, tuning_template: str) -> Iterator[str]:
    assert servers.database_url is not None
    with copy_of(servers, tuning_template) as name:
        yield at_database(servers.database_url, name)


@pytest.fixture
def ctx(open_context: Opener) -> Context:
    return opened(open_context)


def opened(open_context: Opener, level: str = "chunk", **more: Strategy) -> Context:
    told = EvalSettings(k=4, level=Level(level), cutoffs=[1, 4], shard_size=15, latency_sample=0)
    return open_context(strategies=STRATEGIES | more, eval=told)


LAST = Wanted("default")


def measured(ctx: Context, made: Plan) -> tuple[Floats, Floats]:
    return measure(ctx, made, lambda _: None)


def stored(ctx: Context, run: Run, measure_name: str) -> list[float]:
    """Return what a run stored of its scored questions, in order."""
    query = """SELECT measured[array_position(run.measures, :measure)] FROM recallwatch.result r
               JOIN recallwatch.run ON run.id = r.run_id
               WHERE r.run_id = :run AND r.outcome = 'scored' ORDER BY r.position"""
    return fetch(ctx.database, query, {"run": run.id, "measure": measure_name})


def as_strategy(made: Plan, number: int) -> HybridStrategy:
    setting = made.settings[number]
    formula = setting.formula
    return HybridStrategy(
        arms=dict(zip(made.present.arms, setting.weights, strict=True)),
        fusion=formula.method,
        rrf_k=formula.rrf_k,
        normalize=formula.normalize,
        depth=setting.depth,
    )


@pytest.mark.parametrize(
    ("name", "level", "metric"),
    [("both", "chunk", "ndcg@4"), ("both", "document", "recall@1"), ("three", "chunk", "mrr@4")],
)
def test_each_setting_scores_what_a_run_with_it_stores(
    open_context: Opener, bell: Bell, name: str, level: str, metric: str
) -> None:
    ctx = opened(open_context, level)
    finish_runs(ctx, bell, name)
    made = plan(ctx, replace(LAST, metric=metric))
    values, alone = measured(ctx, made)
    some = [0, *random.Random(3).sample(range(1, len(made.settings)), 9)]  # noqa: S311 - of settings
    tried = {f"try-{number}": as_strategy(made, number) for number in some}
    again = opened(open_context, level, **tried)
    (*runs,) = finish_runs(again, bell, *tried)
    for number, run in zip(some, runs, strict=True):
        assert values[0, number].tolist() == stored(again, run, metric), made.settings[number]
    for number, (arm, run) in enumerate(
        zip(made.present.arms, finish_runs(ctx, bell, *made.present.arms), strict=True)
    ):
        assert alone[0, number].tolist() == stored(ctx, run, metric), arm
    assert len({tuple(values[0, number]) for number in some}) > 3


def test_the_gain_is_that_of_settings_chosen_without_the_question(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "both")
    made = plan(ctx, replace(LAST, folds=4, seed=7))
    values, _ = measured(ctx, made)
    tuned = tune(ctx, made, lambda _: None)
    present, unseen = tuned.gain.rows
    assert (present.name, unseen.name) == ("present", TUNED)
    assert present.means["ndcg@4"] == pytest.approx(values[0, 0].mean())
    best = values[0].mean(axis=1)
    assert best[made.settings.index(tuned.winner)] == best.max()
    assert unseen.means["ndcg@4"] <= best.max()
    assert set(present.means) == {"ndcg@4", "recall@4", "mrr@4"}
    assert tuned.top.best is None
    assert [row.name for row in tuned.top.rows][-2:] == [f"{arm} alone" for arm in tuned.alone]


def test_the_last_run_of_a_hybrid_is_taken_unless_one_is_named(ctx: Context, bell: Bell) -> None:
    both, three = finish_runs(ctx, bell, "both", "three")
    finish_runs(ctx, bell, "near")
    assert plan(ctx, LAST).run.id == three.id
    assert plan(ctx, replace(LAST, strategy="both")).run.id == both.id
    assert plan(ctx, replace(LAST, run_id=both.id)).run.id == both.id
    assert len(plan(ctx, replace(LAST, strategy="three")).present.arms) == 3


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (Wanted("default", run_id=0), "there is no run 0"),
        (Wanted("default", 1, metric="ndcg@5"), "looks deeper than run 1, whose k is 4"),
        (Wanted("default", 1, metric="judged@4"), "says nothing of how good a ranking is"),
        (Wanted("default", 1, metric="foo"), "--metric: 'foo' is not a measure"),
        (Wanted("default", strategy="three"), "no completed run of a hybrid of strategy three"),
        (Wanted("default", 1, "three"), "run 1 is of strategy both, not three"),
        (Wanted("default", 2), "run 2 is of kind vector: only a hybrid can be tuned"),
        (Wanted("default", 3), "run 3 has one arm alone"),
    ],
)
def test_what_cannot_be_tuned_is_refused_with_the_reason(
    ctx: Context, bell: Bell, wanted: Wanted, complaint: str
) -> None:
    finish_runs(ctx, bell, "both", "near", "single")
    with pytest.raises(UsageError, match=complaint):
        plan(ctx, wanted)


def test_a_run_that_is_not_finished_is_refused(ctx: Context, bell: Bell) -> None:
    [run_id] = start_runs(ctx, "both").run_ids
    assert bell.take()
    with pytest.raises(UsageError, match="run 1 is queued"):
        plan(ctx, replace(LAST, run_id=run_id))
    with pytest.raises(UsageError, match="golden set default has no completed run of a hybrid "):
        plan(ctx, LAST)


def test_a_run_without_stored_rankings_says_how_to_have_them(ctx: Context, bell: Bell) -> None:
    [run] = finish_runs(ctx, bell, "both")
    execute(ctx.database, "DELETE FROM recallwatch.stage_ranking WHERE stage = 'words'")
    with pytest.raises(UsageError, match=r"no stored ranking of arm words.*store_stages = true"):
        tune(ctx, plan(ctx, replace(LAST, run_id=run.id)), lambda _: None)


def test_too_few_questions_for_the_folds_are_refused(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "both")
    with pytest.raises(UsageError, match="40 scored questions: too few for 21 folds"):
        tune(ctx, plan(ctx, replace(LAST, folds=21)), lambda _: None)


def test_failed_questions_are_left_out_and_progress_counts_all(ctx: Context, bell: Bell) -> None:
    [run] = finish_runs(ctx, bell, "both")
    execute(
        ctx.database,
        "UPDATE recallwatch.result SET outcome = 'failed', measured = NULL, error = 'x'"
        " WHERE run_id = :run AND position IN (3, 17)",
        {"run": run.id},
    )
    steps: list[int] = []
    tuned = tune(ctx, plan(ctx, LAST), steps.append)
    assert tuned.gain.n == QUESTIONS - 2
    assert sum(steps) == QUESTIONS
