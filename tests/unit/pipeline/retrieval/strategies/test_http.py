"""The settings of search over HTTP: checked before anything is asked."""

import pytest
from pydantic import ValidationError

from pipeline.retrieval.strategies import HttpStrategy, Strategy, VectorStrategy, variables_of

URL = "http://localhost/search"


def strategy(**settings: object) -> HttpStrategy:
    return HttpStrategy.model_validate({"url": URL} | settings)


@pytest.mark.parametrize(("settings", "said"), [
    ({"request": "{query: "}, "is no JMESPath expression: Invalid jmespath expression"),
    ({"key": "a b"}, "is no JMESPath expression"),
    ({"request": "{size: k}"}, "request reads neither question nor vector"),
    ({"request": "{q: question}", "batch": 5}, "request must read questions"),
    ({"request": "{q: questions[*].question, t: questions[*].tenant}", "batch": 5},
     "leaves out questions without a tenant"),
    ({"request": "{q: questions[*].question, t: questions[0].tenant}", "batch": 5},
     "reads one of the questions for all"),
    ({"url": "ftp://x/"}, "must be a URL that starts with https:// or http://"),
    ({"url": "http://user:pw@x/"}, "hold no user, password or query"),
    ({"headers": {"X Key": "A"}}, "is no name of a header"),
    ({"headers": {"X-Key": "sk-secret value"}}, "pattern"),
])  # fmt: skip
def test_a_wrong_setting_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        strategy(**settings)


@pytest.mark.parametrize(("request_", "needed"), [
    ("{q: question}", False), ("{q: vector}", True), ("{v: questions[*].vector}", True),
    ("{q: question, vector: `1`}", False),
])  # fmt: skip
def test_vectors_are_needed_where_the_request_reads_them(request_: str, needed: bool) -> None:
    batch = 2 if "questions" in request_ else 1
    assert strategy(request=request_, batch=batch).needs_vectors is needed


def test_the_variables_of_headers_are_known() -> None:
    strategies: dict[str, Strategy] = {
        "a": strategy(headers={"X-Key": "SEARCH_KEY"}),
        "b": VectorStrategy(),
    }
    assert variables_of(strategies) == ["SEARCH_KEY"]
