"""What a generation takes before it starts: tokens and US dollars, about and at most."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.generation.base import Ask
from pipeline.generation.pricing import Priced
from pipeline.generation.sizes import size


@dataclass(frozen=True, slots=True)
class Estimate:
    """Requests, questions, and what they take; costs are None where no price is known.

    `by`: what says the price, and of which day.
    """

    requests: int
    questions: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    most: float | None
    by: str | None = None


def estimate(asks: Sequence[Ask], priced: Priced | None) -> Estimate:
    """Add up the sizes of the real prompts."""
    price = None if priced is None else priced.price
    sizes = [size(ask) for ask in asks]
    return Estimate(
        requests=len(asks),
        questions=sum(len(ask.categories) for ask in asks),
        input_tokens=sum(about.all_input_tokens for about, _ in sizes),
        output_tokens=sum(about.output_tokens for about, _ in sizes),
        cost=None if price is None else sum(price.of(about) for about, _ in sizes),
        most=None if price is None else sum(price.of(most) for _, most in sizes),
        by=None if priced is None else priced.source,
    )
