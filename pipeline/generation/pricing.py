"""What models cost."""

from dataclasses import dataclass
from datetime import date

from pipeline.generation.address import address_of, is_anthropic
from pipeline.generation.base import Price
from pipeline.generation.settings import GenerationSettings, PriceSettings

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
"""What a request of a message batch costs of one by itself, by Anthropic's list prices."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A price, and who says so: `source` goes on after "by"."""

    price: Price
    source: str


def priced(settings: GenerationSettings, *, message_batches: bool = False) -> Priced | None:
    """Return what the model costs; None: nobody said, and it is not known.

    The settings' price comes first. List prices hold at Anthropic's own server only, and for a
    snapshot of a model (`-20251001`) as for the model. Raises SettingsError for a base URL that
    is none.
    """
    set_by_user = settings.prices.get(settings.model)
    if set_by_user is not None:
        dated = "" if set_by_user.as_of is None else f" of {set_by_user.as_of}"
        price = _in_batch(set_by_user) if message_batches else _alone(set_by_user)
        return Priced(price, f"what is set in [generation.prices]{dated}")
    if not is_anthropic(address_of(settings.base_url)):
        return None
    listed = KNOWN.get(without_date(settings.model))
    if listed is None:
        return None
    share = BATCH_SHARE if message_batches else 1
    return Priced(
        Price(listed.input * share, listed.output * share), f"the list prices of {PRICES_AS_OF}"
    )


def price_of(settings: GenerationSettings, *, message_batches: bool = False) -> Price | None:
    """Return the price alone: see `priced`."""
    found = priced(settings, message_batches=message_batches)
    return None if found is None else found.price


def without_date(model: str) -> str:
    """Return the model that a snapshot (`-20251001`) is of; any other name as it is."""
    name, _, ending = model.rpartition("-")
    return name if len(ending) == _DATED and ending.isdecimal() else model


def _alone(price: PriceSettings) -> Price:
    return Price(price.input, price.output)


def _in_batch(price: PriceSettings) -> Price:
    """Return what a message batch costs; no discount is guessed for a server that has its price."""
    tokens_in = price.input if price.batch_input is None else price.batch_input
    tokens_out = price.output if price.batch_output is None else price.batch_output
    return Price(tokens_in, tokens_out)
