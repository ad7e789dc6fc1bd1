"""Start evaluations: what the command line, a schedule, CI and your own code call.

    from workers.enqueue import start_batch

    started = start_batch(trigger="reindex")

Settings come from recallwatch.toml and the environment (DATABASE_URL, REDIS_URL ...) of the
calling process, as everywhere.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from db import golden, runs, shards
from db.models import Run
from pipeline.corpus.statistics import CorpusFingerprint, fingerprint
from pipeline.embedding.build import identity
from pipeline.errors import UsageError
from pipeline.retrieval.build import needs_vectors, snapshot
from pipeline.scoring import CONVENTION, measures_for
from pipeline.settings import MAX_K, Settings
from pipeline.types import Level, Trigger
from pipeline.verdict.rules import Gate
from workers import context, doorbell
from workers.context import Context
from workers.preflight import check_corpus, check_liveness

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be evaluated, and how; `None` takes what the settings say."""

    strategies: Sequence[str] | None = None
    set_name: str | None = None
    k: int | None = None
    level: Level | str | None = None
    max_drop: float | None = None
    trigger: Trigger | str = Trigger.MANUAL
    requested_by: str | None = None
    git_sha: str | None = None


@dataclass(frozen=True, slots=True)
class StartedBatch:
    """A batch that is queued: its runs in the order of the strategies, and what to warn of."""

    batch_id: int
    run_ids: Sequence[int]
    version_id: int
    size: int
    warnings: Sequence[str]


def start_batch(  # noqa: PLR0913 - keywords only, each an option of `recallwatch eval`
    strategies: Sequence[str] | None = None,
    *,
    set_name: str | None = None,
    k: int | None = None,
    level: Level | str | None = None,
    max_drop: float | None = None,
    trigger: Trigger | str = Trigger.MANUAL,
    requested_by: str | None = None,
    git_sha: str | None = None,
) -> StartedBatch:
    """Snapshot the golden set, plan one run a strategy, commit, then ring the workers.

    Returns at once; workers evaluate. Raises UsageError (unknown strategy or level, k out of
    range), InputError (no golden set), CorpusError (no corpus, wrong dimension, no expected key in
    it), TransientError (a server does not answer). When only the queue does not answer, the batch
    is kept and a sweep starts it later.
    """
    request = Request(
        strategies, set_name, k, level, max_drop, trigger, requested_by, git_sha
    )  # fmt: skip
    return start(context.current(), request)


def start(ctx: Context, request: Request) -> StartedBatch:
    """Do what `start_batch` says, with a context that the caller holds."""
    wanted = resolve(ctx.settings, request)
    table = ctx.corpus_table()
    corpus = fingerprint(ctx.corpus(), table)
    check_corpus(ctx, wanted.strategies, table, corpus)
    with ctx.database.begin() as session:
        version = golden.snapshot(session, wanted.set_name)
        warnings = check_liveness(ctx, session, table, version, wanted.level)
        batch, started = runs.create_batch(
            session,
            version,
            [_plan(ctx.settings, wanted, name, corpus) for name in wanted.strategies],
            trigger=wanted.trigger,
            requested_by=wanted.requested_by,
        )
        run_ids = [run.id for run in started]
        n_shards = shards.plan(session, run_ids, version.size, ctx.settings.eval.shard_size)
    _ring(batch.id, started, n_shards)
    return StartedBatch(batch.id, run_ids, version.id, version.size, warnings)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request with every gap filled from the settings, and checked."""

    strategies: Sequence[str]
    set_name: str
    k: int
    level: Level
    max_drop: float
    trigger: Trigger
    requested_by: str | None
    git_sha: str | None


def resolve(settings: Settings, request: Request) -> Wanted:
    """Fill a request from the settings; raises UsageError for what cannot be."""
    names = list(dict.fromkeys(request.strategies or settings.eval.strategies))
    unknown = [name for name in names if name not in settings.strategies]
    if unknown:
        known = ", ".join(settings.strategies)
        raise UsageError(f"unknown strategy {unknown[0]!r}; the strategies are: {known}")
    k = settings.eval.k if request.k is None else request.k
    if not 1 <= k <= MAX_K:
        raise UsageError(f"k must be from 1 to {MAX_K}, not {k}")
    max_drop = settings.gate.max_drop if request.max_drop is None else request.max_drop
    if not 0 <= max_drop <= 1:
        raise UsageError(f"max_drop must be from 0 to 1, not {max_drop:g}")
    return Wanted(
        strategies=names,
        set_name=request.set_name or settings.eval.set,
        k=k,
        level=_member(Level, "level", request.level or settings.eval.level),
        max_drop=max_drop,
        trigger=_member(Trigger, "trigger", request.trigger),
        requested_by=request.requested_by,
        git_sha=request.git_sha,
    )


def _member(choices: type[Choice], name: str, value: str) -> Choice:
    """Return the enum's member of this value; raises UsageError, which names them all."""
    try:
        return choices(value)
    except ValueError:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, not {value!r}") from None


def _plan(settings: Settings, wanted: Wanted, name: str, corpus: CorpusFingerprint) -> runs.RunPlan:
    strategy = snapshot(name, settings.strategies)
    vectors = needs_vectors(strategy)
    gate = Gate(
        max_drop=wanted.max_drop,
        metrics=[f"{metric}@{wanted.k}" for metric in settings.gate.metrics],
        min_shared=settings.gate.min_shared,
        max_failed=settings.eval.max_failed,
    )
    measures = measures_for(wanted.k, settings.eval.cutoffs)
    return runs.RunPlan(
        strategy=name,
        settings={
            "strategy": strategy,
            "corpus": settings.corpus.model_dump(mode="json"),
            "embedding": settings.embedding.model_dump(mode="json"),
            "look_depth": settings.eval.look_depth,
        },
        needs_vectors=vectors,
        k=wanted.k,
        level=wanted.level,
        convention=CONVENTION,
        measures=[str(measure) for measure in measures],
        relevance_threshold=settings.eval.relevance_threshold,
        gate=asdict(gate),
        embedding_model=str(identity(settings.embedding)["model"]) if vectors else None,
        corpus_fingerprint=corpus.to_json(),
        git_sha=wanted.git_sha,
        deadline=timedelta(seconds=settings.queue.deadline),
    )


def _ring(batch_id: int, started: Sequence[Run], n_shards: int) -> None:
    """Ring once a shard for all runs that need its vectors, and once for each of the others."""
    if any(run.needs_vectors for run in started):
        doorbell.embed(batch_id, range(n_shards))
    ready = [run.id for run in started if not run.needs_vectors]
    doorbell.evaluate((run_id, number) for number in range(n_shards) for run_id in ready)
