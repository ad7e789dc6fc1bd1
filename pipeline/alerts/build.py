"""From settings to channels, and from an alert to the channels that get it."""

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from pydantic import SecretStr

from pipeline.alerts.address import check_slack_url, check_webhook_url
from pipeline.alerts.base import Channel
from pipeline.alerts.email import EmailChannel, Mailbox
from pipeline.alerts.message import Alert
from pipeline.alerts.settings import (
    FELL,
    PORTS,
    ChannelSettings,
    EmailSettings,
    SlackSettings,
    WebhookSettings,
)
from pipeline.alerts.slack import SlackChannel
from pipeline.alerts.webhook import WebhookChannel
from pipeline.errors import SettingsError
from pipeline.secret_files import secret

Environment = Mapping[str, str]


def route(alert: Alert, channels: Mapping[str, ChannelSettings]) -> list[str]:
    """Return the names of the channels that the alert goes to, in the settings' order.

    A fall goes to those that want one of the rules that speak of it; one of which no rule is known
    goes to all.
    """
    return [name for name, channel in channels.items() if _wants(channel, alert)]


def _wants(channel: ChannelSettings, alert: Alert) -> bool:
    by_rules = alert.kind in FELL and bool(alert.rules)
    return (
        alert.kind in channel.on
        and alert.severity.reaches(channel.min_severity)
        and not (by_rules and alert.rules.isdisjoint(channel.rules))
    )


def build_channel(
    name: str,
    settings: ChannelSettings,
    environment: Environment,
    allow_hosts: Collection[str] = (),
) -> Channel:
    """Return the channel `alerts.channels.<name>`, its secrets taken from the environment.

    `allow_hosts`: the only hosts it may reach; none: any. Opens no connection. Raises SettingsError
    when a variable is not set, or its value or host cannot be used; the message names the channel
    and the variable, never the value.
    """
    channel: SlackChannel | WebhookChannel | EmailChannel
    match settings:
        case SlackSettings():
            channel = _slack(name, settings, environment)
        case WebhookSettings():
            channel = _webhook(name, settings, environment)
        case EmailSettings():
            channel = _email(name, settings, environment)
    _check_host(channel, allow_hosts)
    return channel


def _check_host(
    channel: SlackChannel | WebhookChannel | EmailChannel, allow_hosts: Collection[str]
) -> None:
    if isinstance(channel, EmailChannel):
        host = channel.mailbox.host
    else:
        host = urlsplit(channel.url.get_secret_value()).hostname or ""
    if allow_hosts and host.lower() not in map(str.lower, allow_hosts):
        raise SettingsError(
            f"alerts.channels.{channel.name}: {host} is not among [alerts] allow_hosts: add it,"
            " or give the channel another address"
        )


def _slack(name: str, settings: SlackSettings, environment: Environment) -> SlackChannel:
    url = _secret(name, settings.url_env, environment)
    allowed = [] if settings.allow_host is None else [settings.allow_host]
    check_slack_url(url, _place(name, settings.url_env), allowed)
    return SlackChannel(name, url)


def _webhook(name: str, settings: WebhookSettings, environment: Environment) -> WebhookChannel:
    url = _secret(name, settings.url_env, environment)
    place = _place(name, settings.url_env)
    check_webhook_url(url, place, allow_http=settings.allow_http)
    if settings.secret_env is None:
        return WebhookChannel(name, url)
    return WebhookChannel(name, url, _secret(name, settings.secret_env, environment))


def _email(name: str, settings: EmailSettings, environment: Environment) -> EmailChannel:
    password = _password(name, settings.password_env, environment)
    mailbox = Mailbox(
        settings.host,
        settings.port or PORTS[settings.security],
        settings.security,
        settings.user,
        password,
    )
    return EmailChannel(name, mailbox, settings.sender, tuple(settings.recipients))


def _password(name: str, variable: str | None, environment: Environment) -> SecretStr | None:
    if variable is None:
        return None
    password = _secret(name, variable, environment)
    if not password.get_secret_value().isascii():  # the standard library's client sends no other
        raise SettingsError(f"{_place(name, variable)}: a password has to be in ASCII")
    return password


def _secret(name: str, variable: str, environment: Environment) -> SecretStr:
    try:
        value = secret(variable, environment)
    except SettingsError as error:
        raise SettingsError(f"alerts.channels.{name}: {error}") from None
    if value is None:
        raise SettingsError(
            f"{_place(name, variable)} is not set: export it, or remove the channel"
        )
    return SecretStr(value)


def _place(name: str, variable: str) -> str:
    return f"alerts.channels.{name}: environment {variable}"
