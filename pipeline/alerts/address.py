"""Where an alert goes: URLs and hosts, checked once, before anything is sent there."""

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

from pipeline.errors import SettingsError

SLACK_HOSTS = ("hooks.slack.com", "hooks.slack-gov.com")


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_slack_url(url: SecretStr, setting: str, allowed_hosts: Collection[str] = ()) -> None:
    """Check the URL of an incoming webhook, of Slack or of a server that takes its messages.

    Raises SettingsError, which names the setting and not the URL, when it is of another host than
    Slack's, the allowed ones and this machine, not https (but on this machine), or not of an
    incoming webhook.
    """
    parts = _split(url, setting)
    host = parts.hostname or ""
    if host in SLACK_HOSTS and not parts.path.startswith("/services/"):
        raise SettingsError(
            f"{setting} is not an incoming webhook: copy one, as https://{host}/services/..."
        )
    if host not in {*SLACK_HOSTS, *map(str.lower, allowed_hosts)} and not is_loopback(host):
        raise SettingsError(
            f"{setting} is not a URL of {SLACK_HOSTS[0]}, but of {host}:"
            " copy Slack's, or name the host in allow_host"
        )
    _need_https(parts, setting)


def check_webhook_url(url: SecretStr, setting: str, *, allow_http: bool = False) -> None:
    """Check the URL of a generic webhook; raises SettingsError as `check_slack_url` does."""
    parts = _split(url, setting)
    if not allow_http:
        _need_https(parts, setting)


def _split(url: SecretStr, setting: str) -> SplitResult:
    text = url.get_secret_value()
    try:
        parts = urlsplit(text)
        _ = parts.port
        host = parts.hostname or ""
        host.encode("idna")
    except ValueError:  # its message may quote the URL
        raise SettingsError(f"{setting} is not a URL") from None
    visible = text.isascii() and text.isprintable() and " " not in text
    if parts.scheme not in {"http", "https"} or not host or not visible:
        raise SettingsError(f"{setting} must be a URL that starts with https://")
    return parts


def _need_https(parts: SplitResult, setting: str) -> None:
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise SettingsError(f"{setting} must start with https://: alerts quote people's questions")
