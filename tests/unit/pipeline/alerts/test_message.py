import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from pipeline.alerts.message import Alert, Severity
from pipeline.verdict.compare import Change
from pipeline.verdict.gate import Rule
from tests.unit.pipeline.alerts.examples import BLIND, NOISE, any_alert, regressed, stale


@settings(max_examples=50, deadline=None)
@given(any_alert)
def test_an_alert_comes_back_from_json_as_it_was(alert: Alert) -> None:
    assert Alert.from_json(json.loads(json.dumps(alert.to_json()))) == alert


def test_a_row_from_before_a_field_came_can_still_be_read() -> None:
    values = stale().to_json()
    for name in ("git_sha", "link", "cause", "findings", "exact", "ef_search", "setup"):
        del values[name]

    assert Alert.from_json(values) == stale()


def test_json_gives_the_difference_of_each_metric() -> None:
    first = regressed().to_json()["changes"][0]

    assert first == {
        "metric": "recall@5",
        "current": 0.88,
        "previous": 0.91,
        "interval": (-0.06, -0.001),
        "p": 0.0125,
        "difference": pytest.approx(-0.03),
    }


def test_a_change_of_before_intervals_can_still_be_read() -> None:
    values = regressed().to_json()
    for change in values["changes"]:
        del change["interval"], change["p"]

    assert Alert.from_json(values).changes[0] == Change("recall@5", current=0.88, previous=0.91)


@pytest.mark.parametrize(
    "wrong",
    [
        {"idempotency_id": ""},
        {"idempotency_id": "a\r\nX-Other: b"},
        {"idempotency_id": "-a"},
        {"idempotency_id": "a" * 201},
        {"created_at": "2026-03-02T06:00:00"},
        {"created_at": "Monday"},
        {"repeat": 0},
        {"link": "javascript:alert(1)"},
        {"link": "https://example.org/\r\nx"},
    ],
)
def test_what_would_break_a_channel_is_refused_when_the_alert_is_made(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match=r"idempotency|created_at|isoformat|repeat|link"):
        regressed(**wrong)


def test_what_made_the_verdict_is_told_from_what_stands_beside() -> None:
    shown = replace(NOISE, rule=Rule.THRESHOLD, counts=False)

    alert = regressed(findings=(shown, NOISE, BLIND))

    assert alert.spoke == [NOISE]
    assert alert.rules == {Rule.NOISE}
    assert stale().rules == set()


def test_severities_are_ordered() -> None:
    assert Severity.CRITICAL.reaches(Severity.WARNING)
    assert Severity.WARNING.reaches(Severity.WARNING)
    assert not Severity.INFO.reaches(Severity.WARNING)
