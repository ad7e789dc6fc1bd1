import math
from datetime import date

import pytest
from pydantic import ValidationError

from pipeline.generation.base import Price, Usage
from pipeline.generation.pricing import KNOWN, PRICES_AS_OF, price_of, priced
from pipeline.generation.settings import GenerationSettings

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(MILLION, 0), 1.0),
        (Usage(0, MILLION), 5.0),
        (Usage(0, 0, cache_write_tokens=MILLION), 1.25),
        (Usage(0, 0, cache_hour_write_tokens=MILLION), 2.0),
        (Usage(0, 0, cache_read_tokens=MILLION), 0.10),
        (Usage(812, 91), 0.001267),
        (Usage(0, 0), 0.0),
    ],
)
def test_each_kind_of_token_costs_what_anthropic_s_page_on_claude_haiku_4_5_says(
    usage: Usage, dollars: float
) -> None:
    price = price_of(GenerationSettings())

    assert price is not None
    assert price.of(usage) == pytest.approx(dollars)


def test_a_whole_prompt_is_all_its_tokens_whatever_each_costs() -> None:
    assert Usage(1, 20, 300, 4000, 50_000).all_input_tokens == 54_301


def test_a_message_batch_costs_half_of_the_list_price() -> None:
    assert price_of(GenerationSettings(), message_batches=True) == Price(0.5, 2.5)


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-haiku-4-5-20251001"])
def test_a_snapshot_costs_what_its_model_costs(model: str) -> None:
    assert price_of(GenerationSettings(model=model)) == KNOWN["claude-haiku-4-5"]


@pytest.mark.parametrize("model", ["claude-haiku-9", "some-model", "claude-haiku-4-5-latest"])
def test_the_price_of_an_unknown_model_is_not_guessed(model: str) -> None:
    settings = GenerationSettings(model=model)

    assert price_of(settings) is None
    assert price_of(settings, message_batches=True) is None


def test_another_server_s_price_is_not_taken_to_be_anthropic_s() -> None:
    assert price_of(GenerationSettings(base_url="http://localhost:8080")) is None


def test_a_price_of_the_settings_comes_first_on_any_server() -> None:
    settings = GenerationSettings.model_validate(
        {
            "base_url": "http://localhost:8080",
            "prices": {"claude-haiku-4-5": {"input": 3.0, "output": 7.0}},
        }
    )

    assert price_of(settings) == Price(3.0, 7.0)


def own(**price: object) -> GenerationSettings:
    given = {"input": 3.0, "output": 7.0, **price}
    return GenerationSettings.model_validate({"prices": {"claude-haiku-4-5": given}})


def test_no_discount_is_taken_from_a_price_of_the_settings_but_the_one_it_names() -> None:
    assert price_of(own(), message_batches=True) == Price(3.0, 7.0)
    assert price_of(own(batch_input=1.0), message_batches=True) == Price(1.0, 7.0)
    assert price_of(own(batch_input=1.0, batch_output=0.0)) == Price(3.0, 7.0)


def source_of(settings: GenerationSettings) -> str:
    found = priced(settings)
    assert found is not None
    return found.source


@pytest.mark.parametrize("as_of", ["2026-10-02", date(2026, 10, 2)])
def test_a_price_says_where_it_is_from_and_of_which_day(as_of: object) -> None:
    assert source_of(GenerationSettings()) == f"the list prices of {PRICES_AS_OF}"
    assert source_of(own()) == "what is set in [generation.prices]"
    assert source_of(own(as_of=as_of)) == "what is set in [generation.prices] of 2026-10-02"


@pytest.mark.parametrize("amount", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("name", ["max_cost", "prices"])
def test_what_is_no_amount_of_money_is_refused(name: str, amount: float) -> None:
    value = {"m": {"input": amount, "output": 1.0}} if name == "prices" else amount

    with pytest.raises(ValidationError):
        GenerationSettings.model_validate({name: value})
