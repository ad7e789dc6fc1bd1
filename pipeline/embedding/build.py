"""From settings to an embedder."""

from pydantic import SecretStr
from redis import Redis

from pipeline.embedding.address import address_of
from pipeline.embedding.base import Embedder
from pipeline.embedding.cache import VectorCache
from pipeline.embedding.cached import CachedEmbedder
from pipeline.embedding.local import LocalEmbedder
from pipeline.settings import EmbeddingSettings


def build_embedder(settings: EmbeddingSettings, api_key: SecretStr | None) -> Embedder:
    """Return the embedder that the settings ask for. Opens no connection.

    Raises SettingsError when a setting or the key cannot be used. Build it in the process that uses
    it, never before a fork.
    """
    if settings.provider == "local":
        return LocalEmbedder(settings.dimensions)
    from pipeline.embedding.openai import OpenAIEmbedder  # noqa: PLC0415 - the SDK loads for 0.6 s

    return OpenAIEmbedder(settings, api_key)


def build_cached_embedder(
    settings: EmbeddingSettings,
    api_key: SecretStr | None,
    client: Redis,
    dimensions: int | None = None,
) -> CachedEmbedder:
    """Return the same embedder behind a cache; `client` comes from `cache.connect`.

    `dimensions` is how long the corpus's vectors are. Where the settings leave it to the model,
    vectors of another length are refused then, and never cached.

    A model of another server than OpenAI's is cached as `<model>@<host>`: two servers may call
    different weights by one name.
    """
    embedder = build_embedder(settings, api_key)
    server = identity(settings)["server"]
    name = f"{embedder.model}@{server}" if server else embedder.model
    length = embedder.dimensions or dimensions
    cache = VectorCache(client, name, length, settings.cache_days)
    return CachedEmbedder(embedder, cache, length)


def identity(settings: EmbeddingSettings) -> dict[str, str | int | None]:
    """Return what tells one source of vectors from another, for the run record.

    `server` is the host of `base_url`; None: OpenAI itself, or this process. Raises SettingsError
    as `build_embedder` does.
    """
    if settings.provider == "local":
        local = LocalEmbedder(settings.dimensions)
        return {
            "provider": "local",
            "model": local.model,
            "dimensions": local.dimensions,
            "server": None,
        }
    address = address_of(settings.base_url)
    return {
        "provider": "openai",
        "model": settings.model,
        "dimensions": settings.dimensions,
        "server": None if address.is_openai else address.host,
    }
