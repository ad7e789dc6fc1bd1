"""The HTTP client: OpenAI's SDK, whatever API it is pointed at, and how large replies may be.

Bearer tokens, proxies, time limits and the kinds of errors are the same for all these APIs.
"""

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from pipeline.embedding.settings import EmbeddingSettings
from pipeline.providers.address import Address
from pipeline.providers.http import capped_client

_LARGEST_FRAME = 1 << 20
"""Bytes of a reply that are no vector: names, usage, an error's words."""

_NUMBER = 32
"""Bytes that one number may take: 25 in the longest decimal form, with what stands between."""

_LONGEST_VECTOR = 4096
"""Dimensions that a model may have where the settings do not say."""


def largest_reply(texts: int, dimensions: int | None) -> int:
    """Return the bytes that a reply with a vector for each text may have."""
    return _LARGEST_FRAME + texts * (dimensions or _LONGEST_VECTOR) * _NUMBER


def api_client(settings: EmbeddingSettings, address: Address, key: str, texts: int) -> AsyncOpenAI:
    """Return a client for requests of at most so many texts, which tries nothing twice.

    It is capped as `pipeline.providers.http` says. The organisation and project that the SDK finds
    in its own environment variables are told to nobody but OpenAI.
    """
    most = largest_reply(texts, settings.dimensions)
    client = AsyncOpenAI(
        api_key=key,
        base_url=address.url,
        timeout=settings.timeout,
        max_retries=0,
        http_client=capped_client(DefaultAsyncHttpxClient, most, settings.timeout),
    )
    if settings.provider != "openai":
        client.organization = client.project = None
    return client
