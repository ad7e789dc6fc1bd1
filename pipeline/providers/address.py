"""Where a provider's server is, and the key it gets: both checked once."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from pydantic import SecretStr

from pipeline.errors import SettingsError

NO_KEY = "no-key"
"""Sent to a server on this machine where no key is set: the SDKs insist on one."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL, and its `host` (with the port, where one is given) for messages."""

    url: str
    host: str
    is_loopback: bool


def parse_address(url: str, setting: str, example: str) -> Address:
    """Return the address behind a setting's URL; `example` shows one that would do.

    The host never holds the user name and password that a URL may carry. Raises SettingsError for
    what is no http or https URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SettingsError(f"{setting} is not a URL: {error}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError(f"{setting} must be an http or https URL, as {example}")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    host = name if port is None else f"{name}:{port}"
    return Address(url=url, host=host, is_loopback=_is_loopback(parts.hostname))


def checked_key(api_key: SecretStr | None, address: Address, variable: str) -> str:
    """Return the key to send; raises SettingsError for none, or one that cannot be sent."""
    key = api_key.get_secret_value().strip() if api_key else ""
    if not key and address.is_loopback:
        return NO_KEY
    if not key:
        raise SettingsError(
            f"{variable} is not set: {address.host} needs one "
            "(any value will do for a server that does not check it)"
        )
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(f"{variable} holds characters that no key has: copy it again")
    return key


def _is_loopback(hostname: str) -> bool:
    try:
        return ip_address(hostname).is_loopback
    except ValueError:
        return hostname == "localhost"
