"""Where alerts arrive: counts what was taken, whatever the sender is told of it."""

import re
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback.hook_server import Exchange, HookServer, Posted, Reply, answer, hang, reset

RUN_PAGE = "http://chaos.test/runs/{run}"
_RUN = re.compile(r"http://chaos\.test/runs/(\d+)")

SLACK, HOOK = "/services/T0/B0/chaos", "/hook"

MOODS: dict[str, Reply] = {
    "hangs": hang(),
    "answers 500": answer(500, b"oops"),
    "resets": reset(),
    "answers 429": answer(429, b"slow down", headers={"Retry-After": "1"}),
}
REFUSING = "answers 429"
"""The mood in which nothing is taken: the sender is right to come again."""


@dataclass(frozen=True)
class Taken:
    """An alert that arrived: its channel, its run, and what tells it from any other of the run."""

    channel: str
    run_id: int
    identity: str


class Receiver(HookServer):
    """Both channels' receiver; in a mood it takes the post and answers otherwise than with 200."""

    def __init__(self) -> None:
        super().__init__()
        self.mood: str | None = None
        self.taken: list[Taken] = []
        self._lock = threading.Lock()

    def answer(self, posted: Posted, handler: BaseHTTPRequestHandler) -> None:
        mood = self.mood
        if mood != REFUSING:
            with self._lock:
                self.taken.append(_taken(posted))
        reply = self.default if mood is None else MOODS[mood]
        reply(Exchange(handler, self))


def _taken(posted: Posted) -> Taken:
    if posted.path == HOOK:
        body: dict[str, Any] = posted.json()
        return Taken("hook", int(body["run_id"]), posted.headers["idempotency-key"])
    # Slack's messages carry no id: the same words about the same run are the same alert.
    found = _RUN.search(posted.body.decode())
    assert found is not None, posted.body
    return Taken("slack", int(found[1]), posted.body.decode())
