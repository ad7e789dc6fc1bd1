"""What the noise rules weigh: hits where recall is no more, else the metric itself."""

import pytest

from pipeline.verdict.compare import Change
from pipeline.verdict.loss import Loss, loss_of

RECALL = Change("recall@5", 0.75, 0.875)


@pytest.mark.parametrize(
    ("changes", "loss"),
    [
        ([RECALL, Change("hit@5", 0.75, 0.875)], Loss("hit@5", 5, 100, 7, 2)),
        ([RECALL, Change("hit@5", 0.75, 0.9)], Loss("recall@5", 12.5, 100, 7, 2)),
        ([RECALL], Loss("recall@5", 12.5, 100, 7, 2)),
        ([], Loss("hit@5", 5, 100, 7, 2)),
    ],
)
def test_recall_is_counted_as_hits_where_it_is_no_more(changes: list[Change], loss: Loss) -> None:
    assert loss_of("recall@5", changes, shared=100, lost=7, won=2) == loss


def test_a_loss_is_said_in_whole_questions_or_in_their_worth() -> None:
    assert Loss("hit@5", 5, 100, 7, 2).words == "net 5 of 100 questions lost (7 lost, 2 won)"
    assert Loss("hit@5", -1, 100, 1, 2).words == "net 1 of 100 questions won (1 lost, 2 won)"
    assert Loss("recall@5", 4.25, 100, 2, 1).words == (
        "4.2 of 100 questions' worth of recall@5 lost (hits: 2 lost, 1 won)"
    )
    assert Loss("hit@5", 0, 100, 0, 0).words == "none of 100 questions lost or won"
