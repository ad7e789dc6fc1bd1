"""Embedding models over the same chunks: the figures of a real run, and nothing changed by them."""

from dataclasses import replace
from typing import Any

import pytest

from db.models import Run
from pipeline.corpus.statistics import fingerprint
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import CorpusError, SettingsError, UnmeasuredError, UsageError
from pipeline.scoring import Measure
from pipeline.types import Level
from tests.integration.workers.conftest import TEXTS, Opener
from tests.integration.workers.working import DIMENSIONS, Bell, finish_runs
from tests.loopback.openai_server import OpenAIServer, refuse, refuse_longer_than
from workers.comparing.embedding_trial import Plan, Trial, Wanted, plan, run
from workers.comparing.models import Model, models_of
from workers.context import Context

MEASURES = ("ndcg@3", "recall@3", "mrr@3")


def wanted(ctx: Context, *models: str | Model, **changes: Any) -> Wanted:  # noqa: ANN401 - fields of Wanted
    named = [each for each in models if isinstance(each, str)]
    found = models_of(ctx.settings, named) if named else []
    return replace(
        Wanted(
            models=[*found, *(each for each in models if isinstance(each, Model))],
            set_name="default", k=3, level=Level.CHUNK,
            measures=[Measure.parse(name) for name in MEASURES],
            others=None, seed=1, max_cost=1.0,
        ),
        **changes,
    )  # fmt: skip


def done(ctx: Context, asked: Wanted) -> tuple[Plan, Trial]:
    planned = plan(ctx, asked)
    steps: list[int] = []
    trial = run(ctx, planned, steps.append)
    assert sum(steps) == planned.total
    return planned, trial


def served(run_of_vectors: Run) -> dict[str, float]:
    assert run_of_vectors.metrics is not None
    return {name: run_of_vectors.metrics[name] for name in MEASURES}


def remote(provider: OpenAIServer, **settings: Any) -> Model:  # noqa: ANN401 - of several types
    given = {"provider": "openai", "model": "m", "base_url": provider.url, "attempts": 1}
    return Model("remote", EmbeddingSettings.model_validate(given | settings))


def test_the_corpus_and_its_own_model_have_the_figures_of_a_run(ctx: Context, bell: Bell) -> None:
    (run_of_vectors,) = finish_runs(ctx, bell, "vector")

    _, trial = done(ctx, wanted(ctx, "corpus", f"local@{DIMENSIONS}"))

    corpus, same = trial.experiment.rows
    assert dict(corpus.means) == pytest.approx(served(run_of_vectors))
    assert dict(same.means) == pytest.approx(served(run_of_vectors))
    assert trial.experiment.n == run_of_vectors.n_scored
    assert same.differences["ndcg@3"].mean == 0


def test_at_document_level_too(open_context: Opener, bell: Bell) -> None:
    ctx = open_context()
    ctx = open_context(eval=ctx.settings.eval.model_copy(update={"level": Level.DOCUMENT}))
    (run_of_vectors,) = finish_runs(ctx, bell, "vector")

    _, trial = done(ctx, wanted(ctx, "local", level=Level.DOCUMENT))

    assert dict(trial.experiment.rows[0].means) == pytest.approx(served(run_of_vectors))


def test_production_is_read_and_not_written(ctx: Context) -> None:
    before = fingerprint(ctx.corpus(), ctx.corpus_table())

    done(ctx, wanted(ctx, "local", "local@128"))

    assert fingerprint(ctx.corpus(), ctx.corpus_table()) == before


