"""Calibration: what the measurement's own noise is, from measuring the same thing again and again.

Two rounds next to each other are an A/A pair. What a figure says of a run hangs on what was
measured: `applies` and `staleness` hold the conditions of the calibration against the run's.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.verdict.compare import index_options
from pipeline.verdict.estimate import NoiseEstimate, Source
from pipeline.verdict.noise import flip_rate
from pipeline.verdict.resampling import Differences

Floats = NDArray[np.float64]

DIGITS = 12
"""Digits that differences are rounded to, so that equal ones of different fractions are one."""

MOST_GROWTH = 0.2
"""Change in the number of chunks, a share, from which on a calibration is stale: an index misses
more of a larger corpus, and what it misses at random is its noise."""

_SOURCE_OF_VECTORS = ("provider", "model", "dimensions", "base_url")
_NOT_SEARCHED = ("staging",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What A/A pairs showed, in questions.

    `n`: questions scored in every round. `flips`: questions whose hit at k changed, in either
    direction, over all `pairs`. `largest_net`: the largest net loss between any two rounds, also
    those that do not follow each other. `differences` maps a metric at k to [difference, count],
    ascending, over all pairs: later minus earlier, zero included. `totals` maps it to its sum over
    the n questions in each round.
    """

    n: int
    pairs: int
    flips: int
    largest_net: int
    differences: Mapping[str, Sequence[tuple[float, int]]]
    totals: Mapping[str, Sequence[float]]

    @property
    def flip_rate(self) -> float:
        """The flip rate per question and direction; see `pipeline.verdict.noise.flip_rate`."""
        return flip_rate(self.flips, self.n, self.pairs)

    def estimate(self, notes: Sequence[str] = ()) -> NoiseEstimate:
        """Return what the noise rule takes; `notes` are what is to be said of it, as staleness."""
        return NoiseEstimate(
            source=Source.CALIBRATED,
            flip_rate=self.flip_rate,
            measured=self.n,
            totals=self.totals,
            differences={
                metric: Differences.of(*zip(*pairs, strict=True))
                for metric, pairs in self.differences.items()
            },
            notes=notes,
        )


def scored_in_all(rounds: Sequence[Floats]) -> NDArray[np.bool_]:
    """Return which questions every round scored, shape (questions,); rounds as `figures` takes."""
    scored = np.ones(len(rounds[0]), dtype=np.bool_)
    for each in rounds:
        scored &= ~np.isnan(each[:, 0])
    return scored


def figures(metrics: Sequence[str], rounds: Sequence[Floats]) -> Figures:
    """Return what measuring the same thing several times shows.

    `metrics` are names at k, the first of them hit. A round has shape (questions, metrics), a row
    of NaN where the question was not scored: it counts only where no round is without it. Memory:
    as the rounds once more. Raises ValueError for fewer than two rounds, and when no question was
    scored in all of them.
    """
    scored = scored_in_all(rounds)
    n = int(scored.sum())
    if len(rounds) < 2 or n == 0:  # noqa: PLR2004 - a pair
        raise ValueError(f"{len(rounds)} rounds with {n} questions scored in each show nothing")
    kept = [each[scored] for each in rounds]
    hits = [each[:, 0] > 0 for each in kept]
    totals = [int(np.count_nonzero(each)) for each in hits]
    return Figures(
        n=n,
        pairs=len(rounds) - 1,
        flips=sum(int(np.count_nonzero(a != b)) for a, b in itertools.pairwise(hits)),
        # Over the same questions, lost less won is the hits before less those after.
        largest_net=max(totals) - min(totals),
        differences={
            metric: _differences([each[:, number] for each in kept])
            for number, metric in enumerate(metrics)
        },
        totals={
            metric: [float(each[:, number].sum()) for each in kept]
            for number, metric in enumerate(metrics)
        },
    )


