import pytest

from pipeline.embedding.cache import Breaker, connect
from pipeline.errors import SettingsError


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_breaker_holds_calls_back_for_its_pause_and_then_lets_one_try() -> None:
    clock = Clock()
    breaker = Breaker(30, clock)

    def lets_through(now: float) -> bool:
        clock.now = now
        return breaker.lets_through

    assert lets_through(0)
    breaker.failed()
    assert [lets_through(now) for now in (0, 29.9, 30)] == [False, False, True]
    breaker.failed()
    assert [lets_through(now) for now in (31, 59.9, 60)] == [False, False, True]
    breaker.succeeded()
    assert lets_through(60)


def test_a_breaker_tells_the_first_fault_of_an_outage_from_the_next_ones() -> None:
    breaker = Breaker(30, Clock())

    assert breaker.failed()
    assert not breaker.failed()
    breaker.succeeded()
    assert breaker.failed()


@pytest.mark.parametrize("url", ["localhost", "http://localhost", "redis://localhost:port"])
def test_what_is_no_redis_url_is_refused_by_the_name_of_its_variable(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^REDIS_URL cannot be used: "):
        connect(url)
