"""What tokens cost, in US dollars."""

import math

from pipeline.embedding.address import is_the_providers
from pipeline.embedding.settings import EmbeddingSettings

# List prices for a million tokens, by the providers' own pages: OpenAI's on each model, May 2026;
# Voyage's on pricing, 2026.
KNOWN = {
    ("openai", "text-embedding-3-small"): 0.02,
    ("openai", "text-embedding-3-large"): 0.13,
    ("openai", "text-embedding-ada-002"): 0.10,
    ("voyage", "voyage-3.5-lite"): 0.02,
    ("voyage", "voyage-3.5"): 0.06,
    ("voyage", "voyage-3-large"): 0.18,
    ("voyage", "voyage-4-lite"): 0.02,
    ("voyage", "voyage-4"): 0.06,
    ("voyage", "voyage-4-large"): 0.12,
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
    known = KNOWN.get((settings.provider, settings.model))
    return known if is_the_providers(settings) else None


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
