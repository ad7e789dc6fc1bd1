from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.golden import duplicates
from pipeline.golden.duplicates import ImportPlan, plan_import
from pipeline.types import Question, Source
from tests.unit.pipeline.golden.strategies import patiently

FILE = Path("golden.jsonl")
WHO = Question(text="Who?", expected={"a:0": 1})


def run(*golden: Question, first_line: int = 1) -> tuple[list[Question], ImportPlan]:
    plan = plan_import(FILE, enumerate(golden, first_line))
    return list(plan), plan


def test_different_questions_are_all_kept_in_order() -> None:
    golden = [replace(WHO, text=f"Who is {number}?") for number in range(5)]
    kept, plan = run(*golden)
    assert kept == golden
    assert (plan.kept, plan.repeated.count, plan.warnings()) == (5, 0, [])


def test_an_exact_repeat_is_kept_once_and_counted() -> None:
    why = replace(WHO, text="Why?")
    kept, plan = run(WHO, why, WHO, why, WHO)
    assert kept == [WHO, why]
    assert (plan.kept, plan.repeated.count) == (2, 3)
    assert plan.repeated.examples == [(3, 1), (4, 2), (5, 1)]
    assert plan.warnings() == []


def test_repeats_are_counted_in_full_and_shown_in_part() -> None:
    _, plan = run(*[WHO] * 100)
    assert plan.repeated.count == 99
    assert str(plan.repeated) == (
        "99 (lines 2 like 1, 3 like 1, 4 like 1, 5 like 1, 6 like 1, ...)"
    )


def test_a_text_with_other_expected_keys_is_another_question_and_reported() -> None:
    elsewhere = replace(WHO, expected={"b:0": 1})
    kept, plan = run(WHO, elsewhere, first_line=7)
    assert kept == [WHO, elsewhere]
    assert (plan.kept, plan.repeated.count) == (2, 0)
    [warning] = plan.warnings()
    assert warning == (
        "golden.jsonl: questions with the text of an earlier question but other expected keys, "
        "language or blanks (both were kept): 1 (lines 8 like 7)"
    )


@pytest.mark.parametrize("text", ["  Who?\n", "\ufeffWho?", "W\u200bho?", "Who?\u00a0"], ids=ascii)
def test_a_text_that_only_looks_the_same_is_kept_and_reported(text: str) -> None:
    kept, plan = run(WHO, replace(WHO, text=text))
    assert [question.text for question in kept] == ["Who?", text]
    assert plan.same_text.examples == [(2, 1)]


def test_composed_and_decomposed_letters_are_the_same_text_and_case_is_not() -> None:
    _, plan = run(
        replace(WHO, text="Ol\u00e1  mundo"),
        replace(WHO, text="Ola\u0301 mundo"),
        replace(WHO, text="ol\u00e1 mundo"),
    )
    assert plan.same_text.examples == [(2, 1)]


def test_the_same_text_of_another_tenant_is_nothing_to_report() -> None:
    kept, plan = run(WHO, replace(WHO, tenant="acme"), replace(WHO, tenant="None"))
    assert (len(kept), plan.warnings()) == (3, [])


@pytest.mark.parametrize(
    "labels",
    [{"category": "factual"}, {"source": Source.LOG}, {"must_pass": True}, {"notes": "again"}],
    ids=lambda labels: next(iter(labels)),
)
def test_a_repeat_with_other_labels_is_left_out_and_reported(labels: dict[str, object]) -> None:
    relabelled = Question(text="Who?", expected={"a:0": 1}, **labels)  # type: ignore[arg-type]
    kept, plan = run(WHO, relabelled)
    assert kept == [WHO]
    assert plan.repeated.examples == plan.relabelled.examples == [(2, 1)]
    [warning] = plan.warnings()
    assert warning == (
        "golden.jsonl: questions repeated with another category, source, must_pass or notes "
        "(the earlier line's were kept): 1 (lines 2 like 1)"
    )


def test_an_external_id_names_a_question_so_equal_contents_are_both_kept() -> None:
    golden = [replace(WHO, external_id="q1"), replace(WHO, external_id="q2"), WHO]
    kept, plan = run(*golden)
    assert kept == golden
    assert plan.warnings() == []


def test_an_external_id_repeated_with_the_same_content_is_kept_once() -> None:
    named = replace(WHO, external_id="q1")
    kept, plan = run(named, named)
    assert kept == [named]
    assert plan.repeated.examples == [(2, 1)]


@pytest.mark.parametrize(
    "change",
    [{"text": "Why?"}, {"expected": {"a:0": 2}}, {"tenant": "acme"}, {"category": "factual"}],
    ids=lambda change: next(iter(change)),
)
def test_an_external_id_with_two_contents_is_refused_with_both_lines(
    change: dict[str, object],
) -> None:
    named = replace(WHO, external_id="q1")
    changed = replace(named, **change)  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        run(WHO, named, replace(WHO, text="When?"), changed, first_line=10)
    assert str(caught.value) == (
        "golden.jsonl:13: external_id 'q1' stands at line 11 with other content: "
        "drop one of the lines, or give one another id"
    )


def test_an_external_id_that_reads_like_a_hash_of_content_is_still_an_id() -> None:
    golden = [WHO, replace(WHO, external_id="None")]
    assert run(*golden)[0] == golden


def test_questions_are_passed_on_as_they_come() -> None:
    taken = []

    def source() -> Iterable[tuple[int, Question]]:
        for number in range(3):
            taken.append(number)
            yield number, replace(WHO, text=f"Who is {number}?")

    questions_left = iter(plan_import(FILE, source()))
    next(questions_left)
    assert taken == [0]


FEW_QUESTIONS = st.builds(
    Question,
    text=st.sampled_from(["Who?", "Who? ", "Why?"]),
    expected=st.sampled_from([{"a:0": 1}, {"a:0": 2}, {"a:0": 1, "b:0": 1}]),
    tenant=st.sampled_from([None, "acme"]),
    external_id=st.sampled_from([None, None, "q1", "q2"]),
)


@patiently
@given(golden=st.lists(FEW_QUESTIONS, max_size=12))
def test_each_question_is_kept_once_as_a_comparison_of_all_pairs_keeps_it(
    golden: list[Question],
) -> None:
    distinct = [question for at, question in enumerate(golden) if question not in golden[:at]]
    names = [question.external_id for question in distinct if question.external_id]
    if len(names) > len(set(names)):
        with pytest.raises(InputError, match="with other content"):
            run(*golden)
        return
    kept, plan = run(*golden)
    assert kept == distinct
    assert (plan.kept, plan.repeated.count) == (len(kept), len(golden) - len(kept))


def test_a_set_has_a_limited_number_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "MAX_QUESTIONS", 3)
    golden = [replace(WHO, text=f"Who is {number}?") for number in range(4)]
    assert len(run(*golden[:3])[0]) == 3
    with pytest.raises(InputError, match=r"^golden\.jsonl: holds more than 3 questions: split it"):
        run(*golden)
