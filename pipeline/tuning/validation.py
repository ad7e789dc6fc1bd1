"""What choosing the best of many settings is worth on questions that had no part in the choice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Validated:
    """What K-fold cross-validation found.

    `winner` is the setting with the highest mean over all questions. `chosen` holds, of the shape
    (n,), the setting that each question was judged with: the best one over the other folds.
    `folds` are the winners of the folds.
    """

    winner: int
    chosen: NDArray[np.intp]
    folds: Sequence[int]


def cross_validate(values: Floats, folds: int, seed: int) -> Validated:
    """Choose the best setting without each fold of the questions, to be judged on that fold.

    `values` has the shape (settings, n). Questions are dealt out at random, as evenly as can be.
    Of settings that are equally good the first is chosen. Stone, "Cross-Validatory Choice and
    Assessment of Statistical Predictions", J. R. Stat. Soc. B 36(2), 1974.

    Raises ValueError for fewer than two folds, or fewer questions than folds.
    """
    questions = values.shape[1]
    if not 2 <= folds <= questions:  # noqa: PLR2004 - one fold leaves nothing to choose by
        raise ValueError(f"{questions} questions cannot be dealt into {folds} folds")
    fold = np.random.default_rng(seed).permutation(np.arange(questions) % folds)
    winners = [int(values[:, fold != one].mean(axis=1).argmax()) for one in range(folds)]
    return Validated(int(values.mean(axis=1).argmax()), np.array(winners)[fold], winners)
