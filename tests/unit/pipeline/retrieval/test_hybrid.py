"""What a hybrid asks of its arms and makes of their answers."""

from dataclasses import replace

import pytest

from pipeline.retrieval.fusion import Formula, fuse
from pipeline.retrieval.hybrid import Arm, HybridRetriever
from pipeline.types import Failure, Ranking
from tests.unit.pipeline.retrieval.fakes import FakeRetriever, batch_of

FIRST = Ranking(keys=["a:1", "b:1", "c:1"], scores=[0.9, 0.8, 0.7])
SECOND = Ranking(keys=["c:1", "d:1"], scores=[12.0, 3.0])
EMPTY = Ranking(keys=[], scores=[])
RRF = Formula()


def hybrid(*arms: FakeRetriever, formula: Formula = RRF, depth: int = 50) -> HybridRetriever:
    named = [Arm(f"arm{n}", float(n), arm) for n, arm in enumerate(arms, start=1)]
    return HybridRetriever(named, formula=formula, depth=depth)


@pytest.mark.parametrize("formula", [Formula(rrf_k=7), Formula("weighted", normalize="z_score")])
def test_each_questions_rankings_are_fused_with_the_arms_weights(formula: Formula) -> None:
    arms = FakeRetriever([FIRST, EMPTY]), FakeRetriever([SECOND, SECOND])
    retriever = hybrid(*arms, formula=formula)
    both, one = retriever.retrieve(batch_of(2), 3)
    for answer, found in ((both, [FIRST, SECOND]), (one, [EMPTY, SECOND])):
        assert isinstance(answer, Ranking)
        assert replace(answer, stages={}) == fuse(found, [1.0, 2.0], formula, 3)
        assert answer.stages == dict(zip(("arm1", "arm2"), found, strict=True))


def test_the_stages_of_an_arm_are_named_after_it() -> None:
    inner = replace(FIRST, stages={"candidates": SECOND})
    [answer] = hybrid(FakeRetriever([inner])).retrieve(batch_of(1), 3)
    assert isinstance(answer, Ranking)
    assert answer.stages == {"arm1": FIRST, "arm1/candidates": SECOND}


@pytest.mark.parametrize(("limit", "asked"), [(5, 50), (50, 50), (80, 80)])
def test_the_arms_are_asked_for_the_depth_or_for_the_limit_where_that_is_more(
    limit: int, asked: int
) -> None:
    arms = FakeRetriever([FIRST]), FakeRetriever([SECOND])
    hybrid(*arms).retrieve(batch_of(1), limit)
    assert [arm.limits for arm in arms] == [[asked], [asked]]


def test_a_question_that_fails_in_one_arm_fails_and_names_it() -> None:
    arms = FakeRetriever([FIRST, FIRST]), FakeRetriever([Failure("too long"), SECOND])
    failed, fused = hybrid(*arms).retrieve(batch_of(2), 5)
    assert failed == Failure("arm2: too long")
    assert isinstance(fused, Ranking)


def test_nothing_found_in_any_arm_is_an_empty_ranking() -> None:
    [answer] = hybrid(FakeRetriever([EMPTY]), FakeRetriever([EMPTY])).retrieve(batch_of(1), 5)
    assert answer == Ranking([], [], {"arm1": EMPTY, "arm2": EMPTY})


@pytest.mark.parametrize("needs", [(False, False), (True, False), (False, True)])
def test_vectors_are_needed_where_an_arm_needs_them(needs: tuple[bool, bool]) -> None:
    arms = [FakeRetriever([], needs_vectors=one) for one in needs]
    assert hybrid(*arms).needs_vectors is any(needs)
