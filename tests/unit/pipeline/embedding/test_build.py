import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipeline.embedding.build import (
    Sharing,
    build_cached_embedder,
    build_embedder,
    identity,
    source_of,
)
from pipeline.embedding.cache import connect
from pipeline.embedding.local import LocalEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes.base import InputType
from pipeline.errors import SettingsError

REPOSITORY = Path(__file__).parents[4]
OPENAI = EmbeddingSettings(provider="openai", model="text-embedding-3-small", dimensions=512)


def elsewhere(url: str) -> EmbeddingSettings:
    return OPENAI.model_copy(update={"base_url": url})


def test_the_local_model_needs_no_key() -> None:
    embedder = build_embedder(EmbeddingSettings(), None)

    assert isinstance(embedder, LocalEmbedder)
    assert (embedder.model, embedder.dimensions) == ("wordllama-l2-supercat-256", 256)


def test_openai_carries_the_model_and_the_dimensions_asked_for() -> None:
    embedder = build_embedder(OPENAI, SecretStr("sk-canary"))

    assert (embedder.model, embedder.dimensions) == ("text-embedding-3-small", 512)


@pytest.mark.parametrize("key", [None, SecretStr(""), SecretStr(" \n")])
def test_openai_without_a_key_says_which_variable_is_not_set(key: SecretStr | None) -> None:
    with pytest.raises(SettingsError, match=r"^OPENAI_API_KEY is not set: api\.openai\.com "):
        build_embedder(OPENAI, key)


def test_another_machine_s_server_needs_a_key_too() -> None:
    with pytest.raises(SettingsError, match=r"OPENAI_API_KEY is not set: embed\.example\.org"):
        build_embedder(elsewhere("https://embed.example.org/v1"), None)


def test_this_machine_s_server_needs_no_key() -> None:
    settings = elsewhere("http://localhost:11434/v1")
    assert build_embedder(settings, None).model == settings.model


@pytest.mark.parametrize("key", ["sk-canary\nx", "sk-canary é", "sk\0canary"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY holds characters") as caught:
        build_embedder(OPENAI, SecretStr(key))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (EmbeddingSettings(dimensions=64), ("local", "wordllama-l2-supercat-256", 64, None)),
        (OPENAI, ("openai", "text-embedding-3-small", 512, None)),
        (
            elsewhere("http://me:secret@localhost:11434/v1"),
            ("openai", "text-embedding-3-small", 512, "localhost:11434"),
        ),
    ],
)
def test_the_identity_tells_sources_of_vectors_apart(
    settings: EmbeddingSettings, expected: tuple[str, str, int, str | None]
) -> None:
    names = ("provider", "model", "dimensions", "server")
    assert identity(settings) == dict(zip(names, expected, strict=True))


def test_a_key_is_asked_for_by_the_name_of_its_provider() -> None:
    voyage = EmbeddingSettings(provider="voyage", model="voyage-3.5")
    with pytest.raises(SettingsError, match=r"^VOYAGE_API_KEY is not set: api\.voyageai\.com "):
        build_embedder(voyage, None)


VOYAGE = EmbeddingSettings(provider="voyage", model="voyage-3.5")
E5 = EmbeddingSettings(
    provider="tei",
    model="e5",
    base_url="http://localhost:8080",
    query_prefix="query: ",
    document_prefix="passage: ",
)


@pytest.mark.parametrize(
    ("settings", "input_type", "source"),
    [
        (EmbeddingSettings(), InputType.QUERY, "wordllama-l2-supercat-256"),
        (OPENAI, InputType.QUERY, "text-embedding-3-small"),
        (OPENAI, InputType.DOCUMENT, "text-embedding-3-small"),
        (elsewhere("http://localhost:1/v1"), InputType.QUERY, "text-embedding-3-small@localhost:1"),
        (VOYAGE, InputType.QUERY, "voyage-3.5#query"),
        (VOYAGE, InputType.DOCUMENT, "voyage-3.5#document"),
        # SHA-256 of "query: ", by `printf "query: " | sha256sum`.
        (E5, InputType.QUERY, "e5@localhost:8080#08a8bf6b8693c7e0"),
    ],
)
def test_vectors_are_kept_under_what_makes_a_difference_to_them(
    settings: EmbeddingSettings, input_type: InputType, source: str
) -> None:
    assert source_of(settings, input_type) == source


def test_another_prefix_is_another_source() -> None:
    assert source_of(E5, InputType.QUERY) != source_of(E5, InputType.DOCUMENT)


def test_the_cached_embedder_answers_for_the_same_model() -> None:
    client = connect("redis://127.0.0.1:1")

    embedder = build_cached_embedder(EmbeddingSettings(dimensions=128), None, Sharing(client))

    assert (embedder.model, embedder.dimensions) == ("wordllama-l2-supercat-256", 128)


def test_the_local_path_loads_no_sdk() -> None:
    code = (
        "import sys; from pipeline.embedding.build import build_embedder;"
        "from pipeline.settings import EmbeddingSettings;"
        "build_embedder(EmbeddingSettings(), None);"
        "sys.exit('openai' in sys.modules or 'wordllama' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
