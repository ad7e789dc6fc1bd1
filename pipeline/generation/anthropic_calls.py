"""Calls of Anthropic's API through the official SDK: one request each, which nothing repeats."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from anthropic import APIError, AsyncAnthropic, DefaultAsyncHttpxClient
from pydantic import SecretStr

from pipeline.generation.address import address_of, usable_key
from pipeline.generation.anthropic_errors import Faults
from pipeline.generation.settings import GenerationSettings
from pipeline.providers.http import capped_client
from pipeline.providers.replies import MalformedReplyError

LARGEST_REPLY = 1 << 20
"""Bytes of a reply that is a message, or tells of a batch: tens of times what either takes."""

FAULTS = (TimeoutError, APIError, MalformedReplyError)
"""What a call raises."""

Send = Callable[[AsyncAnthropic], Awaitable[bytes]]


class Caller:
    """Sends requests to the server of the settings.

    Raises SettingsError when the key or the base URL cannot be used. Opens no connection before a
    call; each call has its own client, so that nothing is carried over a fork.
    """

    def __init__(self, settings: GenerationSettings, api_key: SecretStr | None) -> None:
        self._address = address_of(settings.base_url)
        self._key = usable_key(api_key, self._address)
        self._timeout = settings.timeout
        self.faults = Faults(self._address.host, settings.model, self._key, settings.timeout)

    def call(self, send: Send, *, most: int = LARGEST_REPLY) -> bytes:
        """Return the body of the reply to what `send` sends, of at most so many bytes.

        A call ends after `timeout` seconds whatever the server sends meanwhile: the SDK's own
        timeout starts again at each byte. Raises one of FAULTS. Needs a thread without a running
        event loop.
        """
        return asyncio.run(self._call(send, most))

    async def _call(self, send: Send, most: int) -> bytes:
        client = AsyncAnthropic(
            api_key=self._key,
            base_url=self._address.url,
            timeout=self._timeout,
            max_retries=0,
            http_client=capped_client(DefaultAsyncHttpxClient, most, self._timeout),
        )
        async with client, asyncio.timeout(self._timeout):
            return await send(client)


def decoded(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return a reply's JSON; raises MalformedReplyError where it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedReplyError("not JSON") from None
