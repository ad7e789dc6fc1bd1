"""Settings of vector search that fit together, and those that are refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.retrieval.strategies import VectorStrategy


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"cast": "bit"}, 'cast = "bit" needs the distance hamming or jaccard'),
        ({"cast": "halfvec", "distance": "jaccard"}, 'jaccard compares bits: use cast = "bit"'),
        ({"where": " "}, "is blank"),
        ({"where": "a; DROP TABLE docs"}, "holds a semicolon"),
        ({"where": "true) OR (true"}, "closes a parenthesis that it does not open"),
        ({"where": "lower(name = 'x'"}, "opens a parenthesis that it does not close"),
        ({"where": "a = '\0'"}, "holds a NUL character"),
        ({"scan_mem_multiplier": 0.5}, "greater than or equal to 1"),
        ({"probes": 0}, "greater than or equal to 1"),
        ({"distance": "cosin"}, "should be 'cosine', 'inner_product', 'l2', 'l1', 'hamming'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        VectorStrategy.model_validate(settings)


@pytest.mark.parametrize(
    "where",
    [
        "published",
        "name = 'a;b)'",
        '"odd)name" = 1',
        "a = 1 -- as in the app :)",
        "(a OR b) AND /* ;) */ c",
        "doc ->> 'lang' = $$;)$$",
        "created > now() - interval '30 days'",
    ],
)
def test_quotes_and_comments_in_a_condition_may_hold_anything(where: str) -> None:
    assert VectorStrategy(where=where).where == where


def test_ef_search_is_raised_to_the_rows_asked_for_unless_told_otherwise() -> None:
    assert [VectorStrategy(ef_search=40).width(limit) for limit in (10, 100, 5000)] == [
        40, 100, 1000,
    ]  # fmt: skip
    assert VectorStrategy(ef_search=40, raise_ef_search=False).width(100) == 40


def test_tenants_are_the_questions_unless_they_are_ignored() -> None:
    assert VectorStrategy().whose(["a", None]) == ["a", None]
    assert VectorStrategy(tenant="ignore").whose(["a", None]) == [None, None]