def test_a_model_that_finds_nothing_by_meaning_is_worse_and_says_what_it_took(
    ctx: Context, provider: OpenAIServer
) -> None:
    provider.dimensions = 16
    priced = remote(provider, price=1000.0)

    planned, trial = done(ctx, wanted(ctx, "corpus", "local", priced))

    local, random = trial.experiment.rows[1:]
    assert random.means["ndcg@3"] < local.means["ndcg@3"]
    texts = {*TEXTS.values(), *planned.questions.texts}
    assert planned.estimates[2].texts == len(texts)
    billed = sum(-(-len(one.encode()) // 4) for one in texts)
    assert trial.spent == pytest.approx(billed / 1000)
    assert random.facts["dims"] == 16
    assert random.facts["$/M tokens"] == "1000"
    assert local.facts["spent"] == "$0"


def test_a_second_time_nothing_is_paid(ctx: Context, provider: OpenAIServer) -> None:
    asked = wanted(ctx, "corpus", "local", remote(provider, price=1000.0))
    _, first = done(ctx, asked)
    provider.default = refuse(500)

    planned, again = done(ctx, asked)

    assert planned.estimates[2].texts == 0
    assert again.spent == 0
    assert again.experiment.rows[2].means == first.experiment.rows[2].means
    assert again.experiment.rows[2].facts["texts/s"] is None


def test_a_question_that_a_model_cannot_embed_is_left_out_for_all(
    ctx: Context, provider: OpenAIServer
) -> None:
    # The longest text of all is a chunk, the second longest a question.
    longest = len("How long does the battery of the remote last?")
    provider.default = refuse_longer_than(longest - 1, "maximum context length is 8192 tokens")

    planned, trial = done(ctx, wanted(ctx, "corpus", "local", remote(provider)))

    assert trial.failed == sum(
        len(item.text) >= longest and bool(item.expected)
        and not set(item.expected).isdisjoint(TEXTS)
        for item in planned.questions.items
    )  # fmt: skip
    assert trial.failed > 0
    assert trial.experiment.n + trial.failed == 6
    assert trial.experiment.rows[2].facts["no vector"] == sum(
        len(one) >= longest for one in TEXTS.values()
    )


def test_a_model_that_embeds_nothing_leaves_nothing_to_compare(
    ctx: Context, provider: OpenAIServer
) -> None:
    provider.default = refuse_longer_than(0, "maximum context length is 0 tokens")

    with pytest.raises(UnmeasuredError, match="no question can be compared: 6 failed"):
        done(ctx, wanted(ctx, "corpus", "local", remote(provider)))


def test_a_sample_holds_the_judged_chunks_and_as_many_others_as_asked_for(ctx: Context) -> None:
    planned = plan(ctx, wanted(ctx, "local", others=1))

    # Of eight chunks, six are judged.
    assert (len(planned.pool), planned.judged, planned.chunks) == (7, 6, 8)
    assert planned.is_sample
    assert not plan(ctx, wanted(ctx, "local", others=2)).is_sample


def test_what_is_likely_to_cost_too_much_is_not_begun(ctx: Context, provider: OpenAIServer) -> None:
    planned = plan(ctx, wanted(ctx, "corpus", "local", remote(provider, price=1e6)))

    with pytest.raises(UsageError, match=r"more than the cap of \$1.00"):
        run(ctx, planned, lambda _: None)
    assert provider.requests == []


def test_a_key_that_is_not_set_is_told_before_anything_is_paid(
    ctx: Context, provider: OpenAIServer
) -> None:
    voyage = Model("v", EmbeddingSettings(provider="voyage", model="voyage-3.5"))
    planned = plan(ctx, wanted(ctx, "corpus", "local", remote(provider), voyage))

    with pytest.raises(SettingsError, match="VOYAGE_API_KEY is not set"):
        run(ctx, planned, lambda _: None)
    assert provider.requests == []


def test_a_price_that_nobody_knows_is_refused(ctx: Context) -> None:
    unknown = Model("u", EmbeddingSettings(provider="cohere", model="embed-9"))

    with pytest.raises(UsageError, match="what u costs is not known"):
        plan(ctx, wanted(ctx, "corpus", "local", unknown))


def test_questions_of_another_model_than_the_corpus_s_are_refused(open_context: Opener) -> None:
    ctx = open_context(embedding=EmbeddingSettings(dimensions=128))

    with pytest.raises(CorpusError, match="have 64 dimensions, and the questions' 128"):
        done(ctx, wanted(ctx, "local@64"))
