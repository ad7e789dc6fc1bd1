from typing import Any

import pytest

from pipeline.errors import UsageError
from pipeline.settings import EvalSettings, Settings
from pipeline.types import Level, Trigger
from pipeline.verdict.settings import GateRules, GateSettings
from workers.enqueue import Request, gate_of, resolve

SETTINGS = Settings(
    eval=EvalSettings(set="faq", strategies=["hybrid", "vector"], k=7, level=Level.DOCUMENT),
    gate=GateSettings(max_drop=0.25),
)


def test_an_empty_request_takes_everything_from_the_settings() -> None:
    wanted = resolve(SETTINGS, Request())

    assert wanted.strategies == ["hybrid", "vector"]
    assert (wanted.set_name, wanted.k, wanted.level) == ("faq", 7, Level.DOCUMENT)
    assert (wanted.max_drop, wanted.trigger) == (None, Trigger.MANUAL)


def test_what_is_asked_for_comes_before_the_settings() -> None:
    request = Request(
        strategies=["fulltext"],
        set_name="default",
        k=1000,
        level="chunk",
        max_drop=0,
        trigger="reindex",
        requested_by="deploy 42",
        git_sha="abc",
    )

    wanted = resolve(SETTINGS, request)

    assert wanted.strategies == ["fulltext"]
    assert (wanted.set_name, wanted.k, wanted.level) == ("default", 1000, Level.CHUNK)
    assert (wanted.max_drop, wanted.trigger) == (0, Trigger.REINDEX)
    assert (wanted.requested_by, wanted.git_sha) == ("deploy 42", "abc")


def test_a_strategy_named_twice_is_evaluated_once() -> None:
    assert resolve(SETTINGS, Request(strategies=["vector", "hybrid", "vector"])).strategies == [
        "vector",
        "hybrid",
    ]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"strategies": ["vectr"]}, "unknown strategy 'vectr'; the strategies are: vector, "),
        ({"k": 0}, "k must be from 1 to 1000, not 0"),
        ({"k": -1}, "k must be from 1 to 1000, not -1"),
        ({"k": 10_000}, "k must be from 1 to 1000, not 10000"),
        ({"max_drop": -0.1}, "max_drop must be from 0 to 1, not -0.1"),
        ({"max_drop": 2}, "max_drop must be from 0 to 1, not 2"),
        ({"max_drop": float("nan")}, "max_drop must be from 0 to 1, not nan"),
        ({"level": "page"}, "level must be one of chunk, document, not 'page'"),
        ({"trigger": "cron"}, "trigger must be one of manual, schedule, reindex, ci, not 'cron'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(SETTINGS, Request(**request_))

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_the_gates_metrics_are_taken_at_the_runs_k() -> None:
    settings = Settings(gate=GateSettings(max_drop=0.25, floor={"recall": 0.5}))

    gate = gate_of(settings, resolve(settings, Request(k=7)), "vector")

    assert (gate.rule, gate.outcome, gate.max_drop) == ("noise", "recall@7", 0.25)
    assert (gate.metrics, gate.floor) == (["recall@7", "ndcg@7"], {"recall@7": 0.5})


def test_a_max_drop_that_is_asked_for_is_the_rule() -> None:
    gate = gate_of(SETTINGS, resolve(SETTINGS, Request(max_drop=0)), "vector")

    assert (gate.rule, gate.max_drop) == ("threshold", 0)


def test_a_strategy_may_have_rules_of_its_own() -> None:
    own = GateRules(rule="threshold", must_pass=False)
    settings = Settings(gate=GateSettings(max_drop=0.25, strategies={"hybrid": own}))
    wanted = resolve(settings, Request())

    hybrid, vector = (gate_of(settings, wanted, name) for name in ("hybrid", "vector"))

    assert (hybrid.rule, hybrid.must_pass, hybrid.max_drop) == ("threshold", False, 0.25)
    assert (vector.rule, vector.must_pass, vector.max_drop) == ("noise", True, 0.25)
