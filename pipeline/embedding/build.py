"""From settings to an embedder."""

from dataclasses import dataclass

from pydantic import SecretStr
from redis import Redis

from pipeline.embedding.address import address_of, is_openai
from pipeline.embedding.base import Embedder
from pipeline.embedding.cache import VectorCache
from pipeline.embedding.cached import CachedEmbedder
from pipeline.embedding.gate import build_gate, pause_of
from pipeline.embedding.local import LocalEmbedder
from pipeline.embedding.pause import Pause
from pipeline.embedding.settings import EmbeddingSettings


@dataclass(frozen=True, slots=True)
class Sharing:
    """What workers share: a Redis, from `cache.connect`.

    While it is away a provider's limits are divided among `workers` processes. `patience` is how
    many seconds a call may take and still wait for a rate limit; infinite: it waits for all.
    """

    client: Redis
    workers: int = 1
    patience: float = 120.0


def build_embedder(
    settings: EmbeddingSettings, api_key: SecretStr | None, sharing: Sharing | None = None
) -> Embedder:
    """Return the embedder that the settings ask for. Opens no connection.

    `sharing` tells it of the workers that it shares its provider's limits with; None: with nobody.
    Raises SettingsError when a setting or the key cannot be used. Build it in the process that uses
    it, never before a fork.
    """
    if settings.provider == "local":
        return LocalEmbedder(settings.dimensions)
    from pipeline.embedding.openai import OpenAIEmbedder  # noqa: PLC0415 - the SDK loads for 0.6 s

    if sharing is None:
        return OpenAIEmbedder(settings, api_key)
    gate = build_gate(sharing.client, settings, api_key, workers=sharing.workers)
    return OpenAIEmbedder(settings, api_key, gate=gate, patience=sharing.patience)


def build_pause(
    settings: EmbeddingSettings, api_key: SecretStr | None, client: Redis
) -> Pause | None:
    """Return the pause that may be on for the provider; None: the model is in this process.

    Raises SettingsError as `build_embedder` does.
    """
    if settings.provider == "local":
        return None
    return pause_of(client, settings, api_key)


def build_cached_embedder(
    settings: EmbeddingSettings,
    api_key: SecretStr | None,
    sharing: Sharing,
    dimensions: int | None = None,
) -> CachedEmbedder:
    """Return the same embedder behind a cache.

    `dimensions` is how long the corpus's vectors are. Where the settings leave it to the model,
    vectors of another length are refused then, and never cached.

    A model of another server than OpenAI's is cached as `<model>@<host>`: two servers may call
    different weights by one name.
    """
    embedder = build_embedder(settings, api_key, sharing)
    server = identity(settings)["server"]
    name = f"{embedder.model}@{server}" if server else embedder.model
    length = embedder.dimensions or dimensions
    cache = VectorCache(sharing.client, name, length, settings.cache_days)
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
        "server": None if is_openai(address) else address.host,
    }
