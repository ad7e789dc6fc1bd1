"""Where the embedding server is, and the key it gets: both checked once."""

from pydantic import SecretStr

from pipeline.providers.address import Address, checked_key, parse_address

OPENAI_URL = "https://api.openai.com/v1"


def address_of(base_url: str | None) -> Address:
    """Return the address behind `embedding.base_url`, OpenAI's own for None.

    Raises SettingsError for what is no http or https URL.
    """
    return parse_address(base_url or OPENAI_URL, "embedding.base_url", "http://localhost:11434/v1")


def is_openai(address: Address) -> bool:
    """Return whether it is OpenAI's own server."""
    return address.host == "api.openai.com"


def usable_key(api_key: SecretStr | None, address: Address) -> str:
    """Return the key to send; raises SettingsError for none, or one that cannot be sent."""
    return checked_key(api_key, address, "OPENAI_API_KEY")
