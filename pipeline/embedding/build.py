"""From settings to an embedder."""

from dataclasses import dataclass
from hashlib import sha256

from pydantic import SecretStr
from redis import Redis

from pipeline.embedding.address import address_of, is_the_providers
from pipeline.embedding.base import Embedder
from pipeline.embedding.cache import VectorCache
from pipeline.embedding.cached import CachedEmbedder
from pipeline.embedding.gate import build_gate, pause_of
from pipeline.embedding.local import LocalEmbedder
from pipeline.embedding.pause import Pause
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes import SHAPES
from pipeline.embedding.shapes.base import InputType


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
    settings: EmbeddingSettings,
    api_key: SecretStr | None,
    sharing: Sharing | None = None,
    input_type: InputType = InputType.QUERY,
) -> Embedder:
    """Return the embedder that the settings ask for, for questions or for chunks.

    Opens no connection. `sharing` tells it of the workers that it shares its provider's limits
    with; None: with nobody. Raises SettingsError when a setting or the key cannot be used. Build it
    in the process that uses it, never before a fork.
    """
    if settings.provider == "local":
        return LocalEmbedder(settings.dimensions)
    from pipeline.embedding.remote import RemoteEmbedder  # noqa: PLC0415 - the SDK loads for 0.6 s

    if sharing is None:
        return RemoteEmbedder(settings, api_key, input_type=input_type)
    gate = build_gate(sharing.client, settings, api_key, workers=sharing.workers)
    return RemoteEmbedder(
        settings, api_key, gate=gate, patience=sharing.patience, input_type=input_type
    )


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
    """Return the same embedder, of questions, behind a cache.

    `dimensions` is how long the corpus's vectors are. Where the settings leave it to the model,
    vectors of another length are refused then, and never cached.

    """
    embedder = build_embedder(settings, api_key, sharing)
    length = embedder.dimensions or dimensions
    name = source_of(settings, InputType.QUERY)
    cache = VectorCache(sharing.client, name, length, settings.cache_days)
    return CachedEmbedder(embedder, cache, length)


def identity(settings: EmbeddingSettings) -> dict[str, str | int | None]:
    """Return what tells one source of vectors from another, for the run record.

    `server` is the host of `base_url`; None: the provider's own, or this process. Raises
    SettingsError as `build_embedder` does.
    """
    if settings.provider == "local":
        local = LocalEmbedder(settings.dimensions)
        return {
            "provider": "local",
            "model": local.model,
            "dimensions": local.dimensions,
            "server": None,
        }
    return {
        "provider": settings.provider,
        "model": settings.model,
        "dimensions": settings.dimensions,
        "server": None if is_the_providers(settings) else address_of(settings).host,
    }


def source_of(settings: EmbeddingSettings, input_type: InputType) -> str:
    """Return a name under which vectors may be kept: equal texts have equal vectors under it.

    A model of another server than its provider's own is `<model>@<host>`: two servers may call
    different weights by one name. Behind a `#` stands what else makes a difference to the model:
    the type of input that it is told, a prefix (its hash). The dimensions are not in it.
    """
    known = identity(settings)
    name = f"{known['model']}@{known['server']}" if known["server"] else str(known["model"])
    if settings.provider == "local":
        return name
    told = [input_type.value] if SHAPES[settings.provider].asks_input_type else []
    if prefix := settings.prefix_of(input_type):
        told.append(sha256(prefix.encode()).hexdigest()[:16])
    return "#".join([name, *told])
