"""What text has to go through before a person's terminal or a log file sees it.

Texts come from strangers (chunks, questions, servers' error messages): they must not be able to
send escape codes to a terminal. Secrets must not reach either.
"""

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

MASK = "***"

# All of Unicode's category Cc but tab and line feed; the marks that reorder text (CVE-2021-42574);
# halves of surrogate pairs, which no encoding can write.
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"

_CONTROL = re.compile(f"[{CONTROLS}]")
# A password runs to the last @ of the authority, so that one with an @ in it does not show.
_URL_PASSWORD = re.compile(r"(://[^\s:/@\"']*:)[^\s/?#\"']*@")
_NAMED_PASSWORD = re.compile(r"(password=)[^\s&\"']+", re.IGNORECASE)  # sslpassword= too


def clean(text: str) -> str:
    """Return the text without control characters; line feeds and tabs stay."""
    return _CONTROL.sub("", text)


def mask_passwords(text: str) -> str:
    """Mask the passwords of all URLs and connection strings in the text, and nothing else."""
    return _NAMED_PASSWORD.sub(rf"\1{MASK}", _URL_PASSWORD.sub(rf"\1{MASK}@", text))


class Masker:
    """Masks known secret values, and passwords in URLs, wherever they stand in a text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets for form in _forms(secret) if form}
        # Longest first: one secret may begin with another.
        ordered = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __call__(self, text: str) -> str:
        """Return the text with every secret replaced by `***`."""
        hidden = self._known.sub(MASK, text) if self._known else text
        return mask_passwords(hidden)


def _quoted(secret: str, safe: str) -> str:
    return quote(secret, safe=safe, errors="replace")


def _forms(secret: str) -> Iterable[str]:
    """Yield a secret as texts may hold it: as it is, in a URL, in a repr, each in JSON too."""
    for form in (secret, _quoted(secret, ""), _quoted(secret, "/"), repr(secret)[1:-1]):
        yield form
        yield json.dumps(form)[1:-1]
