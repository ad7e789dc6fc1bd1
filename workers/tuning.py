"""Tune a hybrid on the stored rankings of its arms: nothing is embedded, nothing searched."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from db import runs, stages
from db.models import Run
from db.stages import StagedResult
from pipeline.errors import UsageError
from pipeline.experiment import Candidate, Experiment, compare
from pipeline.retrieval.limits import needed_limit
from pipeline.retrieval.strategies import HybridStrategy
from pipeline.retrieval.tree import StrategyTree
from pipeline.scoring import Measure, judgments_at
from pipeline.tuning.grid import HybridSetting, grid
from pipeline.tuning.sweep import Conventions, Staged, Sweep
from pipeline.tuning.validation import Validated, cross_validate
from pipeline.types import Level, Ranking, RunStatus
from workers.context import Context

Floats = NDArray[np.float64]

TOP = 5
"""Settings that are shown."""

TUNED = "tuned, on questions not seen"

BESIDE = ("recall", "mrr")
"""Measures that are shown beside the one that decides, at the same k."""

ABOUT_THE_RANKING = ("judged", "duplicates")

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be tuned: a run, or the last one of a set (and a strategy); by which measure."""

    set_name: str
    run_id: int | None = None
    strategy: str | None = None
    metric: str | None = None
    folds: int = 5
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A run whose arms' rankings are stored, and the settings to try on them.

    `present` is the strategy as the run had it, and the first of `settings`.
    """

    run: Run
    present: HybridStrategy
    settings: Sequence[HybridSetting]
    conventions: Conventions
    folds: int
    seed: int


@dataclass(frozen=True, slots=True)
class Tuned:
    """What tuning found.

    `gain` holds the present settings against those that tuning would choose, each question judged
    with what was chosen without it. `top` holds them against the best ones and each arm alone, all
    over the questions that chose them. `alone`: the mean of the measure that decides, by arm.
    `winner` is the best setting, `agreeing` the folds of `plan.folds` that chose it too.
    """

    plan: Plan
    gain: Experiment
    top: Experiment
    alone: Mapping[str, float]
    winner: HybridSetting
    agreeing: int

    @property
    def keeps_present(self) -> bool:
        """Whether no setting is better than the present one, even on the same questions."""
        return self.winner is self.plan.settings[0]

    @property
    def is_above_luck(self) -> bool:
        """Whether tuning gains more than chance gives, on questions not seen."""
        return self.gain.best is not None and not self.keeps_present


def plan(ctx: Context, wanted: Wanted) -> Plan:
    """Choose the run and what to try. Raises UsageError where it has not what tuning takes."""
    with ctx.database.begin() as session:
        run_id = wanted.run_id
        if run_id is None:
            run_id = stages.newest_hybrid(session, wanted.set_name, wanted.strategy)
        if run_id is None:
            of = f" of strategy {wanted.strategy}" if wanted.strategy else ""
            raise UsageError(
                f"golden set {wanted.set_name} has no completed run of a hybrid{of} with stored"
                " rankings of its arms; make one: recallwatch eval --strategy hybrid"
            )
        run = runs.get(session, run_id).run
    strategy = _hybrid_of(run, wanted)
    limit = needed_limit(run.k, Level(run.level))
    present = HybridSetting.of(strategy, max(strategy.depth, limit))
    conventions = Conventions(
        run.k, limit, Level(run.level), _measures(run, wanted.metric), run.relevance_threshold
    )
    settings = grid(present, limit)
    return Plan(run, strategy, settings, conventions, wanted.folds, wanted.seed)


def _hybrid_of(run: Run, wanted: Wanted) -> HybridStrategy:
    """Return the settings that a run searched with."""
    strategy = StrategyTree.from_json(run.settings["strategy"]).strategy
    if wanted.strategy is not None and run.strategy != wanted.strategy:
        raise UsageError(f"run {run.id} is of strategy {run.strategy}, not {wanted.strategy}")
    if run.status != RunStatus.COMPLETED:
        raise UsageError(f"run {run.id} is {run.status}: there is nothing to tune on")
    if not isinstance(strategy, HybridStrategy):
        raise UsageError(f"run {run.id} is of kind {strategy.kind}: only a hybrid can be tuned")
    if len(strategy.arms) == 1:
        raise UsageError(f"run {run.id} has one arm alone: there is nothing to fuse")
    return strategy


def _measures(run: Run, metric: str | None) -> list[Measure]:
    """Return the measure that decides, and those to show beside it."""
    try:
        deciding = Measure.parse(metric) if metric else Measure("ndcg", run.k)
    except ValueError as error:
        raise UsageError(f"--metric: {error}") from error
    if deciding.name in ABOUT_THE_RANKING:
        raise UsageError(f"--metric: {deciding.name} says nothing of how good a ranking is")
    if deciding.k > run.k:
        raise UsageError(f"--metric: {deciding} looks deeper than run {run.id}, whose k is {run.k}")
    beside = [Measure(name, deciding.k) for name in BESIDE]
    return list(dict.fromkeys([deciding, *beside]))


def tune(ctx: Context, planned: Plan, advance: Callable[[int], None]) -> Tuned:
    """Try all settings on all questions that were scored; `advance` gets each block's size.

    Raises UsageError where a question lacks the ranking of an arm, or there are too few questions.
    """
    values, alone = measure(ctx, planned, advance)
    questions = values.shape[2]
    if questions < 2 * planned.folds:
        raise UsageError(
            f"run {planned.run.id} has {questions} scored questions: too few for"
            f" {planned.folds} folds of two and more"
        )
    return _tuned(planned, values, alone, cross_validate(values[0], planned.folds, planned.seed))


def measure(ctx: Context, planned: Plan, advance: Callable[[int], None]) -> tuple[Floats, Floats]:
    """Return what each setting, and each arm alone, would have scored in the run.

    Of the shapes (measures, settings, n) and (measures, arms, n), over the n scored questions in
    their order. Raises UsageError where a question lacks the ranking of an arm.
    """
    sweep = Sweep(planned.settings, planned.conventions)
    both = [
        (sweep.values(question), sweep.alone(question))
        for question in _questions(ctx, planned, advance)
    ]
    if not both:
        raise UsageError(f"run {planned.run.id} has no scored question")
    found, alone = (np.array(each).transpose(2, 1, 0) for each in zip(*both, strict=True))
    return found, alone


def _questions(ctx: Context, planned: Plan, advance: Callable[[int], None]) -> Iterator[Staged]:
    arms, level = list(planned.present.arms), planned.conventions.level
    for first in range(0, planned.run.size, _AT_ONCE):
        last = min(first + _AT_ONCE, planned.run.size) - 1
        with ctx.database.begin() as session:
            block = stages.scored(session, planned.run.id, arms, first, last)
        for result in block:
            yield Staged(_live(result, level), [_ranking(planned, result, arm) for arm in arms])
        advance(last - first + 1)


def _live(result: StagedResult, level: Level) -> dict[str, int]:
    judged = judgments_at(result.expected, level)
    return {key: grade for key, grade in judged.items() if key not in result.missing}


def _ranking(planned: Plan, result: StagedResult, arm: str) -> Ranking:
    if arm not in result.stages:
        raise UsageError(
            f"run {planned.run.id} has no stored ranking of arm {arm}: evaluate again with"
            " [eval] store_stages = true"
        )
    return result.stages[arm]


def _tuned(planned: Plan, values: Floats, alone: Floats, validated: Validated) -> Tuned:
    """Put candidates together; `values` and `alone` are of the shape (measures, ways, n)."""
    names = [str(measure) for measure in planned.conventions.measures]

    def candidate(name: str, of: Floats) -> Candidate:
        return Candidate(name, dict(zip(names, of, strict=True)))

    present = candidate("present", values[:, 0])
    unseen = np.take_along_axis(values, validated.chosen[None, None], axis=1)[:, 0]
    best = np.argsort(-values[0].mean(axis=1), kind="stable")[:TOP]
    others = [
        *(candidate(str(planned.settings[n]), values[:, n]) for n in best if n != 0),
        *(candidate(f"{arm} alone", alone[:, n]) for n, arm in enumerate(planned.present.arms)),
    ]
    top = compare([present, *others], seed=planned.seed)
    of_arms = alone[0].mean(axis=1).tolist()
    return Tuned(
        plan=planned,
        gain=compare([present, candidate(TUNED, unseen)], seed=planned.seed),
        # The best of many are so by luck too, which no interval of theirs knows of.
        top=replace(top, best=None),
        alone=dict(zip(planned.present.arms, of_arms, strict=True)),
        winner=planned.settings[validated.winner],
        agreeing=validated.folds.count(validated.winner),
    )
