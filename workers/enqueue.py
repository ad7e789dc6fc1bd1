"""Start evaluations: what the command line, a schedule, CI and your own code call.

    from workers.enqueue import start_batch

    started = start_batch(trigger="reindex")

Settings come from recallwatch.toml and the environment (DATABASE_URL, REDIS_URL ...) of the
calling process, as everywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from db import golden, reindexing, runs, shards
from db.models import Batch, GoldenVersion, Run
from db.session import Session, allow_idling
from pipeline.corpus.statistics import CorpusFingerprint, fingerprint
from pipeline.corpus.table import CorpusTable
from pipeline.embedding.build import identity
from pipeline.errors import UsageError
from pipeline.retrieval.serving import as_searched
from pipeline.retrieval.tree import tree_of
from pipeline.scoring import CONVENTION, measures_for
from pipeline.settings import Settings
from pipeline.settings_types import MAX_K
from pipeline.types import Level, Trigger
from pipeline.verdict.gate import Gate
from workers import context, doorbell
from workers.context import Context
from workers.evidence import capture
from workers.exact_plan import plan_exact
from workers.key_check import Liveness, check_liveness
from workers.preflight import check_corpus
from workers.spending import Estimate, check_cap, check_estimate, estimate

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
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class StartedBatch:
    """A batch that is queued: its runs in the order of the strategies, the expected keys' state.

    `joined`: an earlier notice of re-indexing started it, and it was still waiting. It waits until
    `quiet_until`; None: it was rung at once. `estimate` is what its vectors cost; None: nothing.
    """

    batch_id: int
    run_ids: Sequence[int]
    version_id: int
    size: int
    keys: Liveness
    joined: bool = False
    quiet_until: datetime | None = None
    estimate: Estimate | None = None

    @property
    def warnings(self) -> Sequence[str]:
        """What the caller should hear of, in a line each."""
        return self.keys.warnings


Within = Callable[[Session, int], None]
"""Takes the transaction that writes a batch, and the batch's id."""


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
    max_cost: float | None = None,
) -> StartedBatch:
    """Snapshot the golden set, plan one run a strategy, commit, then ring the workers.

    Returns at once; workers evaluate. Raises UsageError (unknown strategy or level, k out of
    range, vectors that may cost more than `max_cost` US dollars), InputError (no golden set),
    CorpusError (no corpus, wrong dimension, too few expected keys in it), TransientError (a server
    does not answer). When only the queue does not answer, the batch is kept and a sweep starts it
    later.

    With `trigger="reindex"` the batch waits until [queue] reindex_quiet seconds have passed
    without another such call; calls for the same thing meanwhile join it.
    """
    request = Request(
        strategies, set_name, k, level, max_drop, trigger, requested_by, git_sha, max_cost
    )  # fmt: skip
    return start(context.current(), request)


def start(ctx: Context, request: Request, within: Within | None = None) -> StartedBatch:
    """Do what `start_batch` says, with a context that the caller holds.

    `within` is called in the transaction that writes the batch; what it raises undoes the batch.
    """
    wanted = resolve(ctx.settings, request)
    table = ctx.corpus_table()
    corpus = fingerprint(ctx.corpus(), table)
    check_corpus(ctx, wanted.strategies, table, corpus)
    with ctx.database.begin() as session:
        # The corpus is asked meanwhile, which may take its time.
        allow_idling(session, ctx.settings.queue.lease)
        version = golden.snapshot(session, wanted.set_name)
        keys = _check_keys(ctx, session, table, version, wanted)
        plans = [
            _plan(ctx.settings, wanted, name, searched(ctx, table, corpus, name))
            for name in wanted.strategies
        ]
        estimated = _estimate(ctx, session, table, version, plans)
        check_estimate(estimated, wanted.max_cost)
        planned = _plan_batch(ctx.settings, session, version, plans, wanted)
        if not planned.joined:
            plan_exact(ctx, session, table, version.id, planned.runs)
        if within is not None:
            within(session, planned.batch.id)
    if any(run.needs_vectors for run in planned.runs):
        ctx.lift_pause()
    if planned.batch.quiet_until is None:
        ring(planned.batch.id, planned.runs, planned.n_shards)
    return StartedBatch(
        batch_id=planned.batch.id,
        run_ids=[run.id for run in planned.runs],
        version_id=version.id,
        size=version.size,
        keys=keys,
        joined=planned.joined,
        quiet_until=planned.batch.quiet_until,
        estimate=estimated,
    )


def _check_keys(
    ctx: Context, session: Session, table: CorpusTable, version: GoldenVersion, wanted: "Wanted"
) -> Liveness:
    """Refuse a corpus that the set does not fit; else keep what was judged, where nobody has.

    Where nobody waits for the answer nothing is refused: such runs end as unmeasured, and an alert
    tells of it. A notice of re-indexing, besides, may come while the corpus is still written.
    """
    most = max_ineligible(ctx.settings, wanted)
    refused = 1.0 if wanted.trigger in {Trigger.SCHEDULE, Trigger.REINDEX} else most
    keys = check_liveness(ctx, session, table, version, wanted.level, most_ineligible=refused)
    # By documents nothing is known of the texts.
    if wanted.level is Level.CHUNK and keys.ineligible <= most * keys.answerable:
        capture(ctx, session, table, version.set_name)
    return keys


