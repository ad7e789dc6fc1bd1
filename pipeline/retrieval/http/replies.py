"""Read rankings out of a server's JSON."""

import sys
from collections.abc import Sequence
from typing import Any

from pipeline.retrieval.expressions import ExpressionError, apply
from pipeline.retrieval.strategies.http import HttpStrategy
from pipeline.text import is_storable
from pipeline.types import Failure, Ranking


def rankings(
    reply: object, strategy: HttpStrategy, questions: int, limit: int
) -> list[Ranking | Failure]:
    """Return each question's ranking out of one reply, at most `limit` results of each.

    A reply without what the expressions look for is a Failure of all its questions; a result
    without, of its own.
    """
    try:
        found = apply(strategy.results, reply)
    except ExpressionError as error:
        return [Failure(f"the reply cannot be read: {error}")] * questions
    each = [found] if strategy.batch == 1 else found
    if not isinstance(each, list):
        return [Failure(f"the reply has no list at {strategy.results}")] * questions
    if len(each) != questions:
        said = f"the reply has {len(each)} lists of results at {strategy.results}, not {questions}"
        return [Failure(said)] * questions
    return [_ranking(results, strategy, limit) for results in each]


def _ranking(results: object, strategy: HttpStrategy, limit: int) -> Ranking | Failure:
    if not isinstance(results, list):
        return Failure(f"the reply has no list of results at {strategy.results}")
    try:
        keys = [_key(result, strategy.key) for result in results[:limit]]
        return Ranking(keys, _scores(results[:limit], strategy.score))
    except ExpressionError as error:
        return Failure(f"the reply cannot be read: {error}")


def _key(result: object, expression: str) -> str:
    key = apply(expression, result)
    if isinstance(key, bool) or not isinstance(key, str | int) or key == "":
        raise ExpressionError(f"a result has no key at {expression}")
    if not is_storable(str(key)):
        raise ExpressionError(f"a result's key at {expression} holds what no text may")
    return str(key)


def _scores(results: Sequence[object], expression: str) -> list[float]:
    """Return the scores; where no result has one, that of the n-th is 1 / n."""
    found = [apply(expression, result) for result in results]
    if all(score is None for score in found):
        return [1 / rank for rank in range(1, len(found) + 1)]
    return [_number(score, expression) for score in found]


def _number(score: Any, expression: str) -> float:  # noqa: ANN401 - any JSON
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    # An integer of JSON may be larger than any float.
    if not (is_number and abs(score) <= sys.float_info.max):
        raise ExpressionError(f"a result has no number as score at {expression}")
    return float(score)
