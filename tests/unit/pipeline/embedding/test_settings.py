import pytest
from pydantic import ValidationError

from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes.base import InputType


def made(**settings: object) -> EmbeddingSettings:
    return EmbeddingSettings.model_validate(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"provider": "voyage"}, 'model is required with provider "voyage", as voyage-3.5'),
        ({"provider": "cohere"}, 'model is required with provider "cohere", as embed-v4.0'),
        ({"model": "x"}, 'model must be unset with provider "local"'),
        ({"query_prefix": "query: "}, 'provider "local" was trained without prefixes'),
        (
            {"provider": "tei", "model": "x"},
            'base_url is required with provider "tei", as http://localhost:8080',
        ),
    ],
)
def test_what_a_provider_needs_is_said(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        made(**settings)


@pytest.mark.parametrize(
    ("provider", "texts", "tokens"),
    [
        ("openai", 2048, 300_000),
        ("voyage", 1000, 120_000),
        ("cohere", 96, 300_000),
        ("tei", 32, 300_000),
    ],
)
def test_a_request_holds_what_its_provider_takes_unless_told_otherwise(
    provider: str, texts: int, tokens: int
) -> None:
    server = {"provider": provider, "model": "m", "base_url": "http://localhost:1"}
    usual, told = made(**server), made(**server, max_inputs=7, max_tokens=9)

    assert (usual.most_texts, usual.most_tokens) == (texts, tokens)
    assert (told.most_texts, told.most_tokens) == (7, 9)


def test_questions_and_chunks_have_prefixes_of_their_own() -> None:
    settings = made(
        provider="tei", model="e5", base_url="http://localhost:1", query_prefix="query: "
    )

    assert settings.prefix_of(InputType.QUERY) == "query: "
    assert settings.prefix_of(InputType.DOCUMENT) == ""
