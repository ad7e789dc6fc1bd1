import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedding.base import PaidInVainError
from pipeline.errors import PermanentError, TransientError
from workers.retrying import LONGEST, asks_patience, wait_before_posting, wait_before_retry


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (100, 60), (32_767, 60)],
)
def test_the_wait_doubles_up_to_the_longest(attempt: int, seconds: float) -> None:
    assert wait_before_retry(RuntimeError(), attempt=attempt) == seconds


@pytest.mark.parametrize(("asked", "seconds"), [(47.0, 47), (600.0, 600), (0.5, 2), (None, 2)])
def test_a_server_that_asks_for_more_patience_gets_it(asked: float | None, seconds: float) -> None:
    assert wait_before_retry(TransientError("429", retry_after=asked), attempt=1) == seconds


@pytest.mark.parametrize(
    ("error", "asks"),
    [
        (TransientError("429", retry_after=0.0), True),
        (TransientError("503"), False),
        (PaidInVainError("429", retry_after=30.0), False),
        (PermanentError("401"), False),
        (RuntimeError(), False),
    ],
)
def test_a_wait_that_a_server_asks_for_is_no_attempt_unless_trying_again_pays_again(
    error: Exception, asks: bool
) -> None:
    assert asks_patience(error) is asks


@given(attempt=st.integers(1, 32_766))
def test_no_wait_of_ours_shrinks_or_is_longer_than_the_longest(attempt: int) -> None:
    this, following = (
        wait_before_retry(ValueError(), attempt=number) for number in (attempt, attempt + 1)
    )

    assert 0 < this <= following <= LONGEST


@pytest.mark.parametrize(
    ("asked", "attempt", "seconds"),
    [
        *[(None, 1, 60), (None, 2, 120), (None, 3, 240), (None, 6, 1920), (None, 7, 3600)],
        *[(None, 32_767, 3600), (30.0, 1, 60), (90.0, 1, 90), (86_400.0, 7, 86_400)],
    ],
)
def test_an_alert_waits_from_a_minute_to_an_hour_or_as_long_as_was_asked(
    asked: float | None, attempt: int, seconds: float
) -> None:
    assert wait_before_posting(asked, attempt=attempt) == seconds
