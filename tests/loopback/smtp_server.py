"""A mail server with scripted misbehaviour.

with SMTPServer({"RCPT": ["250 fine", "550 no such user"]}) as server:
    ...  # the second recipient is refused; server.mails holds what was accepted
"""

import base64
import socketserver
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Self

PATIENCE = 10.0
"""Seconds after which even a server that hangs lets go."""

DROP = "drop"
"""In place of an answer: close the connection."""

HANG = "hang"
"""In place of an answer: say nothing for PATIENCE seconds, or until the server closes."""

ANSWERS = {
    "CONNECT": "220 mail.test ready",
    "AUTH": "235 welcome",
    "MAIL": "250 fine",
    "RCPT": "250 fine",
    "DATA": "354 go ahead",
    "END": "250 taken",
    "QUIT": "221 bye",
}
"""What is answered at each stage; END is the end of the mail, after its final dot."""


@dataclass
class Mail:
    """A mail that was taken off the wire up to its final dot, whatever was answered then."""

    sender: str
    recipients: list[str] = field(default_factory=list)
    content: bytes = b""
    encrypted: bool = False
    login: tuple[str, str] | None = None

    def message(self) -> EmailMessage:
        message = message_from_bytes(self.content, policy=default)
        assert isinstance(message, EmailMessage)
        return message


class SMTPServer:
    """`answers`: stage -> the answers in turn, the last one for good; `mails` records.

    `tls`: a server's context; STARTTLS is then offered, or with `implicit` spoken from the start.
    """

    def __init__(
        self,
        answers: Mapping[str, Sequence[str]] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        implicit: bool = False,
    ) -> None:
        self.answers = {stage: list(lines) for stage, lines in (answers or {}).items()}
        self.mails: list[Mail] = []
        self.commands: list[str] = []
        self.tls = tls
        self.implicit = implicit
        self.closing = threading.Event()
        self._tcp = _Server(("127.0.0.1", 0), _session_of(self))
        self._thread = threading.Thread(target=self._tcp.serve_forever, args=(0.01,))

    @property
    def port(self) -> int:
        return int(self._tcp.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._tcp.shutdown()
        self._thread.join()
        self._tcp.server_close()

    def next_answer(self, stage: str) -> str:
        lines = self.answers.get(stage) or [ANSWERS[stage]]
        return lines.pop(0) if len(lines) > 1 else lines[0]


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

    def handle_error(self, *_: object) -> None:
        """Keep quiet: connections that break off are what the tests are about."""


class _Session(socketserver.StreamRequestHandler):
    mailbox: SMTPServer
    mail: Mail
    encrypted = False
    login: tuple[str, str] | None = None
    open = True

    def handle(self) -> None:
        if self.mailbox.implicit:
            self.encrypt()
        self.answer("CONNECT")
        while self.open and (line := self.rfile.readline()):
            command = line.decode().strip()
            verb = command.partition(" ")[0].upper()
            self.mailbox.commands.append(verb)
            self.obey(verb, command)

    def finish(self) -> None:
        super().finish()
        self.request.close()  # after STARTTLS it is another socket than the one socketserver knows

    def obey(self, verb: str, command: str) -> None:
        match verb:
            case "EHLO":
                self.say(self.greeting())
            case "STARTTLS":
                self.say("220 go ahead")
                self.encrypt()
            case "AUTH":
                _, user, password = base64.b64decode(command.split()[2]).decode().split("\0")
                self.login = (user, password)
                self.answer("AUTH")
            case "MAIL":
                self.mail = Mail(_path(command), encrypted=self.encrypted, login=self.login)
                self.answer("MAIL")
            case "RCPT":
                if self.answer("RCPT").startswith("250"):
                    self.mail.recipients.append(_path(command))
            case "DATA":
                if self.answer("DATA").startswith("354"):
                    self.take()
            case "QUIT":
                self.answer("QUIT")
                self.open = False

    def greeting(self) -> str:
        offers = ["mail.test", "AUTH PLAIN"]
        if self.mailbox.tls and not self.encrypted:
            offers.append("STARTTLS")
        *more, last = offers
        return "\r\n".join([*(f"250-{offer}" for offer in more), f"250 {last}"])

    def take(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in {b".\r\n", b""}:
            lines.append(line.removeprefix(b"."))
        self.mail.content = b"".join(lines)
        self.mailbox.mails.append(self.mail)
        self.answer("END")

    def answer(self, stage: str) -> str:
        line = self.mailbox.next_answer(stage)
        if line == HANG:
            self.mailbox.closing.wait(PATIENCE)
        if line in {HANG, DROP}:
            self.open = False
        else:
            self.say(line)
        return line

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def encrypt(self) -> None:
        assert self.mailbox.tls is not None
        self.request = self.mailbox.tls.wrap_socket(self.request, server_side=True)
        self.setup()
        self.encrypted = True


def _session_of(server: SMTPServer) -> type[_Session]:
    class Session(_Session):
        mailbox = server

    return Session


def _path(command: str) -> str:
    """Return the address between the angle brackets."""
    return command.partition("<")[2].partition(">")[0]
