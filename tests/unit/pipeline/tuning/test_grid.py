import itertools

import pytest

from pipeline.retrieval.fusion import Formula
from pipeline.retrieval.strategies import HybridStrategy
from pipeline.tuning.grid import HybridSetting, grid

PRESENT = HybridSetting((1.0, 1.0), Formula(rrf_k=60), 50)


def test_the_present_settings_come_first_and_no_two_fuse_alike() -> None:
    tried = grid(PRESENT, 10)
    assert tried[0] is PRESENT
    assert not any(one.fuses_as(other) for one, other in itertools.combinations(tried, 2))


def test_depths_lie_between_what_a_result_takes_and_what_is_stored() -> None:
    assert {each.depth for each in grid(PRESENT, 10)} == {10, 20, 50}
    assert {each.depth for each in grid(PRESENT, 11)} == {20, 50}
    assert {each.depth for each in grid(HybridSetting((1.0, 1.0), Formula(), 35), 35)} == {35}


@pytest.mark.parametrize("arms", [2, 3, 4, 5, 6, 8])
def test_weights_are_all_proportions_in_equal_steps(arms: int) -> None:
    present = HybridSetting((1.0,) * arms, Formula(), 10)
    weights = {each.weights for each in grid(present, 10)}
    assert len(weights) >= 9
    for each in weights - {present.weights}:
        assert sum(each) == pytest.approx(1)
        assert min(each) > 0
    assert {tuple(reversed(each)) for each in weights} == weights


def test_the_present_formula_is_tried_with_other_weights_too() -> None:
    for formula in (Formula(rrf_k=33), Formula("weighted", normalize="none")):
        tried = grid(HybridSetting((1.0, 2.0), formula, 10), 10)
        assert sum(each.formula == formula for each in tried) == 10


def test_settings_that_a_formula_does_not_read_make_no_difference() -> None:
    by_rank = HybridStrategy(rrf_k=5, normalize="z_score")
    by_score = HybridStrategy(fusion="weighted", rrf_k=5, normalize="z_score")
    assert HybridSetting.of(by_rank, 50).formula == Formula(rrf_k=5)
    assert HybridSetting.of(by_score, 50).formula == Formula("weighted", normalize="z_score")


def test_weights_in_one_proportion_fuse_alike() -> None:
    half = HybridSetting((0.5, 0.5), Formula(rrf_k=60), 50)
    assert half.fuses_as(PRESENT)
    assert not HybridSetting((0.5, 0.6), Formula(rrf_k=60), 50).fuses_as(PRESENT)
    assert not HybridSetting((0.5, 0.5), Formula(rrf_k=60), 20).fuses_as(PRESENT)
    assert not HybridSetting((0.5, 0.5), Formula(rrf_k=61), 50).fuses_as(PRESENT)


def test_a_setting_is_written_short() -> None:
    assert str(PRESENT) == "1:1 rrf 60 depth 50"
    assert str(HybridSetting((0.1, 0.9), Formula("weighted"), 20)) == "0.1:0.9 min_max depth 20"
