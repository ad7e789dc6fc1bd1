"""The receiver on docs/alerts.md, run as it stands there."""

import re
import threading
import time
from collections.abc import Iterator
from http.server import HTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from pipeline.alerts.base import Delivery, NotSent, Sent
from pipeline.alerts.webhook import WebhookChannel
from tests.conftest import REPOSITORY
from tests.unit.pipeline.alerts.examples import regressed

SECRET = "the value of PAGER_SECRET"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Give the program's names, and as "url" where it serves; it prints nothing."""
    page = (REPOSITORY / "docs/alerts.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(program, names)  # noqa: S102 - the program under test
    handled: list[Any] = []
    names |= {"handle": handled.append, "handled": handled}
    monkeypatch.setattr(names["Receiver"], "log_message", lambda *_: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HTTPServer(("127.0.0.1", 0), names["Receiver"]) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield names | {"url": f"http://127.0.0.1:{server.server_port}/"}
        server.shutdown()
        thread.join()


def deliver(receiver: dict[str, Any], secret: str | None = SECRET, ago: float = 0) -> Delivery:
    key = None if secret is None else SecretStr(secret)
    clock = lambda: time.time() - ago  # noqa: E731 - a clock that is slow
    channel = WebhookChannel("pager", SecretStr(receiver["url"]), key, timeout=5, clock=clock)
    return channel.deliver(regressed())


def test_it_takes_an_alert_and_the_same_again_once(receiver: dict[str, Any]) -> None:
    assert deliver(receiver) == Sent()
    assert deliver(receiver) == Sent()

    (alert,) = receiver["handled"]
    assert (alert["kind"], alert["schema"]) == ("regressed", "recallwatch.alert/1")


@pytest.mark.parametrize(
    ("secret", "ago"), [("another secret", 0), (None, 0), (SECRET, 400), (SECRET, -400)]
)
def test_it_refuses_who_has_not_the_secret_and_what_was_sent_long_ago(
    receiver: dict[str, Any], secret: str | None, ago: float
) -> None:
    answer = deliver(receiver, secret, ago)

    assert isinstance(answer, NotSent)
    assert "answered 401" in answer.reason
    assert receiver["handled"] == []


def test_its_check_is_ours(receiver: dict[str, Any]) -> None:
    for header in ("", "t=1", "v1=ab", "t=x,v1=ab", "t=1,v1=ä", ",,"):
        assert not receiver["is_genuine"](header, b"{}")
