"""What becomes of a mail, on a real connection."""

import time

import pytest
from pydantic import SecretStr

from pipeline.alerts.base import NotSent, Sent, Unknown
from pipeline.alerts.email import EmailChannel, Mailbox
from pipeline.alerts.email_message import email_message
from pipeline.alerts.settings import Security
from tests.integration.pipeline.alerts.conftest import IMPATIENCE, PATIENCE, Certificate
from tests.loopback.smtp_server import DROP, HANG, SMTPServer
from tests.unit.pipeline.alerts.examples import regressed

SENDER = "recallwatch@example.org"
RECIPIENTS = ("search@example.org", "oncall@example.org")
PASSWORD = "canary-password"


def plain(port: int, behaviour: str = "") -> EmailChannel:
    """Return a channel to a server that behaves so; one that hangs is not waited for long."""
    timeout = IMPATIENCE if behaviour == HANG else PATIENCE
    return channel(Mailbox("127.0.0.1", port, "none"), timeout)


def channel(mailbox: Mailbox, timeout: float = PATIENCE) -> EmailChannel:
    return EmailChannel("mail", mailbox, SENDER, RECIPIENTS, timeout=timeout)


def test_one_mail_goes_to_all_recipients() -> None:
    with SMTPServer() as server:
        assert plain(server.port).deliver(regressed()) == Sent()

    (mail,) = server.mails
    assert (mail.sender, mail.recipients) == (SENDER, list(RECIPIENTS))
    sent, received = email_message(regressed(), SENDER, RECIPIENTS), mail.message()
    assert received["Message-ID"] == sent["Message-ID"] == "<run-41-regressed@example.org>"
    assert [part.get_content().splitlines() for part in received.iter_parts()] == (
        [part.get_content().splitlines() for part in sent.iter_parts()]
    )
    assert server.commands[-1] == "QUIT"


def test_lines_that_begin_with_a_full_stop_arrive_as_they_are() -> None:
    with SMTPServer() as server:
        plain(server.port).deliver(regressed(findings=(), reasons=("..", ". a"), reproduce="."))

    body = server.mails[0].message().get_body(("plain",))
    assert body is not None
    assert "  ..\n  . a\n" in body.get_content().replace("\r\n", "\n")


@pytest.mark.parametrize("stage", ["CONNECT", "MAIL", "RCPT", "DATA", "END"])
@pytest.mark.parametrize(
    ("said", "permanent"), [("451 try later", False), ("554 not from you", True)]
)
def test_a_refusal_is_a_certain_no_at_any_stage(stage: str, said: str, *, permanent: bool) -> None:
    with SMTPServer({stage: [said]}) as server:
        outcome = plain(server.port).deliver(regressed())

    assert outcome == NotSent(f"mail server 127.0.0.1 answered {said}", permanent=permanent)


@pytest.mark.parametrize("stage", ["CONNECT", "MAIL", "RCPT"])
@pytest.mark.parametrize("breaking", [DROP, HANG])
def test_a_break_before_the_mail_is_a_certain_no(stage: str, breaking: str) -> None:
    with SMTPServer({stage: [breaking]}) as server:
        outcome = plain(server.port, breaking).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert not outcome.permanent
    assert server.mails == []


@pytest.mark.parametrize("breaking", [DROP, HANG, "hello", "354 more"])
def test_no_clear_answer_to_the_whole_mail_leaves_it_open(breaking: str) -> None:
    started = time.monotonic()
    with SMTPServer({"END": [breaking]}) as server:
        outcome = plain(server.port, breaking).deliver(regressed())

    assert isinstance(outcome, Unknown)
    assert len(server.mails) == 1  # it had arrived all the same
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("goodbye", ["221 bye", "421 too busy", "500 what?", DROP, HANG])
def test_a_mail_that_was_taken_is_sent_whatever_follows(goodbye: str) -> None:
    with SMTPServer({"QUIT": [goodbye]}) as server:
        assert plain(server.port, goodbye).deliver(regressed()) == Sent()


def test_a_recipient_who_is_refused_does_not_keep_the_mail_from_the_others() -> None:
    with SMTPServer({"RCPT": ["550 no such user", "250 fine"]}) as server:
        outcome = plain(server.port).deliver(regressed())

    assert outcome == Sent(
        "mail server 127.0.0.1 refused 1 of 2 recipients, the first with 550 no such user"
    )
    assert server.mails[0].recipients == [RECIPIENTS[1]]


def test_all_refused_is_final_only_if_none_may_be_taken_later() -> None:
    with SMTPServer({"RCPT": ["550 no such user", "450 mailbox busy"]}) as server:
        outcome = plain(server.port).deliver(regressed())

    assert outcome == NotSent("mail server 127.0.0.1 answered 450 mailbox busy")


def test_nobody_listening_is_a_certain_no(closed_port: int) -> None:
    outcome = plain(closed_port).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert not outcome.permanent


def test_a_name_that_nobody_knows_is_a_certain_no() -> None:
    outcome = channel(Mailbox("nothing.invalid", 25, "none")).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert not outcome.permanent


@pytest.mark.parametrize("security", ["starttls", "ssl"])
def test_the_login_and_the_mail_go_encrypted(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch, security: Security
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.trusted))
    with SMTPServer(tls=certificate.server, implicit=security == "ssl") as server:
        mailbox = Mailbox("127.0.0.1", server.port, security, "recallwatch", SecretStr(PASSWORD))
        assert channel(mailbox).deliver(regressed()) == Sent()

    (mail,) = server.mails
    assert mail.encrypted
    assert mail.login == ("recallwatch", PASSWORD)


@pytest.mark.parametrize("security", ["starttls", "ssl"])
def test_a_certificate_that_is_not_trusted_is_a_certain_no(
    certificate: Certificate, security: Security
) -> None:
    with SMTPServer(tls=certificate.server, implicit=security == "ssl") as server:
        mailbox = Mailbox("127.0.0.1", server.port, security, "user", SecretStr(PASSWORD))
        outcome = channel(mailbox).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert "certificate verify failed" in outcome.reason
    assert "AUTH" not in server.commands


def test_a_server_that_hides_starttls_gets_neither_login_nor_mail() -> None:
    with SMTPServer() as server:
        mailbox = Mailbox("127.0.0.1", server.port, "starttls", "user", SecretStr(PASSWORD))
        outcome = channel(mailbox).deliver(regressed())

    assert isinstance(outcome, NotSent)
    assert outcome.permanent
    assert "STARTTLS" in outcome.reason
    assert not {"AUTH", "MAIL"} & set(server.commands)


@pytest.mark.parametrize(
    ("said", "permanent"), [("535 wrong password", True), ("454 later", False)]
)
def test_a_refused_login_is_a_certain_no_that_does_not_quote_the_password(
    said: str, *, permanent: bool
) -> None:
    with SMTPServer({"AUTH": [f"{said} {PASSWORD}"]}) as server:
        mailbox = Mailbox("127.0.0.1", server.port, "none", "user", SecretStr(PASSWORD))
        outcome = channel(mailbox).deliver(regressed())

    assert outcome == NotSent(f"mail server 127.0.0.1 answered {said} ***", permanent=permanent)
