"""POST JSON to one endpoint: some at once, each tried a few times, and what went wrong in words."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import SystemRandom
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from pipeline.errors import PermanentError, RecallwatchError, SettingsError, TransientError
from pipeline.providers.address import parse_address
from pipeline.providers.http import capped_client
from pipeline.providers.replies import MalformedReplyError, asked_wait, in_one_line
from pipeline.retrieval.strategies.http import Requests
from pipeline.safe_text import MASK
from pipeline.secret_files import secret

GIVE_UP_AFTER = 5
"""Requests that may be given up before one was answered: the server is down, not a question bad."""

FIRST_WAIT = 0.5
"""Seconds before the second try; they double with each."""

FOR_ALL = {401, 402, 403, 404, 405, 407, 410, 411, 415, 426, 501, 505}
"""Statuses that concern the endpoint, not what was asked of it: every request would get them."""

MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
"""Statuses that the same request may not get the next time."""

_random = SystemRandom()


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that got no usable reply, and why, in one line."""

    reason: str


class Endpoint:
    """A URL that answers JSON with JSON.

    `name` says in messages whose it is. Header values come from `environment` and are in no
    message. Raises SettingsError where one of its variables is not set, or cannot be sent.
    """

    def __init__(self, name: str, settings: Requests, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._headers = _headers(name, settings, environment)
        address = parse_address(settings.url, f"strategies.{name}.url", "http://localhost/search")
        self._who = f"{address.host}, asked by strategy {name},"

    def post_all(self, bodies: Sequence[object]) -> list[Any | Refused]:
        """Return the reply to each body, in order, or why there is none.

        Needs a thread without a running event loop. Raises TransientError where the server cannot
        be reached, asks for more patience than `max_wait`, or answers none of the requests;
        PermanentError where it says that the URL, the key or the method is wrong.
        """
        return asyncio.run(self._post_all(bodies)) if bodies else []

    async def _post_all(self, bodies: Sequence[object]) -> list[Any | Refused]:
        slots, call = asyncio.Semaphore(self._settings.concurrency), _Call()
        async with self._client() as client:

            async def take_turn(body: object) -> object:
                async with slots:
                    return await self._ask(client, call, body)

            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(take_turn(body)) for body in bodies]
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
        if call.given_up and not call.answered:
            raise TransientError(call.given_up[0])
        return [task.result() for task in tasks]

    def _client(self) -> httpx2.AsyncClient:
        client = capped_client(httpx2.AsyncClient, self._settings.max_reply, self._settings.timeout)
        client.headers.update(self._headers)
        return client

    async def _ask(self, client: httpx2.AsyncClient, call: "_Call", body: object) -> object:
        """Return the reply or Refused; raises what ends the whole call."""
        tries = 1
        while True:
            try:
                reply = await self._try_once(client, body)
            except _TryAgainError as error:
                wait = _backoff(tries, self._settings.max_wait) if error.asked is None else (
                    error.asked
                )  # fmt: skip
                if wait > self._settings.max_wait:
                    raise TransientError(str(error), retry_after=error.asked) from None
                if tries == self._settings.attempts:
                    return call.give_up(error)
                await asyncio.sleep(wait)
                tries += 1
            else:
                call.answered = True
                return reply

    async def _try_once(self, client: httpx2.AsyncClient, body: object) -> object:
        try:
            async with asyncio.timeout(self._settings.timeout):
                response = await client.post(self._settings.url, json=body)
        except MalformedReplyError as error:
            return Refused(self._said(f"sent a reply of no use: {error}"))
        except (TimeoutError, httpx2.TimeoutException):
            waited = f"did not answer within {self._settings.timeout:g} s"
            raise _TryAgainError(self._said(waited)) from None
        except httpx2.TransportError as error:
            fault = self._quoted(str(error)) or type(error).__name__
            raise _TryAgainError(
                self._said(f"cannot be reached, or broke off ({fault})"), alone=False
            ) from None
        return self._read(response)

    def _read(self, response: httpx2.Response) -> object:
        status = response.status_code
        if status in MAY_PASS:
            # A limit is the server's, not the question's.
            raise _TryAgainError(
                self._answered(response), asked_wait(response.headers), alone=status != 429  # noqa: PLR2004 - too many requests
            )  # fmt: skip
        if response.is_redirect:
            raise PermanentError(self._redirected(response))
        if status in FOR_ALL:
            raise PermanentError(self._answered(response))
        if not response.is_success:
            return Refused(self._answered(response))
        try:
            return json.loads(response.content)
        except ValueError:
            return Refused(self._said("sent a reply that is no JSON"))

    def _redirected(self, response: httpx2.Response) -> str:
        """Name the host alone: what follows may hold a token."""
        target = urlsplit(urljoin(self._settings.url, response.headers.get("location", "")))
        return self._said(
            f"answered {response.status_code}, a redirect to {target.scheme}://{target.netloc}"
            ", which is not followed: give the new URL to the strategy"
        )

    def _answered(self, response: httpx2.Response) -> str:
        said = self._quoted(response.text)
        return self._said(f"answered {response.status_code}" + (f": {said}" if said else ""))

    def _quoted(self, said: str) -> str:
        """Return what a server said, in one line, without our secrets."""
        for value in self._headers.values():
            said = said.replace(value, MASK).replace(value.removeprefix("Bearer "), MASK)
        return in_one_line(said, "\0")

    def _said(self, what: str) -> str:
        return f"{self._who} {what}"


class _Call:
    """What the requests of one call share: whether any was answered, and which were given up."""

    def __init__(self) -> None:
        self.answered = False
        self.given_up: list[str] = []

    def give_up(self, error: "_TryAgainError") -> Refused:
        """Count a request as refused; raises TransientError where it is the server that is ill."""
        self.given_up.append(str(error))
        hopeless = not self.answered and len(self.given_up) >= GIVE_UP_AFTER
        if hopeless or not error.alone:
            raise TransientError(str(error), retry_after=error.asked)
        return Refused(str(error))


class _TryAgainError(RecallwatchError):
    """A try failed for a reason that may pass.

    `asked`: the wait that the server wants, in seconds. `alone`: it may be this request's fault.
    """

    def __init__(self, message: str, asked: float | None = None, *, alone: bool = True) -> None:
        super().__init__(message)
        self.asked = asked
        self.alone = alone


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
