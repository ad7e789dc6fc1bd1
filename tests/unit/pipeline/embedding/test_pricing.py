import pytest

from pipeline.embedding.pricing import cost_of, dollars, price_of
from pipeline.embedding.settings import EmbeddingSettings


def openai(**settings: object) -> EmbeddingSettings:
    given = {"provider": "openai", "model": "text-embedding-3-small"}
    return EmbeddingSettings.model_validate(given | settings)


@pytest.mark.parametrize(
    ("settings", "price"),
    [
        (EmbeddingSettings(), 0.0),
        (openai(), 0.02),
        (openai(model="text-embedding-3-large"), 0.13),
        (openai(price=0.5), 0.5),
        (openai(price=0.0), 0.0),
        (openai(model="another"), None),
        (openai(base_url="http://localhost:11434/v1"), None),
        (openai(base_url="https://api.openai.com/v1"), 0.02),
    ],
)
def test_the_price_is_what_was_set_else_what_is_known(
    settings: EmbeddingSettings, price: float | None
) -> None:
    assert price_of(settings) == price


def test_a_million_tokens_cost_the_price_and_unknown_ones_nothing() -> None:
    assert cost_of(1_000_000, openai()) == pytest.approx(0.02)
    assert cost_of(250_000, openai(price=4.0)) == pytest.approx(1.0)
    assert cost_of(10**9, openai(model="another")) == 0


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0"),
        (0.0012, "$0.0012"),
        (0.00123456, "$0.00123"),
        (0.00000012, "$0.00000012"),
        (0.5, "$0.50"),
        (0.123456, "$0.123"),
        (1, "$1.00"),
        (12.345, "$12.35"),
        (1234.5, "$1,234.50"),
    ],
)
def test_amounts_are_shown_in_cents_and_finer_where_they_are_small(
    amount: float, shown: str
) -> None:
    assert dollars(amount) == shown
