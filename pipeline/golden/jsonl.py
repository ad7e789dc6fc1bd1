"""Golden sets as JSON lines: one question an object, one object a line, UTF-8.

    {"question": "How do I reset it?", "expected": {"manual.html:3": 2}, "category": "procedural"}

The fields are those of `pipeline.golden.record`. Another format is another module beside this one,
which feeds the same `question_from`.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

from pipeline.errors import InputError
from pipeline.golden.formats import (
    Read,
    ReadOptions,
    Record,
    Refused,
    refuse_options,
    refused,
)
from pipeline.golden.line_ends import split_lines
from pipeline.golden.record import question_from
from pipeline.lines import decoded, read_lines
from pipeline.text import described, quoted
from pipeline.types import Kind, Question, Source


def read(source: str, *, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for every line that is not blank; see `pipeline.golden.formats`.

    The file may be gzipped. It is read as it is consumed, in flat memory. Raises InputError, in one
    line that names file and line, for what `pipeline.lines.raw_lines` refuses, and for options
    of other formats.
    """
    refuse_options(source, options)
    for number, line in split_lines(Path(source)):
        if line.strip():
            yield _record_at(f"{source}:{number}", line, options)


def _record_at(place: str, line: bytes, options: ReadOptions) -> Record:
    raw = line.decode(errors="surrogateescape")
    try:
        stated = parse_object(decoded(line))
    except InputError as error:
        return Refused(place, str(error), raw)
    try:
        return Read(place, question_from(options.stated(stated)), raw)
    except InputError as error:
        return refused(place, error, raw, stated)


def read_questions(path: Path) -> Iterator[tuple[int, Question]]:
    """Yield the line number, from 1, and the question of every line that is not blank.

    Raises InputError, in one line that names file and line, for the first fault met, and for a file
    without a question.
    """
    number = 0
    for number, text in read_lines(path):
        try:
            yield number, question_from(parse_object(text))
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None
    if not number:
        raise InputError(f"{path}: holds no question")


def write_questions(questions: Iterable[Question], stream: BinaryIO) -> None:
    """Write one line a question, so that `read_questions` gives equal ones.

    Fields at their defaults are left out. The stream is binary: the file is UTF-8 whatever the
    locale says.
    """
    stream.writelines(map(_line_of, questions))


def parse_object(text: str) -> dict[str, object]:
    """Return a JSON object as it stands on a line; raises InputError, without a place."""
    try:
        value = _DECODER.decode(text.rstrip())
    except json.JSONDecodeError as error:
        raise InputError(
            f"invalid JSON at column {error.colno}: {error.msg} (each line is one JSON object)"
        ) from None
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None
    except ValueError:
        # Python reads no integer of more than 4,300 digits.
        raise InputError("the JSON holds a number with too many digits") from None
    if not isinstance(value, dict):
        raise InputError(f"the line is {described(value)}: each line is one JSON object")
    return value


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            raise InputError(f"{quoted(name)} stands twice in one object: keep one")
        fields[name] = value
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise InputError(f"{name} is not JSON: write a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def _line_of(question: Question) -> bytes:
    return json.dumps(record_of(question), ensure_ascii=False).encode() + b"\n"


def record_of(question: Question) -> dict[str, object]:
    """Return the fields of a question that are not at their defaults, as `question_from` reads."""
    optional = {
        "kind": None if question.kind is Kind.ANSWERABLE else question.kind,
        "category": question.category,
        "tenant": question.tenant,
        "language": question.language,
        "source": None if question.source is Source.MANUAL else question.source,
        "must_pass": question.must_pass or None,
        "external_id": question.external_id,
        "notes": question.notes,
        "evidence": dict(question.evidence) or None,
    }
    stated = {name: value for name, value in optional.items() if value is not None}
    return {"question": question.text, "expected": dict(question.expected), **stated}
