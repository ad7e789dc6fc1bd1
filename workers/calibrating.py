"""Measure the measurement: the same runs again and again, in this process and past the queue.

Nothing of a round is stored; what all rounds showed is, in the end, or nothing where one fails.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from db import calibrations, golden
from db.models import Calibration, GoldenVersion, Run
from db.session import allow_idling
from pipeline.corpus.indexing import VectorIndex, rebuild
from pipeline.corpus.statistics import CorpusFingerprint, fingerprint
from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError, UnmeasuredError, UsageError
from pipeline.retrieval.serving import serving_index
from pipeline.retrieval.tree import StrategyTree, tree_of
from pipeline.scoring import CONVENTION
from pipeline.settings import Settings
from pipeline.types import Outcome
from pipeline.verdict.calibration import Figures, Floats, figures, staleness
from pipeline.verdict.compare import corpus_changes
from pipeline.verdict.settings import Metric
from workers.context import Context
from workers.enqueue import Request, Wanted, max_ineligible, resolve, run_settings, searched
from workers.key_check import Liveness, check_liveness
from workers.measuring import measure
from workers.preflight import check_corpus

Advance = Callable[[int], None]
"""Told how many questions were measured since it was told last."""

OUTCOMES: tuple[Metric, ...] = get_args(Metric)
"""What a gate may count, at k; hit is the first."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be calibrated; `deterministic` strategies were asked for, but need none."""

    wanted: Wanted
    deterministic: Sequence[str]
    reindex: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`pairs` + 1 rounds of every run, over one golden version and one state of the corpus.

    `runs` only tell the workers' code what to do: they are never stored. `index` is rebuilt
    between rounds; None: none is.
    """

    version: GoldenVersion
    runs: Sequence[Run]
    pairs: int
    table: CorpusTable
    corpus: CorpusFingerprint
    index: VectorIndex | None
    keys: Liveness

    @property
    def warnings(self) -> Sequence[str]:
        """What to warn of."""
        return self.keys.warnings

    @property
    def total(self) -> int:
        """How many questions are measured, each round's counted."""
        return (self.pairs + 1) * len(self.runs) * self.version.size


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run's rounds showed; `failed` questions failed in a round and were left out."""

    run: Run
    figures: Figures
    failed: int


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """One measurement: see `pipeline.verdict.calibration.figures`; `failed`: shape (questions,)."""

    values: Floats
    failed: NDArray[np.bool_]
    example_error: str | None


def choose(settings: Settings, request: Request, *, reindex: bool) -> Choice:
    """Fill a request from the settings, without any server.

    Raises UsageError for what cannot be: an unknown strategy, an index that the settings do not
    give free to be rebuilt, or, with `reindex`, no strategy that uses an index.
    """
    wanted = resolve(settings, request)
    if not reindex:
        return Choice(wanted, [], reindex)
    if not (settings.corpus.is_managed or settings.corpus.staging):
        raise UsageError(
            f"--reindex would rebuild the vector index of {settings.corpus.table}, which is not"
            " recallwatch's own table: set staging = true in [corpus] where it is a copy to try"
            " things on, or leave --reindex out"
        )
    known = settings.strategies
    by_index = [name for name in wanted.strategies if tree_of(name, known).is_approximate]
    others = [name for name in wanted.strategies if name not in by_index]
    if not by_index:
        raise UsageError(
            f"{', '.join(others)}: no vector index to rebuild; deterministic: needs no calibration"
        )
    return Choice(replace(wanted, strategies=by_index), others, reindex)


def plan(ctx: Context, choice: Choice, *, pairs: int) -> Plan:
    """Snapshot the golden set and look whether corpus and index can be measured.

    Raises UsageError where there is no index to rebuild, and what `workers.enqueue.start` raises.
    """
    wanted, table = choice.wanted, ctx.corpus_table()
    corpus = fingerprint(ctx.corpus(), table)
    check_corpus(ctx, wanted.strategies, table, corpus)
    index = _index_of(ctx, table, wanted.strategies) if choice.reindex else None
    with ctx.database.begin() as session:
        # The corpus is asked meanwhile, which may take its time.
        allow_idling(session, ctx.settings.queue.lease)
        version = golden.snapshot(session, wanted.set_name)
        most = max_ineligible(ctx.settings, wanted)
        keys = check_liveness(ctx, session, table, version, wanted.level, most_ineligible=most)
    runs = [
        _run(ctx.settings, name, wanted.k, wanted.level, searched(ctx, table, corpus, name))
        for name in wanted.strategies
    ]
    for run in runs:
        run.size = version.size
    return Plan(version=version, runs=runs, pairs=pairs, table=table, corpus=corpus, index=index,
                keys=keys)  # fmt: skip


def _index_of(ctx: Context, table: CorpusTable, strategies: Sequence[str]) -> VectorIndex:
    """Return the index that serves all the strategies; raises UsageError without one."""
    known = ctx.settings.strategies
    found = {name: serving_index(ctx.corpus(), table, tree_of(name, known)) for name in strategies}
    for name, index in found.items():
        if index is None:
            raise UsageError(
                f"corpus table {table} has no index that serves strategy {name}, so there is none"
                " to rebuild; searching it is deterministic: needs no calibration"
            )
    if len({index.oid for index in found.values() if index}) > 1:
        raise UsageError(
            f"{', '.join(strategies)} are served by several indexes: calibrate one by one"
        )
    return next(index for index in found.values() if index)


