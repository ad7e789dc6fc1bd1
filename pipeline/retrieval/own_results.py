"""Read what the owner's own Python returned: a ranking, in one of the forms that people use."""

import math
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from pipeline.text import is_storable
from pipeline.types import Ranking


class UnreadableError(ValueError):
    """What was returned is no list of results; the message completes "returned ..."."""


def ranking(results: object, limit: int) -> Ranking:
    """Return the ranking of a list of results, best first; those behind `limit` are cut.

    A result is a key, a pair of key and score, or a mapping or an object with `key` and, perhaps,
    `score`. Where none has a score, that of the n-th is 1 / n. Raises UnreadableError, and what
    reading the results raises, as a generator does.
    """
    pairs = [_pair(result) for result in listed(results, limit)]
    keys, scores = [key for key, _ in pairs], [score for _, score in pairs]
    if all(score is None for score in scores):
        return Ranking(keys, [1 / rank for rank in range(1, len(keys) + 1)])
    known = [score for score in scores if score is not None]
    if len(known) < len(scores):
        raise UnreadableError("a score for some of the results only")
    return Ranking(keys, known)


def listed(results: object, limit: int | None = None) -> list[Any]:
    """Return a list of what is one, or can be gone through; at most the first `limit`.

    Raises UnreadableError.
    """
    if isinstance(results, str | bytes | Mapping) or not isinstance(results, Iterable):
        raise UnreadableError(f"{type(results).__name__}, not a list of results")
    return list(islice(results, limit))


def _pair(result: Any) -> tuple[str, float | None]:  # noqa: ANN401 - whatever was returned
    """Return key and score of a result: a key, a pair, a mapping or an object with both."""
    key: object
    score: Any
    match result:
        case str():
            key, score = result, None
        case (_, _):
            key, score = result
        case Mapping():
            key, score = result.get("key"), result.get("score")
        case _:
            key, score = getattr(result, "key", None), getattr(result, "score", None)
    if isinstance(key, str) and not is_storable(key):
        raise UnreadableError("a key that holds what no text may")
    if not isinstance(key, str) or not key:
        raise UnreadableError(
            f"{type(result).__name__} as a result: a key (text), a pair of key and score, or"
            " something with key and score is expected"
        )
    return key, None if score is None else _number(score, key)


def _number(score: Any, key: str) -> float:  # noqa: ANN401 - whatever was returned
    try:
        number = float(score)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise UnreadableError(f"a score that is no number, for {key}")
    return number
