import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from pipeline.tuning.validation import cross_validate


@given(st.integers(1, 6), st.integers(4, 30), st.integers(2, 4), st.integers(0, 10**6))
def test_each_question_gets_what_is_best_on_the_other_folds(
    ways: int, questions: int, folds: int, seed: int
) -> None:
    """The folds show in the choice: with one's questions left out, its winner is the best."""
    values = np.random.default_rng(seed).random((ways, questions))
    found = cross_validate(values, folds, seed)
    assert len(found.folds) == folds
    dealt = np.random.default_rng(seed).permutation(np.arange(questions) % folds)
    for fold, winner in enumerate(found.folds):
        means = [
            np.mean([values[way, n] for n in range(questions) if dealt[n] != fold])
            for way in range(ways)
        ]
        assert means[winner] == pytest.approx(max(means))
        assert set(found.chosen[dealt == fold]) == {winner}


def test_what_is_best_by_luck_gains_nothing_on_questions_not_seen() -> None:
    """Two hundred ways that are all alike: the best of them looks better than the first."""
    rng = np.random.default_rng(1)
    leads, gains = [], []
    for seed in range(20):
        values = rng.integers(0, 2, (200, 200)).astype(float)
        found = cross_validate(values, 5, seed)
        unseen = values[found.chosen, np.arange(200)]
        leads.append(values[found.winner].mean() - 0.5)
        gains.append(unseen.mean() - 0.5)
    assert np.mean(leads) > 0.07
    assert abs(np.mean(gains)) < 0.02


def test_what_is_really_better_is_chosen_in_every_fold() -> None:
    values = np.random.default_rng(2).random((30, 400))
    values[17] += 0.3
    found = cross_validate(values, 5, 1)
    assert found.winner == 17
    assert found.folds == [17] * 5
    assert_array_equal(found.chosen, np.full(400, 17))


def test_of_equally_good_settings_the_first_is_kept() -> None:
    values = np.tile(np.random.default_rng(3).random(20), (4, 1))
    assert cross_validate(values, 4, 1).winner == 0


def test_another_seed_deals_other_folds() -> None:
    values = np.random.default_rng(4).random((50, 60))
    one, other = (cross_validate(values, 5, seed).chosen.tolist() for seed in (1, 2))
    assert one != other
    assert one == cross_validate(values, 5, 1).chosen.tolist()


@pytest.mark.parametrize(("questions", "folds"), [(3, 4), (10, 1), (0, 2)])
def test_folds_that_would_be_empty_are_refused(questions: int, folds: int) -> None:
    with pytest.raises(ValueError, match="cannot be dealt"):
        cross_validate(np.zeros((2, questions)), folds, 1)
