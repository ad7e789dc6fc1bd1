import time
from email.utils import formatdate

import pytest

from pipeline.alerts.http import asked_wait


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *[("30", 30.0), ("0", 0.0), ("1.5", 1.5), ("-5", 0.0), ("999999", 86_400.0)],
        *[("", None), ("soon", None), ("nan", None), ("inf", None)],
    ],
)
def test_seconds_of_retry_after(header: str, seconds: float | None) -> None:
    assert asked_wait({"retry-after": header}) == seconds


def test_no_retry_after() -> None:
    assert asked_wait({}) is None


def test_retry_after_may_be_a_date() -> None:
    date = formatdate(time.time() + 120, usegmt=True)

    assert asked_wait({"retry-after": date}) == pytest.approx(120, abs=5)


def test_a_date_that_has_passed_asks_for_no_wait() -> None:
    assert asked_wait({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
