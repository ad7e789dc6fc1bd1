"""The generic webhook: the whole alert as JSON, signed, with an idempotency id.

The body is a JSON object, UTF-8: `schema`, "recallwatch.alert/1", and the fields of `Alert` under
their names; docs/alerts.md lists them. A field may be added within a version; none changes its
meaning or goes. Headers:

    Idempotency-Key: <the alert's idempotency_id>
    X-Recallwatch-Signature: t=<Unix seconds>,v1=<hex>

The key is the same each time the alert is sent: a receiver keeps those it has seen. The signature
is there when the channel has a secret: HMAC-SHA256, keyed with it, of the time as written, a full
stop, and the body's bytes. A receiver checks it with `verify` before it reads the body.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pydantic import SecretStr

from pipeline.alerts import http
from pipeline.alerts.base import Delivery
from pipeline.alerts.message import Alert

SCHEMA = "recallwatch.alert/1"
SIGNATURE = "X-Recallwatch-Signature"
TOLERANCE = 300.0
"""Seconds by which a receiver's clock may differ, and for which a copied request is good."""


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Posts to one URL that has passed `check_webhook_url`; `clock` gives Unix seconds."""

    name: str
    url: SecretStr
    secret: SecretStr | None = None
    timeout: float = http.TIMEOUT
    clock: Callable[[], float] = time.time
    may_repeat: ClassVar[bool] = True

    def deliver(self, alert: Alert) -> Delivery:
        """Post the alert once, signed now."""
        payload = body(alert)
        headers = {"Idempotency-Key": alert.idempotency_id}
        if self.secret is not None:
            secret = self.secret.get_secret_value()
            headers[SIGNATURE] = signature(secret, payload, int(self.clock()))
        return http.post(self.url, payload, headers, timeout=self.timeout)


def body(alert: Alert) -> bytes:
    """Return the same bytes for the same alert."""
    return json.dumps({"schema": SCHEMA, **alert.to_json()}, allow_nan=False).encode()


def signature(secret: str, payload: bytes, at: int) -> str:
    """Return the header's value for a body signed at a Unix time."""
    return f"t={at},v1={_digest(secret, str(at), payload)}"


def verify(
    secret: str, header: str, payload: bytes, now: float, tolerance: float = TOLERANCE
) -> bool:
    """Return whether the body came from someone with the secret, within `tolerance` seconds.

    For receivers; takes constant time in what it compares.
    """
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    if len(times) != 1 or not (times[0].isascii() and times[0].isdigit()):
        return False
    wanted = _digest(secret, times[0], payload).encode()
    given = [value.encode(errors="replace") for name, _, value in parts if name == "v1"]
    matches = [hmac.compare_digest(wanted, value) for value in given]
    return any(matches) and abs(now - float(times[0])) <= tolerance


def _digest(secret: str, at: str, payload: bytes) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + payload, hashlib.sha256).hexdigest()
