"""What tokens cost, in US dollars."""

import math

from pipeline.embedding.address import address_of, is_openai
from pipeline.embedding.settings import EmbeddingSettings

# OpenAI's list prices for a million tokens, by its pages on each model, May 2026.
KNOWN = {
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
}

_MILLION = 1_000_000

_DIGITS = 3
"""Significant digits of an amount below a dollar."""


def price_of(settings: EmbeddingSettings) -> float | None:
    """Return what a million tokens cost; None: nobody said, and it is not known."""
    if settings.price is not None:
        return settings.price
    if settings.provider == "local":
        return 0.0
    known = is_openai(address_of(settings.base_url))
    return KNOWN.get(settings.model) if known else None


def cost_of(tokens: int, settings: EmbeddingSettings) -> float:
    """Return what so many tokens cost; where the price is not known they count as free."""
    return tokens * (price_of(settings) or 0.0) / _MILLION


def dollars(amount: float) -> str:
    """Return an amount as people read it: cents, and below them as many digits as say something."""
    if amount <= 0:
        return "$0"
    digits = max(2, _DIGITS - 1 - math.floor(math.log10(amount)))
    whole, _, rest = f"{amount:,.{digits}f}".partition(".")
    return f"${whole}.{rest[:2]}{rest[2:].rstrip('0')}"
