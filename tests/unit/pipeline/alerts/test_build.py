from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.alerts.base import Channel
from pipeline.alerts.build import build_channel, route
from pipeline.alerts.email import EmailChannel
from pipeline.alerts.message import Severity
from pipeline.alerts.settings import (
    ChannelSettings,
    EmailSettings,
    SlackSettings,
    WebhookSettings,
    secret_values,
)
from pipeline.alerts.slack import SlackChannel
from pipeline.alerts.webhook import WebhookChannel
from pipeline.errors import SettingsError
from pipeline.types import AlertKind, Verdict
from pipeline.verdict.gate import Finding, Rule
from tests.unit.pipeline.alerts.examples import NOISE, regressed, stale

SLACK = SlackSettings()
WEBHOOK = WebhookSettings(url_env="HOOK_URL", secret_env="HOOK_SECRET")
EMAIL = EmailSettings(
    host="smtp.example.org",
    user="recallwatch",
    password_env="SMTP_PASSWORD",
    sender="recallwatch@example.org",
    recipients=["search@example.org"],
)
CHANNELS: dict[str, ChannelSettings] = {"team": SLACK, "pager": WEBHOOK, "mail": EMAIL}
ENVIRONMENT = {
    "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/canary",
    "HOOK_URL": "https://example.org/hook/canary\n",
    "HOOK_SECRET": "whsec-canary",
    "SMTP_PASSWORD": "canary-password",
}


def build(name: str) -> Channel:
    return build_channel(name, CHANNELS[name], ENVIRONMENT)


def test_each_kind_of_channel_takes_its_secrets_from_the_environment() -> None:
    slack, webhook, email = build("team"), build("pager"), build("mail")

    assert isinstance(slack, SlackChannel)
    assert slack.url.get_secret_value() == ENVIRONMENT["SLACK_WEBHOOK_URL"]
    assert isinstance(webhook, WebhookChannel)
    assert webhook.url.get_secret_value() == "https://example.org/hook/canary"
    assert webhook.secret is not None
    assert webhook.secret.get_secret_value() == "whsec-canary"
    assert isinstance(email, EmailChannel)
    assert email.mailbox.password is not None
    assert email.mailbox.password.get_secret_value() == "canary-password"
    assert (email.mailbox.port, email.mailbox.security) == (587, "starttls")
    assert [c.name for c in (slack, webhook, email)] == ["team", "pager", "mail"]


def test_only_the_generic_webhook_may_repeat() -> None:
    assert [name for name in CHANNELS if build(name).may_repeat] == ["pager"]


