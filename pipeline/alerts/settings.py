"""The [alerts] table: named channels, and which alerts each of them gets."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from pipeline.alerts.address import is_loopback
from pipeline.alerts.message import Severity
from pipeline.secret_files import known
from pipeline.settings_types import Section, Share
from pipeline.types import AlertKind

Security = Literal["starttls", "ssl", "none"]

TellingRule = Literal[
    "noise",
    "exact",
    "threshold",
    "floor",
    "category_max_drop",
    "must_pass",
    "leak",
    "max_failed",
    "max_ineligible",
    "failed",
]
"""The rules of `pipeline.verdict.gate.Rule` that can make a run regressed or unmeasured."""

FELL = (AlertKind.REGRESSED, AlertKind.UNMEASURED)
"""The kinds that a rule leads to, and that one can recover from."""

RUN = "{run}"
"""What stands for the run's number in `run_url`."""

PORTS: dict[Security, int] = {"starttls": 587, "ssl": 465, "none": 25}

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_HOST = r"[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*"
_ADDRESS = re.compile(rf"{_ATOM}(\.{_ATOM})*@{_HOST}")  # RFC 5321's, without quoted and UTF-8 ones


def _check_variable(name: str) -> str:
    # Not quoted in the message: it may be the secret itself, pasted in the wrong place.
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("must be the name of an environment variable, as SLACK_WEBHOOK_URL")
    return name


def _check_host(host: str) -> str:
    if not re.fullmatch(rf"{_HOST}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*", host):
        raise ValueError("must be a host name or address alone, as smtp.example.org")
    return host


def _check_user_name(name: str) -> str:
    if not (name and name.isascii() and name.isprintable()):
        raise ValueError("must be of visible ASCII characters")
    return name


def _check_address(address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise ValueError("must be an e-mail address without a name, as oncall@example.org")
    return address


def _check_run_url(url: str) -> str:
    # All visible ASCII, but braces only as in {run}.
    if RUN not in url or not re.fullmatch(r"https?://([!-z|~]|\{run\})+", url):
        raise ValueError(
            f"must be an http or https URL in ASCII with {RUN} where the run's number goes"
        )
    return url


Variable = Annotated[str, AfterValidator(_check_variable)]
EmailAddress = Annotated[str, AfterValidator(_check_address)]
Host = Annotated[str, AfterValidator(_check_host)]
UserName = Annotated[str, AfterValidator(_check_user_name)]
ChannelName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]


class ChannelSection(Section):
    """What every channel says: which alerts it gets."""

    on: list[Annotated[AlertKind, Field(strict=False)]] = Field(
        list(AlertKind),
        min_length=1,
        description="kinds of alerts: regressed, unmeasured, recovered (told where the fall was),"
        " golden_stale",
    )
    rules: list[TellingRule] = Field(
        list(get_args(TellingRule)),
        min_length=1,
        description="regressed and unmeasured come here when one of these rules said so: "
        + ", ".join(get_args(TellingRule)),
    )
    min_severity: Severity = Field(
        Severity.INFO,
        strict=False,
        description="the least that is sent: info (also recovered), warning (also unmeasured,"
        " golden_stale, regressed by category_max_drop alone), critical (only other regressed)",
    )

    @model_validator(mode="after")
    def _be_told_of_falls(self) -> Self:
        if AlertKind.RECOVERED in self.on and not set(FELL) & set(self.on):
            raise ValueError(
                "recovered is told where the fall was: add regressed or unmeasured to on"
            )
        return self


class SlackSettings(ChannelSection):
    """An incoming webhook of Slack, or of a server that takes Slack's messages."""

    kind: Literal["slack"] = Field("slack", description="an incoming webhook of Slack")
    url_env: Variable = Field(
        "SLACK_WEBHOOK_URL", description="environment variable that holds the webhook's URL"
    )
    allow_host: Host | None = Field(
        None,
        description="another host than Slack's that the URL may have",
        examples=["chat.example.org"],
    )


class WebhookSettings(ChannelSection):
    """Any program that takes the alert as JSON; `pipeline.alerts.webhook` describes it."""

    kind: Literal["webhook"] = Field("webhook", description="JSON to a program of yours")
    url_env: Variable = Field(
        description="environment variable that holds the URL", examples=["ALERT_WEBHOOK_URL"]
    )
    secret_env: Variable | None = Field(
        None,
        description="environment variable that holds the key of the signature; unset: unsigned",
        examples=["ALERT_WEBHOOK_SECRET"],
    )
    allow_http: bool = Field(
        default=False, description="true: plain http too, for a network that you trust"
    )


class EmailSettings(ChannelSection):
    """Mails over SMTP."""

    kind: Literal["email"] = Field("email", description="mails over SMTP")
    host: Host = Field(description="mail server", examples=["smtp.example.org"])
    port: int | None = Field(
        None,
        ge=1,
        le=65_535,
        description="its port; unset: 587 with starttls, 465 with ssl, 25 with none",
        examples=[2525],
    )
    security: Security = Field(
        "starttls", description="starttls, ssl, or none (only to this machine)"
    )
    user: UserName | None = Field(
        None, description="user name, where the server wants one", examples=["recallwatch"]
    )
    password_env: Variable | None = Field(
        None,
        description="environment variable that holds the user's password",
        examples=["SMTP_PASSWORD"],
    )
    sender: EmailAddress = Field(
        description="address that mails come from", examples=["recallwatch@example.org"]
    )
    recipients: list[EmailAddress] = Field(
        min_length=1, description="addresses that mails go to", examples=[["search@example.org"]]
    )

    @model_validator(mode="after")
    def _protect(self) -> Self:
        if self.security == "none" and not is_loopback(self.host):
            raise ValueError('security "none" is only for a mail server on this machine')
        if (self.user is None) != (self.password_env is None):
            raise ValueError("user and password_env come together")
        return self


ChannelSettings = Annotated[
    SlackSettings | WebhookSettings | EmailSettings, Field(discriminator="kind")
]


class AlertSettings(Section):
    """Who is told what."""

    channels: dict[ChannelName, ChannelSettings] = Field(
        {}, description="named ways to tell people: slack, webhook or email"
    )
    allow_hosts: list[Host] = Field(
        [],
        description="the only hosts that channels may reach, exact names; []: any",
        examples=[["hooks.slack.com"]],
    )
    run_url: Annotated[str, AfterValidator(_check_run_url)] | None = Field(
        None,
        description="page of a run, with {run} for its number: alerts link to it; unset: no link",
        examples=["https://recallwatch.example.org/runs/{run}"],
    )
    stale_keys: Share = Field(
        0.02,
        description="golden_stale: share of a set's expected keys that may be gone from the corpus;"
        " 1: any",
    )
    stale_days: int = Field(
        365,
        ge=0,
        le=36_500,
        description="golden_stale: days after which an unchanged question is old, told when half"
        " of a set is; 0: never",
    )

    def link_to(self, run_id: int) -> str | None:
        """Return the URL of a run's page, where there is one."""
        return self.run_url.replace(RUN, str(run_id)) if self.run_url else None


def secret_values(
    channels: Mapping[str, ChannelSettings], environment: Mapping[str, str]
) -> list[str]:
    """Return what logs must not show: the values of all variables that the channels name."""
    names = [
        variable
        for settings in channels.values()
        for field in ("url_env", "secret_env", "password_env")
        if (variable := getattr(settings, field, None)) is not None
    ]
    return [value for name in names if (value := known(name, environment))]
