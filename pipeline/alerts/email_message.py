"""An alert as an e-mail: plain text, and the same as simple HTML."""

from collections.abc import Sequence
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from html import escape

from pipeline.alerts import wording
from pipeline.alerts.message import Alert
from pipeline.safe_text import clean

LONGEST_SUBJECT = 150
"""Characters."""

# All of it in ASCII: not every server takes 8 bits.
_POLICY = SMTP.clone(cte_type="7bit")


def email_message(alert: Alert, sender: str, recipients: Sequence[str]) -> EmailMessage:
    """Return the message; addresses have passed the settings' check.

    Its Message-ID and date come from the alert, so that a mail that was sent twice shows once in
    most mailboxes.
    """
    message = EmailMessage(policy=_POLICY)
    message["Subject"] = _cut(f"[recallwatch] {wording.headline(alert)}")
    message["From"] = Address("recallwatch", addr_spec=sender)
    message["To"] = [Address(addr_spec=recipient) for recipient in recipients]
    message["Date"] = datetime.fromisoformat(alert.created_at)
    message["Message-ID"] = f"<{alert.idempotency_id}@{sender.rpartition('@')[2]}>"
    # RFC 3834: no out-of-office replies.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(_plain(alert))
    message.add_alternative(_html(alert), subtype="html")
    return message


def _paragraphs(alert: Alert) -> list[wording.Paragraph]:
    """Return the body; a repeated alert is its summary and nothing else."""
    if alert.repeat > 1:
        return []
    command = [clean(alert.reproduce)] if alert.reproduce else []
    return [
        *wording.paragraphs(alert),
        *(wording.Paragraph(wording.command_title(alert), [line]) for line in command),
    ]


def _plain(alert: Alert) -> str:
    body = [
        "\n".join([paragraph.title, *(f"  {line}" for line in paragraph.lines)])
        for paragraph in _paragraphs(alert)
    ]
    link = [f"{wording.link_label(alert)}: {alert.link}"] if alert.link else []
    return "\n\n".join([wording.summary(alert), *body, *link, wording.footer(alert)]) + "\n"


def _html(alert: Alert) -> str:
    parts = [f"<p><strong>{escape(wording.summary(alert))}</strong></p>"]
    for paragraph in _paragraphs(alert):
        items = "\n".join(f"<li>{escape(line)}</li>" for line in paragraph.lines)
        parts.append(f"<h3>{escape(paragraph.title)}</h3>\n<ul>\n{items}\n</ul>")
    if alert.link:
        parts.append(f'<p><a href="{escape(alert.link)}">{wording.link_label(alert)}</a></p>')
    parts.append(f"<p><small>{escape(wording.footer(alert))}</small></p>")
    return "<!DOCTYPE html>\n<html>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SUBJECT else f"{text[: LONGEST_SUBJECT - 1]}…"
