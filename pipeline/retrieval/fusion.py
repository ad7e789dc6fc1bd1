"""Fusion: one ranking out of several, by their ranks or by their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from pipeline.types import Ranking

Floats = NDArray[np.float64]

Method = Literal["rrf", "weighted"]
Normalize = Literal["min_max", "z_score", "none"]


@dataclass(frozen=True, slots=True)
class Formula:
    """What a ranking adds to the score of a key that it holds, times the ranking's weight.

    `rrf`: 1 / (rrf_k + rank), rank from 1. `weighted`: the key's score there, once all scores of
    that ranking are brought to one scale. `min_max`: from 0, its lowest, to 1, its highest; all 1
    where they are equal. `z_score`: less their mean, over their standard deviation; all 0 where
    they are equal. `none`: as they are.

    A key that a ranking lacks gets 0 of it, with `z_score` what its lowest gets: 0 would be the
    mean of those that it holds.

    Sources: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods", SIGIR 2009 (weights 1, rrf_k 60); Fox, Shaw, "Combination of
    Multiple Searches", TREC-2 1994 (CombSUM); Montague, Aslam, "Relevance Score Normalization for
    Metasearch", CIKM 2001 (the scales).
    """

    method: Method = "rrf"
    rrf_k: int = 60
    normalize: Normalize = "min_max"


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """All keys that some rankings of one question hold, ascending, and where each holds them.

    `ranks` and `scores` have the shape (rankings, keys): ranks from 1, infinite where a ranking
    lacks a key; its score is NaN there. One that holds a key twice counts its first place.
    """

    keys: Sequence[str]
    ranks: Floats
    scores: Floats

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Self:
        """Put the rankings' keys together."""
        keys = sorted({key for ranking in rankings for key in ranking.keys})
        column = {key: number for number, key in enumerate(keys)}
        ranks = np.full((len(rankings), len(keys)), np.inf)
        scores = np.full(ranks.shape, np.nan)
        for row, ranking in enumerate(rankings):
            # From the last on, so that a key's first place is what stays.
            columns = [column[key] for key in reversed(ranking.keys)]
            ranks[row, columns] = np.arange(len(columns), 0, -1)
            scores[row, columns] = ranking.scores[::-1]
        return cls(keys, ranks, scores)

    def fused(self, formula: Formula, weights: Floats) -> Floats:
        """Return each key's score under many weightings, of the shape (weightings, keys).

        `weights` has the shape (weightings, rankings). What the rankings add is summed from the
        smallest on, so that their order does not matter. Raises ValueError where a ranking has no
        weight.
        """
        if weights.shape[1] != len(self.ranks):
            raise ValueError(f"{len(self.ranks)} rankings have {weights.shape[1]} weights")
        if formula.method == "rrf":
            added = weights.T[:, :, None] / (formula.rrf_k + self.ranks)[:, None, :]
        else:
            added = weights.T[:, :, None] * self._on_one_scale(formula.normalize)[:, None, :]
        added.sort(axis=0)
        total = np.zeros(added.shape[1:])
        for each in added:
            total += each
        return total

    def _on_one_scale(self, normalize: Normalize) -> Floats:
        """Return the scores as they are added, with what a ranking gives to keys that it lacks."""
        scaled = np.zeros(self.scores.shape)
        for row, scores in enumerate(self.scores):
            held = ~np.isnan(scores)
            if held.any():
                own, of_others = _scaled(scores[held], normalize)
                scaled[row] = of_others
                scaled[row, held] = own
        return scaled


def fuse(
    rankings: Sequence[Ranking], weights: Sequence[float], formula: Formula, limit: int
) -> Ranking:
    """Fuse rankings by a formula, with a weight each; at most `limit` keys are returned.

    Ties are ordered by key; the order of the rankings does not matter.
    """
    pool = Pool.of(rankings)
    [scores] = pool.fused(formula, np.array([weights]).reshape(1, -1))
    [best] = best_first(scores[None], limit)
    return Ranking([pool.keys[number] for number in best], scores[best].tolist())


def best_first(scores: Floats, limit: int) -> NDArray[np.intp]:
    """Return, row by row, the columns of the `limit` highest scores, the highest first.

    Of equal ones the first column comes first.
    """
    order: NDArray[np.intp] = np.argsort(-scores, axis=1, kind="stable")[:, :limit]
    return order


def _scaled(scores: Floats, normalize: Normalize) -> tuple[Floats, float]:
    """Return the scores on their new scale, and what a key gets that is not among them."""
    if normalize == "none":
        return scores, 0.0
    spread = np.ptp(scores)
    if normalize == "min_max":
        return ((scores - scores.min()) / spread if spread else np.ones(scores.shape)), 0.0
    # The deviation of equal scores is not always 0, for their mean is rounded; nor that of
    # different ones above it, where their squares are too small for a number.
    deviation = scores.std() if spread else 0.0
    standard = (scores - scores.mean()) / deviation if deviation else np.zeros(scores.shape)
    return standard, float(standard.min())
