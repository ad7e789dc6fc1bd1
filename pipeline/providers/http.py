"""The HTTP client below a provider's SDK: follows no redirect, reads no more than was asked for."""

import ssl
from collections.abc import AsyncIterator
from typing import cast

import httpx2

from pipeline.providers.replies import MalformedReplyError


def capped_client(
    kind: type[httpx2.AsyncClient], most: int, timeout: float, tls: ssl.SSLContext | None = None
) -> httpx2.AsyncClient:
    """Return a client of the `kind` an SDK makes, with these two rules; proxies are found as ever.

    `tls`: whom to trust, for who makes many clients; None: made for this one.

    A reply of more than `most` bytes raises MalformedReplyError, and so does a compressed one,
    which was not asked for: a few bytes of it may be any number.
    """

    async def cap(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise MalformedReplyError("compressed, though it was asked not to be")
        response.stream = _Capped(cast("httpx2.AsyncByteStream", response.stream), most)

    return kind(
        timeout=timeout,
        verify=True if tls is None else tls,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [cap]},
    )


class _Capped(httpx2.AsyncByteStream):
    """A reply's bytes, up to a number of them."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for part in self._stream:
            read += len(part)
            if read > self._most:
                raise MalformedReplyError(f"larger than {self._most:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
