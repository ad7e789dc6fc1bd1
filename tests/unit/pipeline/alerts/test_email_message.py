from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from pipeline.alerts.email_message import email_message
from pipeline.alerts.message import Alert, LostQuestion
from tests.unit.pipeline.alerts.examples import any_alert, regressed, stale

SENDER = "recallwatch@example.org"
RECIPIENTS = ("search@example.org", "oncall@example.org")
HEADERS = {
    *("Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted"),
    *("MIME-Version", "Content-Type"),
}


def received(alert: Alert) -> EmailMessage:
    """Return the mail as a mailbox reads it."""
    raw = email_message(alert, SENDER, RECIPIENTS).as_bytes()
    message = message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.links: list[str | None] = []
        self.shown = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.shown += data


@settings(max_examples=60, deadline=None)
@given(any_alert)
def test_any_alert_is_a_well_formed_mail_with_our_headers_and_tags_only(alert: Alert) -> None:
    raw = email_message(alert, SENDER, RECIPIENTS).as_bytes()
    message = received(alert)

    assert raw.isascii()
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))  # RFC 5322, 2.1.1
    assert set(message.keys()) == HEADERS
    assert message.defects == []
    assert [address.addr_spec for address in message["To"].addresses] == list(RECIPIENTS)
    assert message["Message-ID"] == f"<{alert.idempotency_id}@example.org>"
    tags = Tags(part(message, "html"))
    assert tags.found <= {"html", "body", "p", "strong", "h3", "ul", "li", "a", "small"}
    assert tags.links == ([alert.link] if alert.link else [])


def test_the_headers() -> None:
    message = received(regressed())

    assert message["Subject"] == "[recallwatch] support / vector: retrieval regressed"
    assert message["From"] == "recallwatch <recallwatch@example.org>"
    assert message["To"] == "search@example.org, oncall@example.org"
    assert message["Date"] == "Mon, 02 Mar 2026 06:00:00 +0000"
    assert message["Message-ID"] == "<run-41-regressed@example.org>"
    assert message["Auto-Submitted"] == "auto-generated"


@pytest.mark.parametrize("name", ["a\r\nBcc: x@example.org", "a\nBcc: x@example.org", "é" * 500])
def test_a_name_adds_no_header(name: str) -> None:
    message = received(regressed(set_name=name))

    assert set(message.keys()) == HEADERS
    assert "\n" not in message["Subject"]
    assert len(message["Subject"]) <= 150


def test_the_plain_text_and_the_html_say_the_same() -> None:
    message = received(regressed())

    plain, shown = part(message, "plain"), Tags(part(message, "html")).shown
    for words in (
        "recall@5 0.9100 -> 0.8800 (-0.0300)",
        "How do I cancel? (expected https://docs.example.org/cancel:3: no longer found)",
        "recallwatch eval --set support --strategy vector -k 5 --level chunk",
        "run 41 against run 38",
    ):
        assert words in plain
        assert words in shown
    assert "Open run 41: https://recallwatch.example.org/runs/41" in plain


def test_a_question_is_text_in_the_html() -> None:
    question = LostQuestion("<script>alert(1)</script> & <b>", "d:0", 9)

    html = part(received(regressed(lost_questions=(question,))), "html")

    assert "<script>" not in html
    assert "<script>alert(1)</script> & <b>" in Tags(html).shown


def test_a_repeated_alert_is_short() -> None:
    lines = part(received(regressed(repeat=3)), "plain").split("\n\n")

    assert lines[0] == (
        "support / vector: still regressed, 3rd run; recall@5 0.9100 -> 0.8800 (-0.0300);"
        " comes from the index"
    )
    assert len(lines) == 3  # and the link, and the footer


def test_without_a_link_there_is_none() -> None:
    assert "Open" not in part(received(stale()), "plain")
