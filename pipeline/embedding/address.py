"""Where the embedding server is, and the key it gets: both checked once."""

from pydantic import SecretStr

from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes import SHAPES
from pipeline.providers.address import Address, checked_key, parse_address


def address_of(settings: EmbeddingSettings) -> Address:
    """Return the address behind `embedding.base_url`; unset: the provider's own.

    Raises SettingsError for what is no http or https URL.
    """
    shape = SHAPES[settings.provider]
    return parse_address(settings.base_url or shape.url or "", "embedding.base_url", shape.example)


def is_the_providers(settings: EmbeddingSettings) -> bool:
    """Return whether the server is the provider's own, as api.openai.com is for `openai`."""
    own = SHAPES[settings.provider].url
    if own is None:
        return False
    return address_of(settings).host == parse_address(own, "url", own).host


def usable_key(api_key: SecretStr | None, settings: EmbeddingSettings) -> str:
    """Return the key to send; raises SettingsError for none, or one that cannot be sent."""
    return checked_key(api_key, address_of(settings), SHAPES[settings.provider].key)
