"""From the fields of one record to a question, whatever the format of the file that held it.

Raises InputError with a reason only; the reader of the format knows the file and the line.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from pipeline.errors import InputError
from pipeline.golden.judgments import evidence_from, judgments_from, kind_from
from pipeline.text import (
    MAX_QUESTION_CHARACTERS,
    described,
    indexable,
    quoted,
    storable,
    visible,
)
from pipeline.types import Kind, Question, Source

FIELDS = (
    "question",
    "expected",
    "kind",
    "category",
    "tenant",
    "language",
    "source",
    "must_pass",
    "external_id",
    "notes",
    "evidence",
)

Choice = TypeVar("Choice", bound=StrEnum)


def question_from(record: Mapping[str, object]) -> Question:
    """Return the question that the fields of a record describe; texts stay exactly as they are.

    `question` is required, and so is `expected` unless the kind is stated to be unanswerable; an
    empty object says it too. A field that is null counts as absent. Raises InputError, without a
    place, for the first fault.
    """
    _refuse_unknown(record)
    stated_kind = _choice(record, "kind", Kind)
    expected = _expected(record, stated_kind)
    return Question(
        text=_question_text(record),
        expected=expected,
        kind=kind_from(stated_kind, expected),
        category=_label(record, "category"),
        tenant=_label(record, "tenant"),
        language=_label(record, "language"),
        source=_choice(record, "source", Source) or Source.MANUAL,
        must_pass=_flag(record, "must_pass"),
        external_id=_external_id(record),
        notes=_notes(record),
        evidence=evidence_from(record.get("evidence"), expected),
    )


def _refuse_unknown(record: Mapping[str, object]) -> None:
    unknown = next((name for name in record if name not in FIELDS), None)
    if unknown is None:
        return
    close = get_close_matches(unknown, FIELDS, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise InputError(f"unknown field {quoted(unknown)}{hint}: allowed are {', '.join(FIELDS)}")


def _question_text(record: Mapping[str, object]) -> str:
    if "question" not in record:
        raise InputError("the field question is missing")
    text = visible("question", record["question"])
    if len(text) > MAX_QUESTION_CHARACTERS:
        raise InputError(
            f"question is {len(text):,} characters long; "
            f"at most {MAX_QUESTION_CHARACTERS:,} are allowed"
        )
    return text


def _expected(record: Mapping[str, object], stated_kind: Kind | None) -> dict[str, int]:
    expected = record.get("expected")
    # An empty object is written by hand, an empty list by a tool that found nothing.
    if expected == [] and stated_kind is None:
        raise InputError(
            "expected is an empty list: name the chunks that should come back, "
            "or say that kind is unanswerable"
        )
    if expected is not None:
        return judgments_from(expected)
    if stated_kind is Kind.UNANSWERABLE:
        return {}
    raise InputError(
        "the field expected is missing: name the chunks that should come back, "
        "or write {} where the corpus holds no answer"
    )


def _choice(record: Mapping[str, object], name: str, choices: type[Choice]) -> Choice | None:
    value = record.get(name)
    if value is None:
        return None
    for choice in choices:
        if choice == value:
            return choice
    hint = "; golden import --source says one for all questions" if name == "source" else ""
    raise InputError(f"{name} is {described(value)}: it must be one of {', '.join(choices)}{hint}")


def _label(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    return None if value is None else indexable(name, value)


def _external_id(record: Mapping[str, object]) -> str | None:
    value = record.get("external_id")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return None if value is None else indexable("external_id", value)


def _flag(record: Mapping[str, object], name: str) -> bool:
    value = record.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InputError(f"{name} is {described(value)}: true or false is needed")
    return value


def _notes(record: Mapping[str, object]) -> str | None:
    value = record.get("notes")
    return None if value is None else storable("notes", value)
