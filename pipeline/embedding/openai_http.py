"""The HTTP client below the SDK, and how large its replies may be."""

import httpx2
from openai import DefaultAsyncHttpxClient

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


def http_client(most: int, timeout: float) -> httpx2.AsyncClient:
    """Return a client as the SDK makes it, capped as `pipeline.providers.http` says."""
    return capped_client(DefaultAsyncHttpxClient, most, timeout)
