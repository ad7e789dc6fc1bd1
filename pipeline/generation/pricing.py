"""What models cost."""

from datetime import date

from pipeline.generation.address import address_of, is_anthropic
from pipeline.generation.base import Price
from pipeline.generation.settings import GenerationSettings

PRICES_AS_OF = date(2026, 11, 30)
"""When KNOWN was put together, from Anthropic's page of each model."""

# The models that take a forced tool: those of the 5.5 generation do not.
KNOWN = {
    "claude-haiku-4-5": Price(1.0, 5.0),
    "claude-sonnet-4-6": Price(3.0, 15.0),
    "claude-sonnet-5": Price(2.0, 10.0),
    "claude-opus-4-5": Price(5.0, 25.0),
    "claude-opus-4-6": Price(5.0, 25.0),
    "claude-opus-4-7": Price(5.0, 25.0),
    "claude-opus-4-8": Price(5.0, 25.0),
    "claude-opus-5": Price(5.0, 25.0),
}

_DATED = 8
"""Digits of the date that ends a snapshot's name, as in claude-haiku-4-5-20251001."""

BATCH_SHARE = 0.5
"""What a request of a message batch costs of one by itself."""


def price_of(settings: GenerationSettings, *, message_batches: bool = False) -> Price | None:
    """Return what the model costs; None: nobody said, and it is not known.

    The settings' price comes first. List prices hold at Anthropic's own server only, and for a
    snapshot of a model (`-20251001`) as for the model. Raises SettingsError for a base URL that
    is none.
    """
    price = _list_price(settings)
    if price is None or not message_batches:
        return price
    return Price(price.input * BATCH_SHARE, price.output * BATCH_SHARE)


def _list_price(settings: GenerationSettings) -> Price | None:
    set_by_user = settings.prices.get(settings.model)
    if set_by_user is not None:
        return Price(set_by_user.input, set_by_user.output)
    if not is_anthropic(address_of(settings.base_url)):
        return None
    name, _, ending = settings.model.rpartition("-")
    dated = len(ending) == _DATED and ending.isdecimal()
    return KNOWN.get(name if dated else settings.model)
