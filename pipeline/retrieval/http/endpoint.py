"""POST JSON to one endpoint: some at once, each tried a few times, and what went wrong in words."""

import asyncio
import json
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from random import SystemRandom
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from pipeline.errors import PermanentError, SettingsError, TransientError
from pipeline.providers.address import parse_address
from pipeline.providers.http import capped_client
from pipeline.providers.replies import MalformedReplyError, asked_wait, in_one_line
from pipeline.retrieval.http.call import Call, Refused, TryAgainError
from pipeline.retrieval.strategies.http import Requests
from pipeline.safe_text import Masker, clean
from pipeline.secret_files import secret

FIRST_WAIT = 0.5
"""Seconds before the second try; they double with each."""

FOR_ALL = {401, 402, 405, 407, 411, 415, 426, 501, 505}
"""Statuses that concern the endpoint, not what was asked of it: every request would get them."""

PERHAPS_FOR_ALL = {403, 404, 410}
"""Statuses of a wrong URL or key, or of what one question asks for, as a tenant that is gone."""

TOO_MANY = 429
MAY_PASS = {408, 425, TOO_MANY}
"""Statuses that the same request may not get the next time; those from 500 up are others."""

SERVER_ERROR = 500

_random = SystemRandom()


class Endpoint:
    """A URL that answers JSON with JSON.

    `name` says in messages whose it is. Header values come from `environment` and are in no
    message. Raises SettingsError where one of its variables is not set, or cannot be sent.
    """

    def __init__(self, name: str, settings: Requests, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._headers = _headers(name, settings, environment)
        self._mask = Masker(_secrets(self._headers.values()))
        address = parse_address(settings.url, f"strategies.{name}.url", "http://localhost/search")
        self._who = f"{address.host}, asked by strategy {name},"

    def post_all(self, bodies: Sequence[object], call: Call | None = None) -> list[Any | Refused]:
        """Return the reply to each body, in order, or why there is none.

        `call` is what these share with others of their batch, and is ended by its maker; None: they
        are all. Needs a thread without a running event loop. Raises TransientError where the server
        cannot be reached, asks for more patience than `max_wait`, or answers none of the requests;
        PermanentError where it says that the URL, the key or the method is wrong.
        """
        shared = call or Call()
        replies = asyncio.run(self._post_all(bodies, shared)) if bodies else []
        if call is None:
            shared.end()
        return replies

    async def _post_all(self, bodies: Sequence[object], call: Call) -> list[Any | Refused]:
        slots = asyncio.Semaphore(self._settings.concurrency)
        async with self._client() as client:

            async def take_turn(body: object) -> object:
                async with slots:
                    return await self._ask(client, call, body)

            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(take_turn(body)) for body in bodies]
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    def _client(self) -> httpx2.AsyncClient:
        client = capped_client(
            httpx2.AsyncClient, self._settings.max_reply, self._settings.timeout, self._tls
        )
        # Laravel, for one, answers what it refuses with a redirect to who asks for no JSON.
        client.headers["Accept"] = "application/json"
        client.headers.update(self._headers)
        return client

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """What a client would make anew each time, in 23 ms: a search by itself is timed too."""
        return httpx2.create_ssl_context()

    async def _ask(self, client: httpx2.AsyncClient, call: Call, body: object) -> object:
        """Return the reply or Refused; raises what ends the whole call."""
        tries = 1
        while True:
            try:
                return await self._try_once(client, call, body)
            except TryAgainError as error:
                wait = _backoff(tries, self._settings.max_wait) if error.asked is None else (
                    error.asked
                )  # fmt: skip
                if wait > self._settings.max_wait:
                    raise TransientError(str(error), retry_after=error.asked) from None
                if tries == self._settings.attempts:
                    return call.give_up(error)
                await asyncio.sleep(wait)
                tries += 1

    async def _try_once(self, client: httpx2.AsyncClient, call: Call, body: object) -> object:
        params = dict(self._settings.params)
        try:
            async with asyncio.timeout(self._settings.timeout):
                response = await client.post(self._settings.url, params=params, json=body)
        except MalformedReplyError as error:
            call.answered = True
            return Refused(self._said(f"sent a reply of no use: {error}"))
        except (TimeoutError, httpx2.TimeoutException):
            waited = f"did not answer within {self._settings.timeout:g} s"
            raise TryAgainError(self._said(waited)) from None
        except httpx2.TransportError as error:
            fault = self._quoted(str(error)) or type(error).__name__
            # A server that is there and breaks off may do so over one question.
            raise TryAgainError(
                self._said(f"cannot be reached, or broke off ({fault})"),
                alone=not isinstance(error, httpx2.ConnectError),
            ) from None
        return self._read(response, call)

    def _read(self, response: httpx2.Response, call: Call) -> object:
        status = response.status_code
        if response.is_redirect:
            raise PermanentError(self._redirected(response))
        if status in FOR_ALL:
            raise PermanentError(self._answered(response))
        if status in PERHAPS_FOR_ALL:
            return call.refuse(self._answered(response))
        if status in MAY_PASS or status >= SERVER_ERROR:
            # A limit is the server's, not the question's.
            wait, alone = asked_wait(response.headers), status != TOO_MANY
            raise TryAgainError(self._answered(response), wait, alone=alone)
        call.answered = True
        if not response.is_success:
            return Refused(self._answered(response))
        try:
            return json.loads(response.content)
        except (ValueError, RecursionError):
            return Refused(self._said("sent a reply that is no JSON"))

    def _redirected(self, response: httpx2.Response) -> str:
        """Name the host alone: what follows and what is before it may hold a token."""
        try:
            target = urlsplit(urljoin(self._settings.url, response.headers.get("location", "")))
            where = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"
        except ValueError:
            where = "what is no URL"
        return self._said(
            f"answered {response.status_code}, a redirect to {self._quoted(where)}"
            ", which is not followed: give the new URL to the strategy"
        )

    def _answered(self, response: httpx2.Response) -> str:
        said = self._quoted(response.text)
        return self._said(f"answered {response.status_code}" + (f": {said}" if said else ""))

    def _quoted(self, said: str) -> str:
        """Return what a server said, in one line, without our secrets."""
        # Cleaned first, as a secret may be written with control characters in it.
        return in_one_line(self._mask(clean(said)), "\0")

    def _said(self, what: str) -> str:
        return f"{self._who} {what}"


def _backoff(tries: int, most: float) -> float:
    """Return the seconds to wait after so many tries: doubling, with half of it random."""
    return min(FIRST_WAIT * 2.0 ** (tries - 1), most) * (1 + _random.random()) / 2


def _headers(name: str, settings: Requests, environment: Mapping[str, str]) -> dict[str, str]:
    found = {
        header: _value(name, header, variable, environment)
        for header, variable in settings.headers.items()
    }
    if settings.key_env is not None:
        key = _value(name, "Authorization", settings.key_env, environment)
        found["Authorization"] = f"Bearer {key}"
    return found


def _value(name: str, header: str, variable: str, environment: Mapping[str, str]) -> str:
    value = secret(variable, environment)
    if value is None:
        raise SettingsError(
            f"strategies.{name}: environment variable {variable} is not set, which holds the"
            f" header {header}"
        )
    if not (value.isascii() and value.isprintable()):
        raise SettingsError(f"strategies.{name}: {variable} holds characters that no header has")
    return value


def _secrets(values: Iterable[str]) -> Iterator[str]:
    """Yield the values, and of `Bearer x` or `ApiKey x` (RFC 9110, 11.4) what servers quote: x."""
    for value in values:
        yield value
        yield value.partition(" ")[2].strip()
