"""The channel to people's mailboxes, over SMTP.

Until the server has taken the message's last line it has nothing that it could deliver, so any
failure before is a certain one. From then on only its own answer tells.
"""

import smtplib
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from pydantic import SecretStr

from pipeline.alerts.base import Delivery, NotSent, Sent, Unknown
from pipeline.alerts.email_message import email_message
from pipeline.alerts.message import Alert
from pipeline.alerts.settings import Security
from pipeline.safe_text import Masker, clean

TIMEOUT = 10.0
"""Seconds that each answer of the server may take."""

_OK = range(200, 300)
_LATER = range(400, 500)
_NEVER = range(500, 600)
_LONGEST_QUOTE = 200


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The server to hand mails to, and what it asks for; `user` and `password` come together."""

    host: str
    port: int
    security: Security
    user: str | None = None
    password: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class EmailChannel:
    """Mails to fixed recipients; all addresses have passed the settings' check."""

    name: str
    mailbox: Mailbox
    sender: str
    recipients: tuple[str, ...]
    timeout: float = TIMEOUT
    may_repeat: ClassVar[bool] = False

    def deliver(self, alert: Alert) -> Delivery:
        """Hand one mail over, to all recipients at once.

        Sent as soon as one recipient was taken; the note counts those who were not.
        """
        content = email_message(alert, self.sender, self.recipients).as_bytes()
        server: smtplib.SMTP | None = None
        try:
            server = self._connect()
            self._log_in(server)
            refused = self._address(server)
            return self._hand_over(server, content, refused)
        except smtplib.SMTPResponseException as error:
            return self._refused(error.smtp_code, error.smtp_error)
        except smtplib.SMTPNotSupportedError as error:
            return NotSent(self._in_words(f"cannot do what is asked: {error}"), permanent=True)
        except OSError as error:  # smtplib's own are among them
            return NotSent(self._in_words(f"cannot be reached, or broke off: {error}"))
        finally:
            _leave(server)

    def _connect(self) -> smtplib.SMTP:
        box = self.mailbox
        if box.security == "ssl":
            return smtplib.SMTP_SSL(
                box.host, box.port, timeout=self.timeout, context=ssl.create_default_context()
            )
        return smtplib.SMTP(box.host, box.port, timeout=self.timeout)

    def _log_in(self, server: smtplib.SMTP) -> None:
        if self.mailbox.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        server.ehlo_or_helo_if_needed()
        if self.mailbox.user is not None and self.mailbox.password is not None:
            server.login(self.mailbox.user, self.mailbox.password.get_secret_value())

    def _address(self, server: smtplib.SMTP) -> Mapping[str, tuple[int, bytes]]:
        """Name sender and recipients; return those who were refused, if not all were."""
        _expect_ok(server.mail(self.sender))
        answers = {recipient: server.rcpt(recipient) for recipient in self.recipients}
        refused = {name: answer for name, answer in answers.items() if answer[0] not in _OK}
        if len(refused) == len(answers):
            # One that may be taken later makes another try worth while.
            _expect_ok(min(refused.values()))
        return refused

    def _hand_over(
        self, server: smtplib.SMTP, content: bytes, refused: Mapping[str, tuple[int, bytes]]
    ) -> Delivery:
        try:
            code, answer = server.data(content)
        except smtplib.SMTPDataError as error:  # the answer to the command: nothing was sent yet
            return self._refused(error.smtp_code, error.smtp_error)
        except OSError as error:
            return Unknown(self._in_words(f"broke off while it took the mail: {error}"))
        if code in _LATER or code in _NEVER:
            return self._refused(code, answer)
        if code not in _OK:
            return Unknown(self._in_words(f"gave an answer of no use to the mail: {code}"))
        return Sent(self._note(refused) if refused else None)

    def _refused(self, code: int, answer: bytes | str) -> NotSent:
        text = answer if isinstance(answer, str) else answer.decode(errors="replace")
        return NotSent(self._in_words(f"answered {code} {text}"), permanent=code in _NEVER)

    def _note(self, refused: Mapping[str, tuple[int, bytes]]) -> str:
        code, answer = next(iter(refused.values()))
        said = f"{code} {answer.decode(errors='replace')}"
        return self._in_words(
            f"refused {len(refused)} of {len(self.recipients)} recipients, the first with {said}"
        )

    def _in_words(self, what: str) -> str:
        box = self.mailbox
        mask = Masker([box.password.get_secret_value()] if box.password else [])
        return " ".join(clean(mask(f"mail server {box.host} {what}")).split())[:_LONGEST_QUOTE]


def _expect_ok(answer: tuple[int, bytes]) -> None:
    if answer[0] not in _OK:
        raise smtplib.SMTPResponseException(*answer)


def _leave(server: smtplib.SMTP | None) -> None:
    """Say goodbye; what the server makes of that changes nothing about the mail."""
    if server is None:
        return
    with suppress(OSError):
        server.quit()
    server.close()