def _estimate(
    ctx: Context,
    session: Session,
    table: CorpusTable,
    version: GoldenVersion,
    plans: Sequence[runs.RunPlan],
) -> Estimate | None:
    """Count what the vectors cost that the plans need; None: they need none, or they are free."""
    if not any(plan.needs_vectors for plan in plans):
        return None
    return estimate(ctx, session, version.id, table.dimensions)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A batch as it is written; `n_shards` are those of a run."""

    batch: Batch
    runs: Sequence[Run]
    n_shards: int
    joined: bool


def _plan_batch(
    settings: Settings,
    session: Session,
    version: GoldenVersion,
    plans: Sequence[runs.RunPlan],
    wanted: "Wanted",
) -> _Planned:
    """Write a batch with its runs and shards; after a re-index, one that waits may do."""
    quiet = settings.queue.reindex_quiet if wanted.trigger is Trigger.REINDEX else 0
    if quiet and (waiting := reindexing.join(session, version.id, plans, quiet=quiet)):
        return _Planned(*waiting, n_shards=0, joined=True)
    batch, started = runs.create_batch(
        session, version, plans, trigger=wanted.trigger, requested_by=wanted.requested_by
    )
    batch.max_cost = wanted.max_cost
    run_ids = [run.id for run in started]
    n_shards = shards.plan(session, run_ids, version.size, settings.eval.shard_size)
    if quiet:
        reindexing.postpone(session, batch, started, plans, quiet=quiet)
    return _Planned(batch, started, n_shards, joined=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request with every gap filled from the settings, and checked."""

    strategies: Sequence[str]
    set_name: str
    k: int
    level: Level
    max_drop: float | None
    trigger: Trigger
    requested_by: str | None
    git_sha: str | None
    max_cost: float | None


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
    if request.max_drop is not None and not 0 <= request.max_drop <= 1:
        raise UsageError(f"max_drop must be from 0 to 1, not {request.max_drop:g}")
    max_cost = settings.embedding.max_cost if request.max_cost is None else request.max_cost
    check_cap(settings.embedding, max_cost)
    return Wanted(
        strategies=names,
        set_name=request.set_name or settings.eval.set,
        k=k,
        level=_member(Level, "level", request.level or settings.eval.level),
        max_drop=request.max_drop,
        trigger=_member(Trigger, "trigger", request.trigger),
        requested_by=request.requested_by,
        git_sha=request.git_sha,
        max_cost=max_cost,
    )


def max_ineligible(settings: Settings, wanted: Wanted) -> float:
    """Return the share of questions without a usable key above which every run is unmeasured."""
    return max(settings.gate.of(name).max_ineligible for name in wanted.strategies)


def _member(choices: type[Choice], name: str, value: str) -> Choice:
    """Return the enum's member of this value; raises UsageError, which names them all."""
    try:
        return choices(value)
    except ValueError:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, not {value!r}") from None


def _plan(settings: Settings, wanted: Wanted, name: str, corpus: CorpusFingerprint) -> runs.RunPlan:
    vectors = tree_of(name, settings.strategies).needs_vectors
    measures = measures_for(wanted.k, settings.eval.cutoffs)
    return runs.RunPlan(
        strategy=name,
        settings=run_settings(settings, name),
        needs_vectors=vectors,
        k=wanted.k,
        level=wanted.level,
        convention=CONVENTION,
        measures=[str(measure) for measure in measures],
        relevance_threshold=settings.eval.relevance_threshold,
        gate=asdict(gate_of(settings, wanted, name)),
        embedding_model=str(identity(settings.embedding)["model"]) if vectors else None,
        corpus_fingerprint=corpus.to_json(),
        git_sha=wanted.git_sha,
        deadline=timedelta(seconds=settings.queue.deadline),
    )


def searched(
    ctx: Context, table: CorpusTable, corpus: CorpusFingerprint, strategy: str
) -> CorpusFingerprint:
    """Return the corpus's fingerprint with the index that serves a strategy.

    Raises UsageError for an unknown strategy, CorpusError for a distance that the vectors have not.
    """
    return as_searched(ctx.corpus(), table, corpus, tree_of(strategy, ctx.settings.strategies))


def run_settings(settings: Settings, strategy: str) -> dict[str, Any]:
    """Return what a run keeps of the settings; raises UsageError for an unknown strategy."""
    return {
        "strategy": tree_of(strategy, settings.strategies).to_json(),
        "corpus": settings.corpus.model_dump(mode="json"),
        "embedding": settings.embedding.model_dump(mode="json"),
        "look_depth": settings.eval.look_depth,
        "store_stages": settings.eval.store_stages,
        "latency_sample": settings.eval.latency_sample,
        "exact_budget": settings.eval.exact_budget,
    }


def gate_of(settings: Settings, wanted: Wanted, strategy: str) -> Gate:
    """Return the strategy's rules at the run's k; a max_drop that was asked for is the rule."""
    k, rules = wanted.k, settings.gate.of(strategy).model_dump()
    if wanted.max_drop is not None:
        rules |= {"rule": "threshold", "max_drop": wanted.max_drop}
    return Gate(
        **rules
        | {
            "outcome": f"{rules['outcome']}@{k}",
            "metrics": [f"{metric}@{k}" for metric in rules["metrics"]],
            "floor": {f"{metric}@{k}": value for metric, value in rules["floor"].items()},
        }
    )


def ring(batch_id: int, started: Sequence[Run], n_shards: int) -> None:
    """Ring once a shard for all runs that need its vectors, and once for each of the others."""
    if any(run.needs_vectors for run in started):
        doorbell.embed(batch_id, range(n_shards))
    ready = [run.id for run in started if not run.needs_vectors]
    doorbell.evaluate((run_id, number) for number in range(n_shards) for run_id in ready)
