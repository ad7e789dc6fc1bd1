"""The real golden sets import with the counts that their SOURCE.md states."""

import re

import pytest

from pipeline.golden.formats import ReadOptions
from pipeline.golden.jsonl import read, read_questions
from pipeline.golden.staging import staged
from pipeline.types import Kind
from tests.shared import COLLECTIONS, collection, needs_shared

QUESTIONS = re.compile(r"questions: (\d+) \(repeated question text: (\d+); with no .*: (\d+)\)")
RELEVANT = re.compile(r"judgements \(grade > 0\): (\d+)")


@needs_shared
@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_collection_is_read_with_its_stated_counts(name: str) -> None:
    golden_file = collection(name).golden
    stated = (golden_file.parent / "SOURCE.md").read_text()
    with staged(str(golden_file), read(str(golden_file), options=ReadOptions())) as plan:
        kept = list(plan.questions())
        assert plan.warnings() == []
    golden = [question for _, question in read_questions(golden_file)]
    unanswerable = sum(question.kind is Kind.UNANSWERABLE for question in golden)
    relevant = sum(grade > 0 for question in golden for grade in question.expected.values())

    [(count, repeated, nothing_expected)] = [map(int, m) for m in QUESTIONS.findall(stated)]
    assert (len(golden), unanswerable) == (count, nothing_expected)
    assert [str(relevant)] == RELEVANT.findall(stated)
    assert (len(kept), plan.repeated.count) == (count - repeated, repeated)


@needs_shared
def test_questions_kept_with_their_blanks_are_read_with_them() -> None:
    golden = [question for _, question in read_questions(collection("mtrag-un-en").golden)]
    assert sum(question.text != question.text.strip() for question in golden) == 20
    assert {question.category for question in golden if question.kind is Kind.UNANSWERABLE} == {
        "unanswerable",
        "underspecified",
    }
