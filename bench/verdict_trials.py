"""Pairs of runs of one thing, simulated or real, on which `bench.verdicts` tries the rules. Pure.

A trial is two measurements of the same thing, and rounds of further ones to calibrate on: two
rounds that follow each other are an A/A pair, as in `pipeline.verdict.calibration`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

ROUNDS = 13
"""To calibrate on: 12 A/A pairs. A rule that uses fewer takes the first."""

MEASUREMENTS = 2 + ROUNDS

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Trials:
    """Pairs of runs over n questions, one a trial.

    `lost`, `won`, and `hits` of the second run: shape (trials,). `flips`: questions that changed
    from round to round, shape (trials, ROUNDS - 1); `totals`: hits of each round, (trials, ROUNDS).
    `missed`: what exact search hits and the first run does not, (trials,), `found_more` what it
    hits and exact search does not; None: not known.
    """

    n: int
    lost: Counts
    won: Counts
    hits: Counts
    flips: Counts
    totals: Counts
    missed: Counts | None = None
    found_more: Counts | None = None


@dataclass(frozen=True, slots=True)
class Noise:
    """What happens to the questions of a system that does not change.

    `flip_rate`: how often a question is lost from one measurement to the next, and how often won.
    `spread`: the standard deviation of each measurement's own rates, as a share of their mean.
    """

    flip_rate: float
    spread: float = 0.0


def simulate(share: float, n: int, what: Noise, trials: int, random: np.random.Generator) -> Trials:
    """Draw n questions with replacement, a `share` of which are hits, and measure them with noise.

    Each measurement turns some hits to misses and some misses to hits, at such rates that between
    two of them a question is lost with `flip_rate` and won with `flip_rate`: the trinomial of
    `pipeline.verdict.noise`. Questions of a kind are alike, so that they are counted: how many a
    measurement turns is binomial, how many of them its neighbour turns too is hypergeometric.
    """
    hits = random.binomial(n, share, size=trials)
    down = _turned(hits, what, share, random)
    up = _turned(n - hits, what, 1 - share, random)
    totals = hits[:, None] - down.turned + up.turned
    return Trials(
        n=n,
        lost=down.now_only[:, 0] + up.before_only[:, 0],
        won=up.now_only[:, 0] + down.before_only[:, 0],
        hits=totals[:, 1],
        flips=(down.now_only + down.before_only + up.now_only + up.before_only)[:, 2:],
        totals=totals[:, 2:],
    )


@dataclass(frozen=True, slots=True)
class _Turned:
    """How many questions of one kind each measurement turns, shape (trials, MEASUREMENTS).

    And from each to the next: how many only the one before turned, how many only the one now;
    shape (trials, MEASUREMENTS - 1).
    """

    turned: Counts
    before_only: Counts
    now_only: Counts


def _turned(questions: Counts, what: Noise, share: float, random: np.random.Generator) -> _Turned:
    """Draw what the measurements turn of questions of one kind, `share` of all questions.

    A rate r gives 2 r (1 - r) turns between measurements; of all questions they are `flip_rate`.
    """
    rate = (1 - math.sqrt(1 - 2 * what.flip_rate / share)) / 2
    shape = (len(questions), MEASUREMENTS)
    turned = random.binomial(questions[:, None], _rates(rate, what.spread, shape, random))
    before, now = turned[:, :-1], turned[:, 1:]
    both = random.hypergeometric(now, questions[:, None] - now, before)
    return _Turned(turned, before - both, now - both)


def _rates(
    mean: float, spread: float, shape: tuple[int, ...], random: np.random.Generator
) -> Floats:
    """Draw rates from the beta distribution with that mean, and `spread` times it as deviation."""
    if not spread or not mean:
        return np.full(shape, mean)
    size = (1 - mean) / (mean * spread**2) - 1
    return random.beta(mean * size, (1 - mean) * size, size=shape)


def draw(hits: Bools, exact: Bools, n: int, trials: int, random: np.random.Generator) -> Trials:
    """Draw trials from real measurements of one thing, each over n of its questions.

    `hits`: shape (measurements, questions), of at least MEASUREMENTS and n; no measurement comes
    twice in a trial. `exact`: the hits of exact search, shape (questions,).
    """
    lost, won, second, missed, more = (np.empty(trials, dtype=np.int64) for _ in range(5))
    flips = np.empty((trials, ROUNDS - 1), dtype=np.int64)
    totals = np.empty((trials, ROUNDS), dtype=np.int64)
    for trial in range(trials):
        chosen = random.permutation(len(hits))[:MEASUREMENTS]
        asked = random.permutation(hits.shape[1])[:n]
        (first, then), rounds = np.split(hits[np.ix_(chosen, asked)], [2])
        lost[trial], won[trial] = (first & ~then).sum(), (then & ~first).sum()
        second[trial], missed[trial] = then.sum(), (exact[asked] & ~first).sum()
        more[trial] = (first & ~exact[asked]).sum()
        flips[trial] = (rounds[1:] != rounds[:-1]).sum(axis=1)
        totals[trial] = rounds.sum(axis=1)
    return Trials(n, lost, won, second, flips, totals, missed, more)


def plant(trials: Trials, drop: float, random: np.random.Generator) -> Trials:
    """Take `drop` (a share) of the n questions from the hits of the second run, at random.

    A half question is taken in half of the trials. A hit just won is won no more; any other is
    lost.
    """
    wanted = np.floor(drop * trials.n + random.random(len(trials.lost)) + _ROUNDING)
    taken = np.minimum(wanted.astype(np.int64), trials.hits)
    unwon = random.hypergeometric(trials.won, trials.hits - trials.won, taken)
    return replace(
        trials,
        lost=trials.lost + taken - unwon,
        won=trials.won - unwon,
        hits=trials.hits - taken,
    )


def dispersion(hits: Bools) -> tuple[float, float]:
    """Return the flip rate over all pairs of measurements, and how much more the net moves.

    `hits`: shape (measurements, questions). The second is the mean square of net over what
    independent flips would give (as many as questions flipped): 1 where questions flip alone, or
    where none does.
    """
    values = hits.astype(np.int64)
    sums = values.sum(axis=1)
    pairs = np.triu_indices(len(values), 1)
    flipped = (sums[:, None] + sums[None, :] - 2 * values @ values.T)[pairs]
    squares = np.square(sums[:, None] - sums[None, :])[pairs]
    rate = float(flipped.mean()) / (2 * hits.shape[1])
    return rate, float(squares.mean() / flipped.mean()) if rate else 1.0
