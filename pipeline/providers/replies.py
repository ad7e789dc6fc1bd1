"""What replies of every provider have in common: their waits, their words, their malformed ones."""

import math
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz

from pipeline.safe_text import MASK, clean

_LONGEST_QUOTE = 200
_ONE_DAY = 86_400.0


class MalformedReplyError(ValueError):
    """The server answered 200 with something else than what was asked for."""


def in_one_line(said: str, key: str) -> str:
    """Return a foreign message on one line, shortened, with the key blotted out.

    Without control characters and halves of surrogate pairs, which PostgreSQL does not store. They
    go first, as the key may be written with some in it.
    """
    line = " ".join(clean(said).replace(key, MASK).split())
    return line if len(line) <= _LONGEST_QUOTE else line[:_LONGEST_QUOTE] + "..."


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that retry-after-ms or Retry-After ask for; None: nothing legible.

    Retry-After holds seconds or a date (RFC 9110, 10.2.3). More than a day counts as a day.
    """
    for name, per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, "")) / per_second
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), _ONE_DAY)
    date = parsedate_tz(headers.get("retry-after", ""))
    return None if date is None else min(max(mktime_tz(date) - time.time(), 0.0), _ONE_DAY)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
