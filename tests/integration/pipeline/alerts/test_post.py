"""What becomes of a POST, through the channels that post."""

import time
from email.utils import formatdate

import pytest
from pydantic import SecretStr

from pipeline.alerts.base import NotSent, Sent, Unknown
from pipeline.alerts.message import Alert
from pipeline.alerts.slack import SlackChannel
from pipeline.alerts.slack_message import slack_message
from pipeline.alerts.webhook import SIGNATURE, WebhookChannel, verify
from pipeline.log import configure
from pipeline.settings import LogSettings
from tests.integration.pipeline.alerts.conftest import IMPATIENCE, PATIENCE, Certificate
from tests.loopback.hook_server import (
    HookServer,
    Reply,
    answer,
    endless,
    garbage,
    hang,
    redirect,
    reset,
)
from tests.unit.pipeline.alerts.examples import regressed

TOKEN = "canary-token"


def slack(url: str, timeout: float = PATIENCE) -> SlackChannel:
    return SlackChannel("team", SecretStr(url), timeout=timeout)


def webhook(url: str, secret: str | None = None, timeout: float = PATIENCE) -> WebhookChannel:
    key = None if secret is None else SecretStr(secret)
    return WebhookChannel("pager", SecretStr(url), key, timeout=timeout)


def test_slack_gets_the_message_as_json(hook: HookServer) -> None:
    assert slack(hook.url()).deliver(regressed()) == Sent()

    (posted,) = hook.posted
    assert posted.path == "/services/T0/B0/canary-token"
    assert posted.headers["content-type"] == "application/json"
    assert posted.json() == slack_message(regressed())


def test_a_webhook_gets_the_whole_alert_signed_and_with_its_id(hook: HookServer) -> None:
    assert webhook(hook.url("/hook?key=x"), "whsec").deliver(regressed()) == Sent()

    (posted,) = hook.posted
    assert posted.path == "/hook?key=x"
    assert posted.headers["idempotency-key"] == "run-41-regressed"
    assert verify("whsec", posted.headers[SIGNATURE.lower()], posted.body, time.time())
    values = posted.json()
    assert values.pop("schema") == "recallwatch.alert/1"
    assert Alert.from_json(values) == regressed()


def test_a_repetition_has_the_same_id_and_body_and_a_new_signature(hook: HookServer) -> None:
    times = iter([1_700_000_000.0, 1_700_000_060.0])
    key = SecretStr("whsec")
    channel = WebhookChannel("pager", SecretStr(hook.url()), key, clock=lambda: next(times))

    channel.deliver(regressed())
    channel.deliver(regressed())

    first, second = hook.posted
    assert first.body == second.body
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.headers[SIGNATURE.lower()] != second.headers[SIGNATURE.lower()]


def test_without_a_secret_there_is_no_signature(hook: HookServer) -> None:
    webhook(hook.url()).deliver(regressed())

    assert SIGNATURE.lower() not in hook.posted[0].headers


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_any_success_counts(hook: HookServer, status: int) -> None:
    hook.script = [answer(status)]

    assert webhook(hook.url()).deliver(regressed()) == Sent()


def test_too_many_requests_is_a_certain_no_with_the_wait_asked_for(hook: HookServer) -> None:
    hook.script = [answer(429, b"rate_limited", headers={"Retry-After": "30"})]

    assert slack(hook.url()).deliver(regressed()) == NotSent(
        "127.0.0.1 answered 429 (rate_limited)", retry_after=30.0
    )


