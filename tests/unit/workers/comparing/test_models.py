import pytest

from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import UsageError
from pipeline.settings import Settings
from workers.comparing.models import Model, model_of, models_of, one_model

BGE = EmbeddingSettings(provider="tei", model="bge-m3", base_url="http://localhost:8080")
OLLAMA = EmbeddingSettings(
    provider="openai", model="nomic", base_url="http://localhost:11434/v1", concurrency=2,
    query_prefix="search_query: ", price=0.5, dimensions=256,
)  # fmt: skip
SETTINGS = Settings(models={"bge": BGE})


def names(*given: str) -> list[str]:
    return [model.name for model in models_of(SETTINGS, given)]


def test_a_single_model_is_held_against_the_corpus() -> None:
    assert names("local") == ["corpus", "local"]
    assert models_of(SETTINGS, ["local"])[0] == Model("corpus", EmbeddingSettings(), stored=True)


def test_of_several_the_first_is_the_baseline() -> None:
    assert names("local@64", "bge", "corpus") == ["local@64", "bge", "corpus"]


@pytest.mark.parametrize("given", [[], ["corpus"]])
def test_one_thing_is_no_comparison(given: list[str]) -> None:
    with pytest.raises(UsageError, match=r"^nothing to compare"):
        models_of(SETTINGS, given)


def test_a_model_is_compared_once() -> None:
    with pytest.raises(UsageError, match="--model local is given twice"):
        names("local", "bge", "local")


@pytest.mark.parametrize(
    ("name", "provider", "model", "dimensions"),
    [
        ("local", "local", "", None),
        ("local@64", "local", "", 64),
        ("openai:text-embedding-3-large@256", "openai", "text-embedding-3-large", 256),
        ("voyage:voyage-3.5", "voyage", "voyage-3.5", None),
        ("cohere:embed-v4.0@1024", "cohere", "embed-v4.0", 1024),
        ("openai:@cf/baai/bge-m3", "openai", "@cf/baai/bge-m3", None),
        ("openai:nomic:latest@768", "openai", "nomic:latest", 768),
    ],
)
def test_a_model_is_read_from_provider_name_and_dimensions(
    name: str, provider: str, model: str, dimensions: int | None
) -> None:
    found = model_of(SETTINGS, name).embedding

    assert (found.provider, found.model, found.dimensions) == (provider, model, dimensions)


def test_a_name_of_the_settings_is_that_table() -> None:
    assert model_of(SETTINGS, "bge") == Model("bge", BGE)


def test_another_model_of_the_same_provider_is_asked_at_the_same_server() -> None:
    found = model_of(Settings(embedding=OLLAMA), "openai:mxbai").embedding

    assert (found.base_url, found.concurrency) == ("http://localhost:11434/v1", 2)
    assert (found.query_prefix, found.price, found.dimensions) == ("", None, None)


def test_the_same_model_of_other_dimensions_keeps_its_prefix_and_price() -> None:
    found = model_of(Settings(embedding=OLLAMA), "openai:nomic@128").embedding

    assert (found.query_prefix, found.price, found.dimensions) == ("search_query: ", 0.5, 128)


def test_another_provider_has_nothing_of_these_settings() -> None:
    found = model_of(Settings(embedding=OLLAMA), "voyage:voyage-3.5").embedding

    assert found == EmbeddingSettings(provider="voyage", model="voyage-3.5")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt", r"--model gpt: write provider:name\[@dimensions\], .*; or a name of .* \(bge\)"),
        ("tei:x", r'--model tei:x: base_url is required with provider "tei"'),
        ("openai", r'--model openai: model is required with provider "openai"'),
        ("local:x", r'--model local:x: model must be unset with provider "local"'),
        ("openai:x@0", r"--model openai:x@0: .*greater than or equal to 1"),
        ("@64", r"--model @64: write provider:name"),
    ],
)  # fmt: skip
def test_a_name_that_says_nothing_is_refused_with_what_to_write(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        model_of(SETTINGS, name)


def test_chunks_are_embedded_with_the_model_of_the_settings_or_the_one_named() -> None:
    assert one_model(SETTINGS, None) == Model("local", EmbeddingSettings())
    assert one_model(Settings(embedding=OLLAMA), None) == Model("nomic", OLLAMA)
    assert one_model(SETTINGS, "bge") == Model("bge", BGE)


def test_chunks_that_are_cut_anew_have_no_vectors_in_the_corpus() -> None:
    with pytest.raises(UsageError, match="other chunks have no vectors in the corpus"):
        one_model(SETTINGS, "corpus")
