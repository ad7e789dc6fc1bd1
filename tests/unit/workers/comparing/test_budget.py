import pytest

from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import PermanentError, UsageError
from workers.comparing.budget import Cap, Estimate, check_estimates, check_price, estimate

SMALL = EmbeddingSettings(provider="openai", model="text-embedding-3-small")


def test_nothing_is_sent_that_could_go_beyond_the_cap() -> None:
    cap = Cap(1.0)
    cap.reserve(0.6)

    with pytest.raises(PermanentError, match=r"the cap of \$1.00 is used up \(\$0.60 spent, and"):
        cap.reserve(0.5)
    assert cap.spent == 0.6


def test_what_cost_less_than_was_reserved_leaves_room_for_more() -> None:
    cap = Cap(1.0)
    cap.reserve(0.8)
    cap.settle(0.8, 0.2)
    cap.reserve(0.8)

    assert cap.spent == pytest.approx(1.0)


def test_without_a_dollar_what_is_free_still_goes() -> None:
    cap = Cap(0.0)
    cap.reserve(0.0)

    assert cap.spent == 0


def test_an_estimate_has_a_token_for_each_byte_at_most_and_a_fourth_of_that_in_english() -> None:
    # 1,000,000 bytes at $0.02 for a million tokens.
    found = estimate("small", SMALL, ["x" * 500_000, "é" * 250_000])

    assert (found.texts, found.most, found.likely) == (2, 0.02, 0.005)
    assert str(found) == "small: 2 new texts, about $0.005, at most $0.02"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Estimate("m", 0, 0.0, 0.0), "m: 0 new texts"),
        (Estimate("m", 1, 0.0, 0.0), "m: 1 new text, free"),
        (Estimate("m", 1200, 0.25, 1.0), "m: 1,200 new texts, about $0.25, at most $1.00"),
    ],
)
def test_an_estimate_in_words(found: Estimate, said: str) -> None:
    assert str(found) == said


def test_what_is_likely_to_cost_more_than_the_cap_is_not_begun() -> None:
    each = Estimate("m", 10, 0.6, 2.4)

    check_estimates([each], 1.0)
    with pytest.raises(UsageError, match=r"about \$1.20, more than the cap of \$1.00"):
        check_estimates([each, each], 1.0)


def test_a_model_of_unknown_price_is_refused_unless_this_machine_serves_it() -> None:
    own = {"provider": "openai", "model": "mine"}
    check_price("a", EmbeddingSettings.model_validate(own | {"base_url": "http://127.0.0.1:1/v1"}))
    check_price("b", EmbeddingSettings.model_validate(own | {"price": 0.0}))
    check_price("local", EmbeddingSettings())

    with pytest.raises(UsageError, match="what c costs is not known, so that no cap holds"):
        check_price("c", EmbeddingSettings.model_validate(own))
