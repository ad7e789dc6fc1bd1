import time
from email.utils import formatdate

import pytest

from pipeline.providers.replies import asked_wait, in_one_line


def test_a_foreign_message_becomes_one_short_line_without_the_key() -> None:
    line = in_one_line("bad key sk-canary\n\n  " + "x" * 500, "sk-canary")

    assert line.startswith("bad key *** xxx")
    assert len(line) == 203


def test_a_foreign_message_can_be_stored_and_printed() -> None:
    line = in_one_line("a\x00b \x1b[31mred\u202e \ud800 sk-\x00canary\r\n\x85end", "sk-canary")

    assert line == "ab [31mred *** end"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1e300"}, 86_400.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "later"}, None),
    ],
)
def test_the_wait_that_headers_ask_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(headers) == seconds


def test_a_date_is_a_wait_from_now() -> None:
    wait = asked_wait({"retry-after": formatdate(time.time() + 60, usegmt=True)})

    assert wait == pytest.approx(60, abs=2)
