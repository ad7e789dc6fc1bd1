"""The expected keys in one cell of a table: a list with separators, or JSON.

    guide.html:3
    guide.html:3; faq.html:0=2
    {"guide.html:3": 1, "a;b:0": 2}

Parts are apart by line breaks, `|` or `;`, or by commas where each part ends in a chunk index. A
document id may hold some of these: `smith, j.:0` is one key and `a:0, b:0` are two. What could be
either is refused; JSON says it for certain.
"""

import json
import re
from collections.abc import Iterable, Mapping

from pipeline.errors import InputError
from pipeline.golden.readers.ids import Ids, is_chunk_key
from pipeline.golden.readers.values import grade_from
from pipeline.text import quoted
from pipeline.types import Kind

_SEPARATORS = ("\n", "|", ";", ",")
_CERTAIN = ("\n", "|")
_MAY_BE_GRADED = re.compile(r"=\s*[-+]?\d+(\.\d*)?$")
_MAY_BE_SEVERAL = re.compile(r":\d+(\s*=\s*[-+]?\d+)?\s+[^\s=]")
_GRADED = re.compile(r"(.+:(?:0|[1-9][0-9]{0,17}))\s*=\s*([^:]*)", re.DOTALL)


def expected_from(cell: str, ids: Ids) -> dict[str, object]:
    """Return key -> grade of the keys in a cell, 1 where none is stated.

    Grades that JSON states are passed on as they are, for the record to check. Raises InputError,
    without a place, for a key that stands twice, and for what may be one id or several.
    """
    text = cell.strip()
    if text[:1] in {"[", "{"}:
        stated = _from_json(text)
        if stated is not None:
            return _once((ids.key(name), grade) for name, grade in stated)
    return _once(_entry(part, ids) for part in _parts(text))


def expected_from_json(value: object, ids: Ids) -> object:
    """Return the same from a parsed JSON list or object; another value is for the record to refuse.

    Raises InputError, without a place, for a key that is no text or stands twice.
    """
    match value:
        case list():
            return _once((ids.key(_name(name)), 1) for name in value)
        case dict():
            return _once((ids.key(name), grade) for name, grade in value.items())
        case str():
            return expected_from(value, ids)
    return value


def refuse_nothing(expected: object, kind: object) -> None:
    """Raise InputError where no key is expected and the kind does not say that none is."""
    if not expected and kind != Kind.UNANSWERABLE:
        raise InputError(
            "no key is expected: name the chunks that should come back, or make the kind"
            " unanswerable"
        )


def expected_cell(expected: Mapping[str, int]) -> str:
    """Return a cell from which `expected_from` reads the same keys and grades, in their order."""
    entries = (key if grade == 1 else f"{key}={grade}" for key, grade in expected.items())
    listed = "; ".join(entries)
    try:
        if list(expected_from(listed, Ids()).items()) == list(expected.items()):
            return listed
    except InputError:
        pass
    return json.dumps(dict(expected), ensure_ascii=False)


def _from_json(text: str) -> list[tuple[str, object]] | None:
    """Return the keys and grades of a JSON list or object; None for any other text."""
    try:
        value = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    # The hook makes a list of an object's pairs.
    pairs = value if text.startswith("{") else [(name, 1) for name in value]
    return [(_name(name), grade) for name, grade in pairs]


def _name(name: object) -> str:
    # Ids are numbers in many a collection; in Python, but not in JSON, a boolean is one.
    if isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool)):
        return str(name)
    raise InputError("expected is a JSON list of something else than keys: list texts")


def _parts(text: str) -> list[str]:
    """Split a list; raises InputError for what may be a list or an id that holds a separator."""
    for separator in _SEPARATORS:
        parts = _split(text, separator)
        if len(parts) < 2:  # noqa: PLR2004 - one part is no list
            continue
        are_keys = [is_chunk_key(_without_grade(part)) for part in parts]
        stands_alone = separator == ";" and ("; " in text or not any(are_keys))
        if all(are_keys) or separator in _CERTAIN or stands_alone:
            return parts
        if are_keys[-1] and sum(are_keys) == 1:
            continue  # `smith, j.:0`, or `https://a.example/b;c=1:0`
        raise InputError(
            f"expected is {quoted(text)}, which may be one id or several: separate ids with ; and a"
            " blank, or write a JSON list"
        )
    return [text] if text else []


def _split(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


def _without_grade(part: str) -> str:
    graded = _GRADED.fullmatch(part)
    return graded[1] if graded else part


def _entry(part: str, ids: Ids) -> tuple[str, object]:
    graded = _GRADED.fullmatch(part)
    may_be_graded = graded is None and _MAY_BE_GRADED.search(part)
    if may_be_graded or _MAY_BE_SEVERAL.search(part):
        raise InputError(
            f"expected holds {quoted(part)}, which may be an id, or ids and grades: give each id"
            " its chunk index and separate them with ; (id:0=2; other:0), or write a JSON object"
            ' {"id": 2}'
        )
    return (ids.key(graded[1]), grade_from(graded[2])) if graded else (ids.key(part), 1)


def _once(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    expected: dict[str, object] = {}
    for key, grade in pairs:
        if key in expected:
            raise InputError(f"expected lists the key {quoted(key)} twice: keep one")
        expected[key] = grade
    return expected
