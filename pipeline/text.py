"""What a text must be to be stored, compared and shown."""

import json
import re
import unicodedata

from pipeline.errors import InputError

MAX_QUESTION_CHARACTERS = 8_000
MAX_NAME_BYTES = 2_000
"""Keys and labels are indexed, and a PostgreSQL index entry ends at 2,704 bytes."""

_ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
_VISIBLE = re.compile(rf"[^\s{_ZERO_WIDTH}]")
_INVISIBLE = re.compile(f"[{_ZERO_WIDTH}]")
_WITHOUT_ZERO_WIDTH = str.maketrans("", "", _ZERO_WIDTH)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SHOWN_CHARACTERS = 60


def normalised(text: str) -> str:
    """Return the text as a reader sees it: what two spellings of one question have in common.

    NFC, without zero-width characters and byte order marks, each run of blanks one space, none at
    the ends. Case stays: `US` and `us` are different words.
    """
    return " ".join(unicodedata.normalize("NFC", text.translate(_WITHOUT_ZERO_WIDTH)).split())


def is_storable(text: str) -> bool:
    """Tell whether PostgreSQL stores a text: no NUL, no half of a surrogate pair."""
    return _UNSTORABLE.search(text) is None


def is_blank(text: str) -> bool:
    """Tell whether there is nothing to see in a text: blanks and zero-width characters only."""
    return _VISIBLE.search(text) is None


def holds_invisible(text: str) -> bool:
    """Tell whether a text holds zero-width characters or byte order marks."""
    return _INVISIBLE.search(text) is not None


def is_composed(text: str) -> bool:
    """Tell whether a text is in NFC, the form in which keyboards write."""
    return unicodedata.is_normalized("NFC", text)


def storable(name: str, value: object) -> str:
    """Return the value of field `name` as it is, if it is a text that PostgreSQL can store.

    Raises InputError for another type, a NUL character, or half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} is {described(value)}: a text is needed")
    if "\0" in value:
        raise InputError(f"{name} holds a NUL character (\\u0000): take it out")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = ascii(value[error.start])[1:-1]
        raise InputError(f"{name} holds {half}, half of a surrogate pair: take it out") from None
    return value


def visible(name: str, value: object) -> str:
    """Return `storable(name, value)`; raises InputError when it is blank."""
    text = storable(name, value)
    if is_blank(text):
        raise InputError(f"{name} is blank")
    return text


def indexable(name: str, value: object) -> str:
    """Return `visible(name, value)`; raises InputError when it is longer than MAX_NAME_BYTES."""
    text = visible(name, value)
    size = len(text.encode())
    if size > MAX_NAME_BYTES:
        raise InputError(f"{name} is {size:,} bytes long; at most {MAX_NAME_BYTES:,} are allowed")
    return text


def described(value: object) -> str:
    """Show a JSON value in one short line of an error."""
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case str():
            return quoted(value)
        case _:
            return _cut(json.dumps(value))


def quoted(text: str) -> str:
    """Show a text in one short line of an error: escaped, cut and in quotes."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
