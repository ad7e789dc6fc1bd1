"""One question with two lists of expected keys: merged into one, or why it is refused."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.errors import InputError
from pipeline.golden.duplicates import Fate
from pipeline.golden.judgments import MAX_KEYS, kind_from
from pipeline.text import quoted
from pipeline.types import Question

_SHOWN_KEYS = 3


def merged(same: Sequence[Question], source: str) -> Question:
    """Return the first of the questions with the keys of all, each with its highest grade.

    Of two texts that one key was judged on, the first stands. Raises InputError, which names
    `source`, when the keys are more than MAX_KEYS.
    """
    first, *others = same
    if not others:
        return first
    expected = dict(first.expected)
    evidence = dict(first.evidence)
    for other in others:
        for key, grade in other.expected.items():
            expected[key] = max(grade, expected.get(key, grade))
        evidence = {**other.evidence, **evidence}
    if len(expected) > MAX_KEYS:
        raise InputError(
            f"{source}: merged, the question {quoted(first.text)} expects {len(expected):,} keys; "
            f"at most {MAX_KEYS:,} are allowed"
        )
    return replace(first, expected=expected, evidence=evidence, kind=kind_from(None, expected))


def reason_of(fate: Fate, question: Question, elsewhere: str, other: Question | None) -> str:
    """Say in one line why a question is refused; `other` stands at the place `elsewhere`.

    `other` is None where that could not be read.
    """
    if fate is Fate.BESIDE_REFUSED or other is None:
        return (
            f"the question {quoted(question.text)} stands refused at {elsewhere} too: correct that,"
            " and import both together"
        )
    if fate is Fate.OTHER_GOLD:
        return _other_gold(question, elsewhere, other)
    named = f"external_id {quoted(question.external_id or '')} stands at {elsewhere} too, "
    if fate is Fate.OTHER_LABELS:
        return (
            f"{named}with another category, language, source, must_pass, notes or evidence: "
            "drop one of the lines, or give one another id"
        )
    of_whom = "" if question.tenant == other.tenant else f" of tenant {quoted(other.tenant or '')}"
    return f"{named}for {quoted(other.text)}{of_whom}: give one of the two another id"


def _other_gold(question: Question, elsewhere: str, other: Question) -> str:
    same_id = question.external_id is not None and question.external_id == other.external_id
    return (
        f"the question {quoted(question.text)} stands at {elsewhere} too, but expects "
        f"{_gold(other)} there and {_gold(question)} here: correct one, or import with --merge "
        f"(all keys, the higher grade){'' if same_id else ' or --keep-both'}"
    )


def _gold(question: Question) -> str:
    shown = [f"{quoted(key)} ({grade})" for key, grade in question.expected.items()]
    more = f" and {len(shown) - _SHOWN_KEYS} more" if len(shown) > _SHOWN_KEYS else ""
    return ", ".join(shown[:_SHOWN_KEYS]) + more if shown else "nothing"
