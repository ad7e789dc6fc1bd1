"""Judgments as a file states them: chunk key -> grade, or a plain list of keys; what was judged."""

import re
from collections.abc import Mapping

from pipeline.errors import InputError
from pipeline.text import described, indexable, is_blank, quoted, visible
from pipeline.types import Kind, split_key

MAX_KEYS = 10_000
"""Keys that one question may expect."""

_LARGEST_GRADE = 2**31 - 1
# As `make_key` writes it, so "07" could never match; 18 digits fit PostgreSQL's bigint.
_CHUNK_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_SHAPE = "a key looks like document_id:chunk_index, as 'guide.html:0'"


def judgments_from(expected: object) -> dict[str, int]:
    """Return key -> grade from a JSON object, or from a list of keys, each of grade 1.

    A grade of 0 or below says: judged, not relevant. Raises InputError, without a place, for
    another type, more than MAX_KEYS keys, a key that is not document_id:chunk_index, or a grade
    that is not an integer (2.0 is one).
    """
    if isinstance(expected, list | dict) and len(expected) > MAX_KEYS:
        raise InputError(f"expected holds {len(expected):,} keys; at most {MAX_KEYS:,} are allowed")
    if isinstance(expected, list):
        return _all_of_grade_one(expected)
    if isinstance(expected, dict):
        return {checked_key(key): _checked_grade(key, grade) for key, grade in expected.items()}
    raise InputError(
        f"expected is {described(expected)}: an object of key -> grade or a list of keys is needed"
    )


def _all_of_grade_one(keys: list[object]) -> dict[str, int]:
    judgments: dict[str, int] = {}
    for key in map(checked_key, keys):
        if key in judgments:
            raise InputError(f"expected lists the key {quoted(key)} twice: keep one")
        judgments[key] = 1
    return judgments


def checked_key(value: object) -> str:
    """Return a chunk key as it is; raises InputError, which says what a key looks like."""
    key = indexable("an expected key", value)
    try:
        document_id, chunk_index = split_key(key)
    except ValueError:
        raise InputError(f"expected key {quoted(key)} has no colon: {_SHAPE}") from None
    if is_blank(document_id):
        raise InputError(f"expected key {quoted(key)} has a blank document id: {_SHAPE}")
    if not _CHUNK_INDEX.fullmatch(chunk_index):
        raise InputError(
            f"expected key {quoted(key)} ends in {quoted(chunk_index)}, which is not a chunk index "
            f"(0, 1, 2, ...): {_SHAPE}"
        )
    return key


def _checked_grade(key: str, grade: object) -> int:
    if isinstance(grade, float) and grade.is_integer():
        grade = int(grade)  # how tables of numbers write one
    # In Python, but not in JSON, a boolean is an integer.
    if not isinstance(grade, int) or isinstance(grade, bool):
        raise InputError(
            f"expected key {quoted(key)} has the grade {described(grade)}: an integer is needed "
            "(1 or more: relevant; 0 or less: judged not relevant)"
        )
    if abs(grade) > _LARGEST_GRADE:
        raise InputError(
            f"expected key {quoted(key)} has a grade outside of +-{_LARGEST_GRADE:,}: use a smaller"
        )
    return grade


def evidence_from(stated: object, judgments: Mapping[str, int]) -> dict[str, str]:
    """Return key -> text of the chunk when it was judged, from a JSON object; {} from None.

    Raises InputError, without a place, for another type, a text that is blank or cannot be stored,
    and a key that `judgments` does not hold.
    """
    if stated is None:
        return {}
    if not isinstance(stated, dict):
        raise InputError(f"evidence is {described(stated)}: an object of key -> text is needed")
    for key in stated:
        if key not in judgments:
            raise InputError(
                f"evidence is given for {quoted(key)}, which is not expected: add the key to "
                "expected, or take the evidence out"
            )
    return {key: visible(f"the evidence of {quoted(key)}", text) for key, text in stated.items()}


def kind_from(stated: Kind | None, judgments: Mapping[str, int]) -> Kind:
    """Return the kind that the judgments imply: answerable when some grade is 1 or more.

    Raises InputError, without a place, when `stated` says otherwise.
    """
    relevant = next((key for key, grade in judgments.items() if grade >= 1), None)
    implied = Kind.UNANSWERABLE if relevant is None else Kind.ANSWERABLE
    if stated is None or stated is implied:
        return implied
    if relevant is None:
        raise InputError(
            "kind is answerable, but no expected key has a grade of 1 or more: "
            "add one, or say that kind is unanswerable"
        )
    raise InputError(
        f"kind is unanswerable, but {quoted(relevant)} is expected with grade "
        f"{judgments[relevant]}: take out one of the two"
    )
