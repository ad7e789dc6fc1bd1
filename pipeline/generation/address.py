"""Where the server of the Messages API is, and the key it gets."""

from pydantic import SecretStr

from pipeline.providers.address import Address, checked_key, parse_address

ANTHROPIC_URL = "https://api.anthropic.com"


def address_of(base_url: str | None) -> Address:
    """Return the address behind `generation.base_url`, Anthropic's own for None.

    Raises SettingsError for what is no http or https URL.
    """
    return parse_address(base_url or ANTHROPIC_URL, "generation.base_url", "http://localhost:8080")


def is_anthropic(address: Address) -> bool:
    """Return whether it is Anthropic's own server."""
    return address.host == "api.anthropic.com"


def usable_key(api_key: SecretStr | None, address: Address) -> str:
    """Return the key to send; raises SettingsError for none, or one that cannot be sent."""
    return checked_key(api_key, address, "ANTHROPIC_API_KEY")