def _differences(rounds: Sequence[Floats]) -> list[tuple[float, int]]:
    """Count the distinct differences between rounds that follow each other, ascending."""
    total: dict[float, int] = {}
    for before, after in itertools.pairwise(rounds):
        # Adding zero makes one value of 0.0 and -0.0.
        values, counts = np.unique(np.round(after - before, DIGITS) + 0.0, return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            total[value] = total.get(value, 0) + count
    return sorted(total.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What was measured: by a run, or by a calibration.

    `settings` are a run's, with the keys strategy, corpus and embedding; `corpus` is the corpus's
    fingerprint. `version`: the golden version's id.
    """

    k: int
    level: str
    relevance_threshold: int
    convention: str
    settings: Mapping[str, Any]
    corpus: Mapping[str, Any]
    version: int

    @property
    def by_vector(self) -> bool:
        """Whether vectors are compared."""
        return any(search["kind"] == "vector" for search in self._searches())

    @property
    def by_index(self) -> bool:
        """Whether an approximate index may answer, where there is one."""
        return any(
            search["kind"] == "vector" and not search["exact"] for search in self._searches()
        )

    def _searches(self) -> list[Mapping[str, Any]]:
        """Return the settings of the strategies that ask no other: it, or what is below it."""
        found = [self.settings["strategy"]]
        while any("parts" in each for each in found):
            found = [low for each in found for low in each.get("parts", {"": each}).values()]
        return found


def applies(
    calibration: Conditions, run: Conditions, reference: Mapping[str, Any], *, reindexed: bool
) -> bool:
    """Say whether a calibration tells the noise between a run and its reference.

    `reference` is the corpus's fingerprint at the reference. The calibration must have measured
    what the run measured, with the same settings, by an index with the same options. One whose
    index was not rebuilt (`reindexed` False) saw none of the noise of a rebuild, so that it tells
    nothing across one.
    """
    if other_conditions(calibration, run):
        return False
    return reindexed or not run.by_index or same_index(run.corpus, reference)


def same_index(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Say of two fingerprints whether one build of the index served both, or none did."""
    return _file(now) == _file(before)


def untouched(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Say of two fingerprints whether the index was neither rebuilt nor written to in between.

    As far as the index's file and the vectors' hash tell: rows that were deleted and inserted again
    change neither. False where that is not known, as those of a very large corpus are not hashed.
    """
    known = now["vectors"] is not None
    return known and now["vectors"] == before["vectors"] and same_index(now, before)


def other_conditions(calibration: Conditions, run: Conditions) -> list[str]:
    """Say what makes the calibration one of something else, each in a few words."""
    named = {
        "k": (calibration.k, run.k),
        "level": (calibration.level, run.level),
        "relevance threshold": (calibration.relevance_threshold, run.relevance_threshold),
        "metric convention": (calibration.convention, run.convention),
        "strategy settings": (calibration.settings["strategy"], run.settings["strategy"]),
        "corpus table": (_table(calibration), _table(run)),
    }
    if run.by_vector:
        named["embedding model"] = (_vectors(calibration), _vectors(run))
    if run.by_index:
        named["index options"] = (_options(calibration), _options(run))
    return [f"other {name}" for name, (then, now) in named.items() if then != now]


def staleness(calibration: Conditions, run: Conditions) -> list[str]:
    """Say why the calibration may not hold any more, each in a few words; empty: it is fresh.

    Those of `other_conditions` keep it from being used. The others do not: the corpus has 20 %
    more or fewer chunks, or the golden set is another version.
    """
    said = other_conditions(calibration, run)
    then, now = calibration.corpus["chunks"], run.corpus["chunks"]
    if now != then and abs(now - then) >= MOST_GROWTH * then:
        said.append(f"corpus had {then:,} chunks, now {now:,}")
    if calibration.version != run.version:
        said.append("golden set changed")
    return said


def _table(conditions: Conditions) -> dict[str, Any]:
    corpus = conditions.settings["corpus"]
    return {name: value for name, value in corpus.items() if name not in _NOT_SEARCHED}


def _vectors(conditions: Conditions) -> list[Any]:
    return [conditions.settings["embedding"][name] for name in _SOURCE_OF_VECTORS]


def _options(conditions: Conditions) -> str | None:
    index = conditions.corpus.get("index")
    return None if index is None else index_options(index)


def _file(corpus: Mapping[str, Any]) -> str | None:
    index = corpus.get("index")
    return None if index is None else index["file"]
