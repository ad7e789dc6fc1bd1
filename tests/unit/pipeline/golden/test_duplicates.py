"""Records of one import that meet; the oracle compares every pair."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.golden import conflicts as conflicts_module
from pipeline.golden.duplicates import Conflicts
from pipeline.golden.formats import Read
from pipeline.golden.staging import StagedImport, staged
from pipeline.text import normalised
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.strategies import patiently

FILE = "golden.jsonl"
WHO = Question(text="Who?", expected={"a:0": 1})
ELSEWHERE = replace(WHO, expected={"b:0": 1})
NAMED = replace(WHO, external_id="q1")
ANY_POLICY = pytest.mark.parametrize("conflicts", Conflicts)


def reads(*golden: Question) -> Iterator[Read]:
    for line, question in enumerate(golden, 1):
        yield Read(f"{FILE}:{line}", question, f"line {line}\n")


@contextmanager
def planned(
    *golden: Question, conflicts: Conflicts = Conflicts.REFUSE, skip_bad: bool = False
) -> Iterator[StagedImport]:
    with staged(FILE, reads(*golden), conflicts=conflicts, skip_bad=skip_bad) as plan:
        yield plan


def kept(*golden: Question, conflicts: Conflicts = Conflicts.REFUSE) -> list[Question]:
    with planned(*golden, conflicts=conflicts) as plan:
        return list(plan.questions())


def refusal(*golden: Question, conflicts: Conflicts = Conflicts.REFUSE) -> str:
    with pytest.raises(InputError) as caught:
        kept(*golden, conflicts=conflicts)
    return str(caught.value)


def refused_lines(*golden: Question, conflicts: Conflicts = Conflicts.REFUSE) -> list[int]:
    with planned(*golden, conflicts=conflicts, skip_bad=True) as plan:
        return [int(refused.place.rpartition(":")[2]) for refused in plan.refusals()]


@ANY_POLICY
def test_different_questions_are_all_kept_in_order(conflicts: Conflicts) -> None:
    golden = [replace(WHO, text=f"Who is {number}?") for number in range(5)]
    with planned(*golden, conflicts=conflicts) as plan:
        assert list(plan.questions()) == golden
        assert (plan.kept, plan.repeated.count, plan.refused, plan.warnings()) == (5, 0, 0, [])


@ANY_POLICY
def test_an_exact_repeat_is_kept_once_and_counted(conflicts: Conflicts) -> None:
    why = replace(WHO, text="Why?")
    with planned(WHO, why, WHO, why, WHO, conflicts=conflicts) as plan:
        assert list(plan.questions()) == [WHO, why]
        assert plan.repeated.shown(FILE) == "3 (at 3 like 1, 4 like 2, 5 like 1)"
        assert (plan.kept, plan.warnings()) == (2, [])


def test_repeats_are_counted_in_full_and_shown_in_part() -> None:
    with planned(*[WHO] * 100) as plan:
        assert plan.repeated.shown(FILE) == (
            "99 (at 2 like 1, 3 like 1, 4 like 1, 5 like 1, 6 like 1, ...)"
        )


SAME_TO_A_READER = ["  Who?\n", "\ufeffWho?", "W\u200bho?", "Who?\u00a0"]


@ANY_POLICY
@pytest.mark.parametrize("text", SAME_TO_A_READER, ids=ascii)
def test_a_text_that_only_looks_the_same_is_a_repeat(conflicts: Conflicts, text: str) -> None:
    with planned(WHO, replace(WHO, text=text), conflicts=conflicts) as plan:
        assert list(plan.questions()) == [WHO]
        assert plan.repeated.count == 1


def test_composed_and_decomposed_letters_are_the_same_text_and_case_is_not() -> None:
    golden = [replace(WHO, text=text) for text in ("Ol\u00e1", "Ola\u0301", "ol\u00e1")]
    assert kept(*golden) == [golden[0], golden[2]]


@ANY_POLICY
def test_the_same_text_of_another_tenant_is_another_question(conflicts: Conflicts) -> None:
    golden = [WHO, replace(WHO, tenant="acme"), replace(ELSEWHERE, tenant="None")]
    with planned(*golden, conflicts=conflicts) as plan:
        assert list(plan.questions()) == golden
        assert plan.warnings() == []


@pytest.mark.parametrize(
    "labels",
    [
        {"category": "factual"}, {"language": "pt"}, {"source": Source.LOG}, {"must_pass": True},
        {"notes": "again"}, {"evidence": {"a:0": "It is I."}},
    ],
    ids=lambda labels: next(iter(labels)),
)  # fmt: skip
def test_a_repeat_with_other_labels_is_left_out_and_reported(labels: dict[str, object]) -> None:
    with planned(WHO, replace(WHO, **labels)) as plan:  # type: ignore[arg-type] # drawn by name
        assert list(plan.questions()) == [WHO]
        [warning] = plan.warnings()
        assert warning == (
            "golden.jsonl: questions repeated with another category, language, source, must_pass, "
            "notes or evidence (those of the other line were kept): 1 (at 2 like 1)"
        )


def test_the_same_question_with_other_gold_is_refused_and_both_are_shown() -> None:
    assert refusal(replace(WHO, text="Why?"), WHO, replace(ELSEWHERE, text="\ufeffWho?")) == (
        "golden.jsonl:2: the question 'Who?' stands at golden.jsonl:3 too, but expects 'b:0' (1) "
        "there and 'a:0' (1) here: correct one, or import with --merge (all keys, the higher "
        "grade) or --keep-both"
    )


def test_long_gold_is_shown_in_part_and_none_as_nothing() -> None:
    many = replace(WHO, expected={f"a:{n}": n for n in range(1, 9)})
    nothing = replace(WHO, expected={}, kind=Kind.UNANSWERABLE)
    said = refusal(many, nothing)
    assert "expects nothing there and 'a:1' (1), 'a:2' (2), 'a:3' (3) and 5 more here" in said


def test_all_of_what_contradicts_each_other_is_refused_and_the_rest_is_not() -> None:
    other = replace(WHO, text="Why?")
    assert refused_lines(WHO, other, ELSEWHERE, replace(WHO, expected={"c:0": 1})) == [1, 3, 4]


def test_another_grade_is_other_gold() -> None:
    assert "'a:0' (2) there and 'a:0' (1) here" in refusal(WHO, replace(WHO, expected={"a:0": 2}))


def test_merged_gold_is_the_union_with_the_higher_grade() -> None:
    first = replace(WHO, expected={"a:0": 1, "b:0": 3}, evidence={"a:0": "first"}, category="x")
    second = replace(
        WHO, expected={"b:0": 2, "c:0": 0, "a:0": 2}, evidence={"a:0": "second", "b:0": "b"}
    )
    with planned(first, second, conflicts=Conflicts.MERGE) as plan:
        assert list(plan.questions()) == [
            replace(
                first,
                expected={"a:0": 2, "b:0": 3, "c:0": 0},
                evidence={"a:0": "first", "b:0": "b"},
            )
        ]
        [warning] = plan.warnings()
        assert warning == (
            "golden.jsonl: questions merged into the one with the same text (all keys, the higher "
            "grade): 1 (at 2 like 1)"
        )


def test_merged_with_an_answer_an_unanswerable_question_is_answerable() -> None:
    nothing = replace(WHO, expected={}, kind=Kind.UNANSWERABLE)
    assert kept(nothing, WHO, conflicts=Conflicts.MERGE) == [WHO]


def test_questions_are_merged_into_the_one_that_has_an_id() -> None:
    why = replace(WHO, text="Why?")
    assert kept(ELSEWHERE, why, NAMED, conflicts=Conflicts.MERGE) == [
        why,
        replace(NAMED, expected={"a:0": 1, "b:0": 1}),
    ]


def test_merging_too_many_keys_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts_module, "MAX_KEYS", 1)
    assert refusal(WHO, ELSEWHERE, conflicts=Conflicts.MERGE) == (
        "golden.jsonl: merged, the question 'Who?' expects 2 keys; at most 1 are allowed"
    )


def test_both_are_kept_where_that_is_asked_for_and_said() -> None:
    with planned(WHO, ELSEWHERE, WHO, conflicts=Conflicts.KEEP_BOTH) as plan:
        assert list(plan.questions()) == [WHO, ELSEWHERE]
        [warning] = plan.warnings()
        assert warning == (
            "golden.jsonl: questions with the text of an earlier question (both were kept): "
            "1 (at 2 like 1)"
        )


@ANY_POLICY
def test_two_external_ids_are_two_questions_whatever_their_texts_and_said(
    conflicts: Conflicts,
) -> None:
    golden = [NAMED, replace(NAMED, external_id="q2"), replace(ELSEWHERE, external_id="q3")]
    with planned(*golden, conflicts=conflicts) as plan:
        assert list(plan.questions()) == golden
        assert plan.same_text.shown(FILE) == "2 (at 2 like 1, 3 like 1)"


@ANY_POLICY
def test_a_question_without_id_is_a_repeat_of_its_like_with_one(conflicts: Conflicts) -> None:
    with planned(WHO, NAMED, conflicts=conflicts) as plan:
        assert list(plan.questions()) == [NAMED]
        assert plan.repeated.shown(FILE) == "1 (at 1 like 2)"


def test_a_question_without_id_contradicts_its_like_with_one() -> None:
    assert refused_lines(NAMED, replace(NAMED, external_id="q2"), ELSEWHERE) == [1, 2, 3]


@ANY_POLICY
def test_an_external_id_repeated_with_the_same_content_is_kept_once(conflicts: Conflicts) -> None:
    assert kept(NAMED, NAMED, conflicts=conflicts) == [NAMED]


@ANY_POLICY
def test_one_external_id_for_two_questions_is_refused_whatever_is_asked_for(
    conflicts: Conflicts,
) -> None:
    other = replace(NAMED, text="Why?")
    assert refusal(WHO, NAMED, other, NAMED, conflicts=conflicts) == (
        "golden.jsonl:2: external_id 'q1' stands at golden.jsonl:3 too, for 'Why?': "
        "give one of the two another id"
    )
    assert refused_lines(NAMED, other, NAMED, conflicts=conflicts) == [1, 2, 3]


def test_one_external_id_in_two_tenants_is_refused_with_the_tenant() -> None:
    assert "for 'Who?' of tenant 'acme'" in refusal(NAMED, replace(NAMED, tenant="acme"))


def test_one_external_id_with_other_gold_is_merged_or_refused_but_not_kept_twice() -> None:
    other = replace(NAMED, expected={"b:0": 1})
    both = replace(NAMED, expected={"a:0": 1, "b:0": 1})
    assert kept(NAMED, other, conflicts=Conflicts.MERGE) == [both]
    assert refusal(NAMED, other).endswith("import with --merge (all keys, the higher grade)")
    assert refused_lines(NAMED, other, conflicts=Conflicts.KEEP_BOTH) == [1, 2]


def test_one_external_id_with_other_labels_is_refused_unless_merged() -> None:
    other = replace(NAMED, category="factual")
    assert refusal(NAMED, other) == (
        "golden.jsonl:1: external_id 'q1' stands at golden.jsonl:2 too, with another category, "
        "language, source, must_pass, notes or evidence: drop one of the lines, or give one "
        "another id"
    )
    assert kept(NAMED, other, conflicts=Conflicts.MERGE) == [NAMED]


def test_an_external_id_that_reads_like_none_is_an_id() -> None:
    golden = [replace(WHO, text="Why?"), replace(WHO, external_id="None")]
    assert kept(*golden) == golden


FEW_QUESTIONS = st.builds(
    Question,
    text=st.sampled_from(["Who?", "Who? ", "Why?"]),
    expected=st.sampled_from([{"a:0": 1}, {"a:0": 2}, {"a:0": 1, "b:0": 1}]),
    tenant=st.sampled_from([None, "acme"]),
    external_id=st.sampled_from([None, None, "q1", "q2"]),
)


def text_of(question: Question) -> tuple[str, str | None]:
    return normalised(question.text), question.tenant


def contradict(one: Question, other: Question, conflicts: Conflicts) -> bool:
    """Tell, of two questions alone, whether they cannot both be taken at their word."""
    if one.external_id and one.external_id == other.external_id:
        same_gold = one.expected == other.expected or conflicts is Conflicts.MERGE
        return text_of(one) != text_of(other) or not same_gold
    if one.external_id and other.external_id:
        return False
    same = text_of(one) == text_of(other)
    return conflicts is Conflicts.REFUSE and same and one.expected != other.expected


@patiently
@given(
    golden=st.lists(FEW_QUESTIONS, min_size=1, max_size=10), conflicts=st.sampled_from(Conflicts)
)
def test_what_is_taken_is_what_a_comparison_of_all_pairs_takes(
    golden: list[Question], conflicts: Conflicts
) -> None:
    # What has no id and says what one with an id says is that one again.
    said = {(text_of(each), str(each.expected)) for each in golden if each.external_id}
    new = [
        each for each in golden
        if each.external_id or (text_of(each), str(each.expected)) not in said
    ]  # fmt: skip
    if any(contradict(one, other, conflicts) for one in new for other in new):
        refusal(*golden, conflicts=conflicts)
        return
    with planned(*golden, conflicts=conflicts) as plan:
        taken = list(plan.questions())
        assert plan.kept + plan.repeated.count + plan.merged.count == len(golden)
    assert len(taken) == plan.kept
    # Nothing is lost: each line's text, id and gold is in one that was taken.
    for question in golden:
        assert any(
            text_of(each) == text_of(question)
            and (question.external_id in {None, each.external_id})
            and (
                each.expected == question.expected
                or (
                    conflicts is Conflicts.MERGE
                    and all(each.expected[key] >= grade for key, grade in question.expected.items())
                )
            )
            for each in taken
        )
    # And nothing is taken twice.
    identities = [
        each.external_id
        or (*text_of(each), conflicts is Conflicts.KEEP_BOTH and str(each.expected))
        for each in taken
    ]
    assert len(identities) == len(set(identities))