def test_the_wait_may_be_a_date_or_missing(hook: HookServer) -> None:
    date = formatdate(time.time() + 60, usegmt=True)
    hook.script = [answer(429, headers={"Retry-After": date}), answer(429)]

    dated, missing = (slack(hook.url()).deliver(regressed()) for _ in range(2))

    assert isinstance(dated, NotSent)
    assert dated.retry_after == pytest.approx(60, abs=10)
    assert missing == NotSent("127.0.0.1 answered 429")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, "invalid_payload"),
        (403, "action_prohibited"),
        (404, "no_service"),
        (410, "channel_is_archived"),
    ],
)
def test_another_refusal_is_a_no_for_good(hook: HookServer, status: int, body: str) -> None:
    hook.script = [answer(status, body.encode())]

    assert slack(hook.url()).deliver(regressed()) == NotSent(
        f"127.0.0.1 answered {status} ({body}): check the channel's URL", permanent=True
    )


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_fault_of_the_server_leaves_it_open(hook: HookServer, status: int) -> None:
    hook.script = [answer(status, b"rollup_error", headers={"Retry-After": "30"})]

    assert slack(hook.url()).deliver(regressed()) == Unknown(
        f"127.0.0.1 answered {status} (rollup_error)"
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_but_named_without_its_path(
    hook: HookServer, status: int
) -> None:
    with HookServer() as elsewhere:
        hook.script = [redirect(status, elsewhere.url())]

        outcome = slack(hook.url()).deliver(regressed())

        assert elsewhere.posted == []
    assert outcome == NotSent(
        f"127.0.0.1 answered {status}, a redirect to http://127.0.0.1, which is not followed:"
        " give the new URL to the channel",
        permanent=True,
    )


@pytest.mark.parametrize(
    ("status", "headers"), [(302, {"Location": "/services/canary-token"}), (302, {}), (304, {})]
)
def test_a_redirect_that_names_no_host_is_one_all_the_same(
    hook: HookServer, status: int, headers: dict[str, str]
) -> None:
    hook.script = [answer(status, headers=headers)]

    outcome = slack(hook.url()).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert outcome.permanent
    assert TOKEN not in outcome.reason


def test_no_answer_in_time_leaves_it_open(hook: HookServer) -> None:
    hook.script = [hang()]
    started = time.monotonic()

    outcome = slack(hook.url(), IMPATIENCE).deliver(regressed())

    assert outcome == Unknown("127.0.0.1 did not answer within 0.4 s")
    assert time.monotonic() - started < 5
    assert len(hook.posted) == 1  # it had arrived all the same


@pytest.mark.parametrize("breaking", [reset(), garbage()])
def test_a_connection_that_breaks_off_leaves_it_open(hook: HookServer, breaking: Reply) -> None:
    hook.script = [breaking]

    outcome = slack(hook.url()).deliver(regressed())

    assert isinstance(outcome, Unknown)
    assert outcome.reason.startswith("127.0.0.1 broke off before it answered")
    assert len(hook.posted) == 1


def test_nothing_is_tried_twice(hook: HookServer) -> None:
    for reply in (answer(429), answer(500), reset(), hang(), answer(404)):
        hook.script, hook.posted = [reply], []

        webhook(hook.url(), timeout=IMPATIENCE).deliver(regressed())

        assert len(hook.posted) == 1


def test_nobody_listening_is_a_certain_no(closed_port: int) -> None:
    outcome = slack(f"http://127.0.0.1:{closed_port}/{TOKEN}").deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert not outcome.permanent
    assert outcome.reason.startswith("127.0.0.1 cannot be reached")


def test_a_name_that_nobody_knows_is_a_certain_no() -> None:
    outcome = slack(f"http://nothing.invalid/{TOKEN}").deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert not outcome.permanent


def test_no_tls_on_the_other_side_is_a_certain_no(hook: HookServer) -> None:
    outcome = slack(hook.url().replace("http://", "https://")).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert hook.posted == []


def test_a_certificate_that_is_not_trusted_is_a_certain_no(certificate: Certificate) -> None:
    with HookServer(certificate.server) as hook:
        outcome = slack(hook.url()).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert "certificate verify failed" in outcome.reason
    assert hook.posted == []


def test_a_certificate_that_is_trusted_will_do(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.trusted))

    with HookServer(certificate.server) as hook:
        assert slack(hook.url()).deliver(regressed()) == Sent()


def test_of_a_huge_answer_only_the_beginning_is_read(hook: HookServer) -> None:
    hook.script = [endless(404), endless(200)]
    started = time.monotonic()

    refused, accepted = (slack(hook.url()).deliver(regressed()) for _ in range(2))

    assert isinstance(refused, NotSent)
    assert len(refused.reason) < 400
    assert accepted == Sent()
    assert time.monotonic() - started < 5
    assert hook.sent < 50_000_000  # what fits the sockets' buffers, of two gigabytes


def test_a_refusal_that_drips_is_not_waited_for(hook: HookServer) -> None:
    hook.script = [endless(404, every=0.05)]
    started = time.monotonic()

    outcome = slack(hook.url(), IMPATIENCE).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert outcome.permanent
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "said",
    [
        "Cannot POST /services/T0/B0/canary-token",
        "no such token: canary-token",
        "http://{host}/services/T0/B0/canary-token is gone",
        "\x1b[31mno\x00\r\n  \x9b",
    ],
)
def test_what_the_server_says_is_quoted_without_the_secret_and_clean(
    hook: HookServer, said: str
) -> None:
    hook.script = [answer(404, said.replace("{host}", hook.host).encode())]

    outcome = slack(hook.url()).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert TOKEN not in outcome.reason
    assert outcome.reason.isprintable()
    assert "404 (" in outcome.reason


@pytest.mark.parametrize("reply", [answer(200), answer(500), reset(), redirect(302, "/x")])
def test_neither_the_url_nor_a_question_is_logged_even_when_all_is(
    hook: HookServer, reply: Reply, capfd: pytest.CaptureFixture[str]
) -> None:
    configure(LogSettings(level="debug", format="json"), verbosity=2)
    hook.script = [reply]

    slack(hook.url()).deliver(regressed())

    logged = "".join(capfd.readouterr())
    assert TOKEN not in logged
    assert "cancel" not in logged
