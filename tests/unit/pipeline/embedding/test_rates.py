import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedding.rates import PERIOD, Buckets, Rate

LIMITS = st.integers(1, 5000)
FOR_EVER = math.inf


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def most_in_a_minute(sent: Sequence[tuple[float, float]]) -> float:
    """Return the most that any minute saw of what went out: (time, cost) pairs."""
    return max(
        sum(cost for at, cost in sent if start <= at < start + PERIOD - 1e-6) for start, _ in sent
    )


@given(LIMITS, st.lists(st.tuples(st.floats(0, 30), st.floats(0, 1)), min_size=1, max_size=60))
def test_no_minute_sees_more_than_the_limit(limit: int, asked: list[tuple[float, float]]) -> None:
    rate, clock, sent = Rate.of(limit), Clock(), []
    buckets = Buckets([rate], clock)
    for pause, share in asked:
        clock.now += pause
        cost = max(1, math.floor(share * rate.burst))
        sent.append((clock.now + buckets.book([cost], FOR_EVER), cost))

    assert most_in_a_minute(sent) <= limit


@given(LIMITS, st.integers(1, 300))
def test_whoever_asks_without_end_gets_the_limit_but_for_a_tenth(limit: int, n: int) -> None:
    buckets = Buckets([Rate.of(limit)], Clock())
    waits = [buckets.book([1], FOR_EVER) for _ in range(n)]

    assert waits == sorted(waits)
    assert waits[-1] <= PERIOD * n / (0.9 * limit)


@given(LIMITS, LIMITS, st.lists(st.integers(0, 500), min_size=1, max_size=30))
def test_two_limits_are_kept_both(requests: int, tokens: int, costs: list[int]) -> None:
    rates = [Rate.of(requests), Rate.of(tokens)]
    buckets = Buckets(rates, Clock())
    sent = [(buckets.book([1, cost], FOR_EVER), cost) for cost in costs]

    assert most_in_a_minute([(at, 1) for at, _ in sent]) <= requests
    if max(costs) <= rates[1].burst:
        assert most_in_a_minute(sent) <= tokens


def test_a_tenth_goes_at_once_and_the_rest_evenly() -> None:
    buckets = Buckets([Rate.of(60)], Clock())

    waits = [buckets.book([1], FOR_EVER) for _ in range(9)]

    assert waits[:6] == [0] * 6
    assert waits[6:] == pytest.approx([60 / 55, 120 / 55, 180 / 55])


def test_a_request_above_the_burst_waits_for_all_of_it_and_makes_the_next_wait() -> None:
    clock = Clock()
    buckets = Buckets([Rate.of(100)], clock)

    assert buckets.book([50], FOR_EVER) == 0
    assert buckets.book([1], FOR_EVER) == pytest.approx((50 - 9) * 60 / 91)


def test_what_would_wait_too_long_is_not_booked() -> None:
    clock = Clock()
    buckets = Buckets([Rate.of(1)], clock)
    buckets.book([1], 0)

    assert [buckets.book([1], 59.0) for _ in range(3)] == [60.0] * 3
    clock.now += 30
    assert buckets.book([1], 59.0) == 30.0


def test_what_was_not_used_is_given_back_and_what_was_used_more_is_taken() -> None:
    buckets = Buckets([Rate.of(1000)], Clock())
    interval = 60 / 901
    buckets.book([100], 0)

    buckets.correct(0, -60)
    assert buckets.book([60], 0) == 0
    buckets.correct(0, 40)
    assert buckets.book([1], FOR_EVER) == pytest.approx(41 * interval)