def test_a_channel_shows_no_secret_of_its_own() -> None:
    assert not any("canary" in repr(build(name)) for name in CHANNELS)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("team", "SLACK_WEBHOOK_URL"),
        ("pager", "HOOK_URL"),
        ("pager", "HOOK_SECRET"),
        ("mail", "SMTP_PASSWORD"),
    ],
)
def test_a_variable_that_is_not_set_is_named(name: str, variable: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_channel(name, CHANNELS[name], {**ENVIRONMENT, variable: " "})

    assert str(caught.value) == (
        f"alerts.channels.{name}: environment {variable} is not set:"
        " export it, or remove the channel"
    )


def test_a_password_that_the_protocol_cannot_carry_is_refused_unquoted() -> None:
    with pytest.raises(SettingsError, match=r"mail: environment SMTP_PASSWORD: .* ASCII") as caught:
        build_channel("mail", EMAIL, {"SMTP_PASSWORD": "canäry"})

    assert "canäry" not in str(caught.value)


def test_an_unsigned_webhook_and_a_mail_server_without_a_login_need_no_secret() -> None:
    webhook = build_channel("w", WebhookSettings(url_env="HOOK_URL"), ENVIRONMENT)
    local = EmailSettings(
        host="localhost", security="none", sender="a@example.org", recipients=["b@example.org"]
    )
    email = build_channel("m", local, {})

    assert isinstance(webhook, WebhookChannel)
    assert webhook.secret is None
    assert isinstance(email, EmailChannel)
    assert (email.mailbox.port, email.mailbox.user, email.mailbox.password) == (25, None, None)


def test_all_secrets_are_known_so_that_logs_can_mask_them() -> None:
    assert set(secret_values(CHANNELS, ENVIRONMENT)) == {v.strip() for v in ENVIRONMENT.values()}
    assert secret_values(CHANNELS, {}) == []


def test_an_alert_goes_to_the_channels_of_its_kind_and_severity_in_their_order() -> None:
    channels: dict[str, ChannelSettings] = {
        "all": SlackSettings(),
        "pager": SlackSettings(min_severity=Severity.CRITICAL),
        "owners": SlackSettings(on=[AlertKind.GOLDEN_STALE]),
        "none": SlackSettings(on=[AlertKind.REGRESSED], min_severity=Severity.CRITICAL),
    }

    assert route(regressed(), channels) == ["all", "pager", "none"]
    assert route(regressed(severity=Severity.WARNING), channels) == ["all"]
    assert route(stale(), channels) == ["all", "owners"]
    assert route(stale(), {}) == []


def test_a_fall_goes_to_the_channels_that_want_a_rule_that_spoke() -> None:
    channels: dict[str, ChannelSettings] = {
        "all": SlackSettings(),
        "owners": SlackSettings(rules=["must_pass"]),
        "search": SlackSettings(rules=["noise", "max_failed"]),
    }
    missed = replace(NOISE, rule=Rule.MUST_PASS)
    beside = replace(missed, counts=False)
    failed = Finding(rule=Rule.MAX_FAILED, verdict=Verdict.UNMEASURED, text="9 failed")
    unmeasured = regressed(
        kind=AlertKind.UNMEASURED, verdict=Verdict.UNMEASURED, findings=(failed,)
    )

    assert route(regressed(findings=(NOISE,)), channels) == ["all", "search"]
    assert route(regressed(findings=(NOISE, beside)), channels) == ["all", "search"]
    assert route(regressed(findings=(NOISE, missed)), channels) == ["all", "owners", "search"]
    assert route(unmeasured, channels) == ["all", "search"]
    # What no rule is known of is kept from nobody, and none is about a set or a recovery.
    assert route(replace(unmeasured, findings=()), channels) == list(channels)
    assert route(stale(), channels) == list(channels)
    assert route(regressed(kind=AlertKind.RECOVERED), channels) == list(channels)


def test_a_secret_may_stand_in_a_file_that_the_environment_names(tmp_path: Path) -> None:
    file = tmp_path / "webhook"
    file.write_text("https://hooks.slack.com/services/T0/B0/canary\n")
    environment = {"SLACK_WEBHOOK_URL_FILE": str(file)}

    slack = build_channel("team", SLACK, environment)

    assert isinstance(slack, SlackChannel)
    assert slack.url.get_secret_value() == "https://hooks.slack.com/services/T0/B0/canary"
    assert secret_values({"team": SLACK}, environment) == [slack.url.get_secret_value()]


def test_a_file_that_cannot_be_read_is_told_with_channel_and_variable() -> None:
    environment = {"SLACK_WEBHOOK_URL_FILE": "/nowhere/webhook"}
    with pytest.raises(SettingsError) as caught:
        build_channel("team", SLACK, environment)
    said = str(caught.value)
    assert said.startswith("alerts.channels.team: environment SLACK_WEBHOOK_URL_FILE: /nowhere/")
    assert secret_values({"team": SLACK}, environment) == []


@pytest.mark.parametrize(
    ("name", "host"),
    [("team", "hooks.slack.com"), ("pager", "example.org"), ("mail", "smtp.example.org")],
)
def test_with_a_list_of_hosts_a_channel_reaches_no_other(name: str, host: str) -> None:
    built = build_channel(name, CHANNELS[name], ENVIRONMENT, [host.upper()])
    assert built.name == name
    for others in (["other.example"], [f"sub.{host}"], [host.partition(".")[2]]):
        with pytest.raises(
            SettingsError, match=rf"channels\.{name}: {host} is not among"
        ) as caught:
            build_channel(name, CHANNELS[name], ENVIRONMENT, others)
        assert "canary" not in str(caught.value)