def _run(settings: Settings, name: str, k: int, level: str, corpus: CorpusFingerprint) -> Run:
    told = run_settings(settings, name)
    return Run(
        strategy=name,
        # How deep a miss lies, and what the stages found, is not part of any figure.
        settings=told | {"look_depth": 0, "store_stages": False, "latency_sample": 0},
        needs_vectors=StrategyTree.from_json(told["strategy"]).needs_vectors,
        k=k,
        level=level,
        convention=CONVENTION,
        measures=[f"{metric}@{k}" for metric in OUTCOMES],
        relevance_threshold=settings.eval.relevance_threshold,
        corpus_fingerprint=corpus.to_json(),
    )


def measure_rounds(ctx: Context, plan: Plan, advance: Advance) -> list[Measured]:
    """Measure every run `plan.pairs` + 1 times, as workers do: embed, retrieve, score.

    The questions' vectors come from the cache after the first round. Memory: 48 bytes a question,
    run and round. Raises what ends a shard (TransientError, PermanentError, CorpusError),
    CorpusError where the corpus changed meanwhile, and UnmeasuredError where no question was
    scored in every round.
    """
    rounds: list[list[_Round]] = [[] for _ in plan.runs]
    for number in range(plan.pairs + 1):
        if number and plan.index is not None:
            rebuild(ctx.corpus(), plan.table, plan.index)
        for run, measured in zip(plan.runs, rounds, strict=True):
            measured.append(_round(ctx, plan, run, advance))
    _check_unchanged(ctx, plan)
    return [_showed(run, each) for run, each in zip(plan.runs, rounds, strict=True)]


def _round(ctx: Context, plan: Plan, run: Run, advance: Advance) -> _Round:
    version = plan.version
    values = np.full((version.size, len(run.measures)), np.nan)
    failed = np.zeros(version.size, dtype=np.bool_)
    example = None
    size = ctx.settings.eval.shard_size
    for first in range(0, version.size, size):
        with ctx.database.begin() as session:
            items = golden.items(session, version.id, first, first + size - 1)
        rows, _ = measure(ctx, run, items)
        for row in rows:
            if row.outcome is Outcome.SCORED and row.measured is not None:
                values[row.position] = row.measured
            elif row.outcome is Outcome.FAILED:
                failed[row.position] = True
                example = example or row.error
        advance(len(rows))
    return _Round(values, failed, example)


def _check_unchanged(ctx: Context, plan: Plan) -> None:
    """Refuse what was not the same thing each time."""
    before, after = plan.corpus, fingerprint(ctx.corpus(), plan.table)
    if plan.index is not None:
        before, after = replace(before, index=None), replace(after, index=None)
    if before != after:
        changes = corpus_changes(after.to_json(), before.to_json())
        said = [change for change in changes if not change.endswith("unchanged")]
        raise CorpusError(
            f"corpus table {plan.table} changed while it was measured ({', '.join(said)}), so the"
            " rounds are not of the same thing: calibrate again while nothing writes to it"
        )


def _showed(run: Run, rounds: Sequence[_Round]) -> Measured:
    failed = int(np.logical_or.reduce([each.failed for each in rounds]).sum())
    try:
        found = figures(run.measures, [each.values for each in rounds])
    except ValueError as error:
        example = next((each.example_error for each in rounds if each.example_error), None)
        why = f"{failed} failed" + (f", first error: {example}" if example else "")
        raise UnmeasuredError(
            f"{run.strategy}: no question was scored in every round ({why})"
        ) from error
    return Measured(run, found, failed)


def store(ctx: Context, plan: Plan, measured: Sequence[Measured]) -> list[Calibration]:
    """Store a calibration a run, all in one transaction."""
    with ctx.database.begin() as session:
        return [
            calibrations.add(
                session, plan.version, each.run, each.figures, reindexed=plan.index is not None
            )
            for each in measured
        ]


def stale(ctx: Context, found: Sequence[Calibration]) -> list[list[str]]:
    """Say of each calibration why a run started now would find it stale; empty: it is fresh.

    Raises CorpusError and TransientError where the corpus cannot be looked at.
    """
    table = ctx.corpus_table()
    corpus = fingerprint(ctx.corpus(), table, exact_up_to=0)
    with ctx.database.begin() as session:
        names = {each.set_name for each in found}
        versions = {name: golden.current(session, name) for name in names}
    return [_stale(ctx, each, versions[each.set_name], table, corpus) for each in found]


def _stale(
    ctx: Context,
    calibration: Calibration,
    version: GoldenVersion | None,
    table: CorpusTable,
    corpus: CorpusFingerprint,
) -> list[str]:
    name = calibration.strategy
    if name not in ctx.settings.strategies:
        return ["strategy is not in the settings"]
    seen = searched(ctx, table, corpus, name)
    run = _run(ctx.settings, name, calibration.k, calibration.level, seen)
    now = calibrations.run_conditions(run, version.id if version else 0)
    return staleness(calibrations.conditions(calibration), now)
