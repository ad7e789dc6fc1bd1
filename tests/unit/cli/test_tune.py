"""What tuning a hybrid says, and the settings it gives to paste."""

import tomllib
from collections.abc import Mapping

import numpy as np
import pytest

from cli.context import Context
from cli.output import to_json
from cli.tune import record, show
from db.models import Run
from pipeline.experiment import Candidate, Experiment, compare
from pipeline.retrieval.fusion import Formula
from pipeline.retrieval.strategies import HybridStrategy
from pipeline.scoring import Measure
from pipeline.tuning.grid import HybridSetting
from pipeline.tuning.sweep import Conventions
from pipeline.types import Level
from workers.tuning import TUNED, Plan, Tuned

PRESENT = HybridSetting((1.0, 1.0), Formula(), 50)
BY_RANK = HybridSetting((0.25, 0.75), Formula(rrf_k=10), 20)
BY_SCORE = HybridSetting((0.1, 0.9), Formula("weighted", normalize="z_score"), 50)


def experiment(gain: float, name: str, n: int = 200) -> Experiment:
    """Return one in which `name` finds what the present settings miss for a share of questions."""
    before = np.zeros(n)
    after = (np.arange(n) < gain * n).astype(float)
    return compare([Candidate("present", {"ndcg@5": before}), Candidate(name, {"ndcg@5": after})])


def tuned(
    winner: HybridSetting, gain: float = 0.2, alone: Mapping[str, float] | None = None
) -> Tuned:
    conventions = Conventions(5, 5, Level.CHUNK, [Measure("ndcg", 5)], 1)
    plan = Plan(
        Run(id=12, strategy="both"), HybridStrategy(), [PRESENT, BY_RANK, BY_SCORE],
        conventions, folds=5, seed=1,
    )  # fmt: skip
    return Tuned(
        plan, experiment(gain, TUNED), experiment(gain, str(winner)),
        alone or {"vector": 0.0, "fulltext": 0.0}, winner, agreeing=3,
    )  # fmt: skip


def said(found: Tuned, capsys: pytest.CaptureFixture[str]) -> str:
    show(Context(), found)
    return capsys.readouterr().out


def pasted(text: str) -> HybridStrategy:
    """Return the strategy that the text says, from where its table begins."""
    table = tomllib.loads(text[text.index("[strategies.") :])["strategies"]["both"]
    return HybridStrategy.model_validate(table)


@pytest.mark.parametrize("winner", [BY_RANK, BY_SCORE])
def test_the_winner_is_given_as_settings_that_mean_it(
    winner: HybridSetting, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (said(tuned(winner), capsys), record(tuned(winner))["toml"]):
        strategy = pasted(text)
        assert HybridSetting.of(strategy, strategy.depth) == winner
        assert list(strategy.arms) == ["vector", "fulltext"]


def test_a_gain_on_questions_not_seen_pays(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(tuned(BY_SCORE), capsys)
    assert "tuning pays: on questions not seen it changes ndcg@5 +0.2000 (+0." in text
    assert "best over all questions: 0.1:0.9 z_score depth 50, also the choice of 3 of 5" in text
    assert "at another depth" not in text
    assert record(tuned(BY_SCORE))["above_luck"] is True


def test_a_gain_that_may_be_luck_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(tuned(BY_SCORE, gain=0.005), capsys)
    assert "within luck: on questions not seen tuning changes ndcg@5 +0.0050" in text
    assert "keep what you have" in text
    assert record(tuned(BY_SCORE, gain=0.005))["above_luck"] is False


def test_present_settings_that_are_the_best_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(tuned(PRESENT, gain=0), capsys)
    assert "keep the present settings: none of the 3 is better" in text
    assert "[strategies" not in text


def test_an_arm_that_needs_no_other_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    alone = {"vector": 0.1, "fulltext": 0.2}
    text = said(tuned(BY_SCORE, alone=alone), capsys)
    assert "fulltext alone is as good, with ndcg@5 0.2000: fusing adds nothing to it" in text
    assert "alone" not in said(tuned(BY_SCORE, alone={"vector": 0.1, "fulltext": 0.19}), capsys)


def test_another_depth_comes_with_a_caution(capsys: pytest.CaptureFixture[str]) -> None:
    assert "at another depth an index may find other things" in said(tuned(BY_RANK), capsys)


def test_the_record_holds_what_was_tried_and_found() -> None:
    found = record(tuned(BY_RANK))
    assert to_json(found)
    assert (found["run"], found["settings_tried"], found["folds"]) == (12, 3, 5)
    assert found["present"] == {
        "name": "1:1 rrf 60 depth 50",
        "arms": {"vector": 1.0, "fulltext": 1.0},
        "fusion": "rrf",
        "rrf_k": 60,
        "normalize": None,
        "depth": 50,
    }
    assert found["winner"]["chosen_in_folds"] == 3
    assert found["gain"]["best"] == TUNED
