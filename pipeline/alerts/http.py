"""One POST, and what became of it: the rules that Slack and the generic webhook share.

The question is not "did it work" but "can it have arrived". Certainly not: no connection, no TLS,
or a refusal (429, another 4xx, a redirect, which is not followed). Certainly: 2xx. Anything else
(a timeout or a broken connection after the request began, 5xx) leaves it open.
"""

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from pipeline.alerts.base import Delivery, NotSent, Sent, Unknown
from pipeline.safe_text import Masker, clean

TIMEOUT = 10.0
"""Seconds that connecting, sending, and each wait for more of the answer may take."""

LARGEST_ANSWER = 2048
"""Bytes read of a refusal; the rest is left with the server."""

_LONGEST_QUOTE = 200
_SHORTEST_SECRET = 6
_ONE_DAY = 86_400.0


def post(
    url: SecretStr, body: bytes, headers: Mapping[str, str], *, timeout: float = TIMEOUT
) -> Delivery:
    """Send JSON once, on a connection of its own, and classify the outcome; never raises for it.

    A connection kept from before may have been closed by the other side, which shows only in the
    middle of a request: a needless doubt.
    """
    address = url.get_secret_value()
    host, mask = urlsplit(address).hostname or "", _masker(address)
    sent = {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "recallwatch",
    }
    try:
        with (
            httpx.Client(timeout=timeout, follow_redirects=False) as client,
            client.stream("POST", address, content=body, headers={**sent, **headers}) as response,
        ):
            return _outcome(response, host, mask, timeout)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        return NotSent(f"{host} cannot be reached{_quoted(error, mask)}")
    except httpx.TimeoutException:
        return Unknown(f"{host} did not answer within {timeout:g} s")
    except httpx.TransportError as error:
        return Unknown(f"{host} broke off before it answered{_quoted(error, mask)}")


def _outcome(response: httpx.Response, host: str, mask: Masker, timeout: float) -> Delivery:
    status = response.status_code
    if response.is_success:
        return Sent()
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return NotSent(
            f"{host} answered {status}, a redirect{_target(response)}, which is not followed:"
            " give the new URL to the channel",
            permanent=True,
        )
    answered = f"{host} answered {status}{_quoted(_said(response, timeout), mask)}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return NotSent(answered, retry_after=asked_wait(response.headers))
    if response.is_client_error:
        return NotSent(f"{answered}: check the channel's URL", permanent=True)
    return Unknown(answered)


def _target(response: httpx.Response) -> str:
    """Return where a redirect points, without the path: that may hold the secret again."""
    request = response.next_request
    return f" to {request.url.scheme}://{request.url.host}" if request else ""


def _said(response: httpx.Response, timeout: float) -> str:
    """Return the beginning of a refusal's body, as far as it comes in time."""
    said, end = b"", time.monotonic() + timeout
    try:
        for part in response.iter_raw():
            said += part
            if len(said) >= LARGEST_ANSWER or time.monotonic() > end:
                break
    except httpx.TransportError:
        pass  # the status is known, and that decides
    return said[:LARGEST_ANSWER].decode(errors="replace")


def _quoted(what: object, mask: Masker) -> str:
    """Return " (...)" with the text on one line, without secrets and not too long; "" for none."""
    text = " ".join(clean(mask(str(what))).split())
    cut = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
    return f" ({cut})" if cut else ""


def _masker(address: str) -> Masker:
    """Hide the URL and its parts: some servers quote the path in their 404, or the token."""
    parts = urlsplit(address)
    steps = [step for step in parts.path.split("/") if len(step) >= _SHORTEST_SECRET]
    whole = [parts.path] if steps else []
    return Masker([address, parts.query, parts.password or "", *whole, *steps])


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After asks for (RFC 9110, 10.2.3), a day at most.

    It holds seconds or a date; None where there is none, or none that can be read.
    """
    given = headers.get("retry-after", "")
    try:
        seconds = float(given)
    except ValueError:
        seconds = _until(given)
    return min(max(seconds, 0.0), _ONE_DAY) if math.isfinite(seconds) else None


def _until(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError):
        return math.nan
