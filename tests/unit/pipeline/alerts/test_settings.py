import tomllib
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.alerts.message import Severity
from pipeline.alerts.settings import AlertSettings, EmailSettings, SlackSettings, WebhookSettings
from pipeline.types import AlertKind
from pipeline.verdict.gate import Rule
from tests.unit.pipeline.alerts.examples import regressed

EMAIL = {
    "kind": "email",
    "host": "smtp.example.org",
    "sender": "recallwatch@example.org",
    "recipients": ["search@example.org"],
}


def load(text: str) -> AlertSettings:
    return AlertSettings.model_validate(tomllib.loads(text)["alerts"])


def test_channels_as_they_stand_in_the_file() -> None:
    found = load("""
        [alerts.channels.team]
        kind = "slack"
        on = ["regressed", "golden_stale"]

        [alerts.channels.pager]
        kind = "webhook"
        url_env = "PAGER_URL"
        min_severity = "critical"

        [alerts.channels.mail]
        kind = "email"
        host = "smtp.example.org"
        sender = "recallwatch@example.org"
        recipients = ["search@example.org", "on.call+rag@example.org"]
    """)

    team, pager, mail = found.channels.values()
    assert isinstance(team, SlackSettings)
    assert (team.url_env, team.on) == (
        "SLACK_WEBHOOK_URL",
        [AlertKind.REGRESSED, AlertKind.GOLDEN_STALE],
    )
    assert isinstance(pager, WebhookSettings)
    assert (pager.min_severity, pager.on) == (Severity.CRITICAL, list(AlertKind))
    assert isinstance(mail, EmailSettings)
    assert mail.security == "starttls"


def test_without_channels_nobody_is_told() -> None:
    assert AlertSettings().channels == {}


def test_the_rules_a_channel_may_name_are_those_that_lead_to_an_alert() -> None:
    rules = {Rule(name) for name in SlackSettings().rules}
    never = {Rule.BLIND_SPOT, Rule.INTERVAL, Rule.INDEX, Rule.MIN_SHARED, Rule.FIRST,
             Rule.CANCELLED}  # fmt: skip

    assert rules == set(Rule) - never


@pytest.mark.parametrize(
    "url", ["https://rw.example.org/runs/{run}", "http://[::1]:8080/?run={run}&x=%20#{run}"]
)
def test_a_run_is_linked_to_where_its_page_is_known(url: str) -> None:
    settings = AlertSettings(run_url=url)

    link = settings.link_to(41)

    assert link == url.replace("{run}", "41")
    assert regressed(link=link).link == link
    assert AlertSettings().link_to(41) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://rw.example.org/runs",
        "https://rw.example.org/{run}/{set}",
        "https://rw.example.org/{run",
        "ftp://rw.example.org/{run}",
        "https://rw.example.org/ {run}",
        "https://münchen.example.org/{run}",
        "{run}",
    ],
)
def test_a_page_that_could_not_be_a_link_is_refused(url: str) -> None:
    with pytest.raises(
        ValidationError, match=r"must be an http or https URL in ASCII with \{run\}"
    ):
        AlertSettings(run_url=url)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "slack", "url": "https://hooks.slack.com/services/T0/B0/canary"},
        {"kind": "slack", "url_env": "https://hooks.slack.com/services/T0/B0/canary"},
        {"kind": "slack", "on": ["improved"]},
        {"kind": "slack", "on": []},
        {"kind": "slack", "on": ["recovered"]},
        {"kind": "slack", "on": ["recovered", "golden_stale"]},
        {"kind": "slack", "rules": []},
        {"kind": "slack", "rules": ["first"]},
        {"kind": "slack", "min_severity": "high"},
        {"kind": "slack", "allow_host": "https://chat.example.org"},
        {"kind": "webhook"},
        {"kind": "pager"},
        {**EMAIL, "host": "a..b"},
        {**EMAIL, "security": "none"},
        {**EMAIL, "user": "recallwatch"},
        {**EMAIL, "password_env": "SMTP_PASSWORD"},
        {**EMAIL, "user": "jürgen", "password_env": "SMTP_PASSWORD"},
        {**EMAIL, "recipients": []},
        {**EMAIL, "recipients": ["a@example.org\r\nBcc: b@example.org"]},
        {**EMAIL, "recipients": ["Search <a@example.org>"]},
        {**EMAIL, "recipients": ["a@example.org, b@example.org"]},
        {**EMAIL, "sender": "a..b@example.org"},
        {**EMAIL, "sender": "a@"},
    ],
)
def test_a_channel_that_could_not_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        AlertSettings.model_validate({"channels": {"team": wrong}})

    (error,) = caught.value.errors()
    assert error["loc"][:2] == ("channels", "team")


def test_the_message_for_a_secret_in_the_wrong_place_does_not_quote_it() -> None:
    url = "https://hooks.slack.com/services/T0/B0/canary"

    with pytest.raises(ValidationError) as caught:
        SlackSettings(url_env=url)

    (error,) = caught.value.errors()
    assert error["type"] == "value_error"
    assert "canary" not in error["msg"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_no_encryption_is_for_a_mail_server_on_this_machine(host: str) -> None:
    settings = EmailSettings.model_validate(EMAIL | {"host": host, "security": "none"})

    assert settings.host == host
