"""What a comparison may cost: estimated before it begins, and kept to at each request."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.embedding.address import address_of
from pipeline.embedding.packing import most_tokens
from pipeline.embedding.pricing import cost_of, dollars, price_of
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import PermanentError, UsageError

USUAL_CAP = 1.0
"""US dollars that a comparison may cost unless somebody says otherwise."""

BYTES_PER_TOKEN = 4
"""Of English text, about; other languages have more tokens, never more than one a byte."""


class Cap:
    """The budget of one comparison, in US dollars: nothing is sent that could go beyond it."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.spent = 0.0

    def reserve(self, cost: float) -> None:
        """See `pipeline.embedding.base.Budget`; raises PermanentError above the cap."""
        if self.spent + cost > self.most:
            raise PermanentError(
                f"the cap of {dollars(self.most)} is used up ({dollars(self.spent)} spent, and the"
                f" next request may cost {dollars(cost)}): the vectors that were paid for are kept;"
                " run the same command with a higher --max-cost to go on"
            )
        self.spent += cost

    def settle(self, reserved: float, cost: float) -> None:
        """See `pipeline.embedding.base.Budget`."""
        self.spent += cost - reserved


@dataclass(frozen=True, slots=True)
class Estimate:
    """What embedding costs with one model: `texts` that have no vector yet.

    In US dollars: `likely` for English, `most` with a token for each byte.
    """

    model: str
    texts: int
    likely: float
    most: float

    def __str__(self) -> str:
        new = f"{self.model}: {self.texts:,} new text{'s' if self.texts != 1 else ''}"
        if not self.texts:
            return new
        if not self.most:
            return f"{new}, free"
        return f"{new}, about {dollars(self.likely)}, at most {dollars(self.most)}"


def estimate(name: str, embedding: EmbeddingSettings, texts: Sequence[str]) -> Estimate:
    """Return what embedding these texts costs."""
    tokens = sum(map(most_tokens, texts))
    cost = cost_of(tokens, embedding)
    return Estimate(name, len(texts), cost / BYTES_PER_TOKEN, cost)


def check_price(name: str, embedding: EmbeddingSettings) -> None:
    """Refuse a model that nobody can say the cost of, unless this machine serves it.

    Raises UsageError: no cap could be kept to.
    """
    if price_of(embedding) is None and not address_of(embedding).is_loopback:
        raise UsageError(
            f"what {name} costs is not known, so that no cap holds: describe it in [models.NAME] of"
            " recallwatch.toml, with price (US dollars for a million tokens, 0 where it is free)"
        )


def check_estimates(estimates: Sequence[Estimate], most: float) -> None:
    """Refuse to begin what is likely to cost more than the cap; raises UsageError.

    What costs more than was likely ends at the cap: see `Cap`.
    """
    likely = sum(each.likely for each in estimates)
    if likely > most:
        raise UsageError(
            f"embedding would cost about {dollars(likely)}, more than the cap of {dollars(most)}:"
            " raise --max-cost, or take a smaller --sample"
        )
