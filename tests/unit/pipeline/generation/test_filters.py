from dataclasses import replace

import pytest

from pipeline.generation.filters import (
    Finding,
    Limits,
    Rejection,
    SourceText,
    Wording,
    find_fault,
    overlap,
)
from pipeline.generation.words import content_terms
from pipeline.types import Kind

LIMITS = Limits(max_words=40, max_overlap=0.7, max_shared_run=6)
STOP_WORDS = {"how", "do", "i", "my", "the", "a", "to", "for", "of", "is", "it", "in", "which"}
CHUNK = "Hold the power button for ten seconds to reset the router to factory settings."


def terms_of(text: str) -> frozenset[str]:
    """Return content words as PostgreSQL finds them, but for stems."""
    return content_terms({word.strip("?.,") for word in text.lower().split()} - STOP_WORDS)


def worded(text: str, *chunks: str, language: str | None = "en") -> Wording:
    return Wording(
        text,
        terms_of(text),
        [SourceText(f"d:{i}", chunk, terms_of(chunk)) for i, chunk in enumerate(chunks or [CHUNK])],
        language=language,
    )


def rejected(wording: Wording) -> Rejection | None:
    fault = find_fault(wording, LIMITS)
    return fault.rejection if fault else None


def test_a_question_in_a_customers_own_words_passes() -> None:
    assert rejected(worded("My wifi box hangs, how can it be wiped clean?")) is None


@pytest.mark.parametrize("text", ["", "  \n", "\u200b\ufeff", "???", "…"])
def test_a_question_without_a_word_is_empty(text: str) -> None:
    assert rejected(worded(text)) is Rejection.EMPTY


@pytest.mark.parametrize("character", ["\x1b", "\x08", "\x7f", "\x9b", "\u202e", "\u2066"])
def test_a_question_with_characters_that_control_or_reorder_is_refused(character: str) -> None:
    fault = find_fault(worded(f"How is my wifi {character}[2Jbox wiped?"), LIMITS)
    assert fault is not None
    assert fault.rejection is Rejection.CONTROL_CHARACTERS
    assert fault.detail.isprintable()


def test_marks_that_right_to_left_scripts_are_written_with_pass() -> None:
    assert (
        rejected(worded("כיצד מאפסים את הנתב \u200f(Router)\u200e הביתי?", language="he")) is None
    )


def test_a_question_longer_than_a_person_types_is_refused() -> None:
    fault = find_fault(worded("router wifi " * 21), LIMITS)
    assert fault == Finding(Rejection.TOO_LONG, "42 words; at most 40 pass")


def test_a_question_of_few_endless_words_is_too_long() -> None:
    assert rejected(worded(" ".join(["x" * 29] * 17))) is Rejection.TOO_LONG


def test_chinese_characters_do_not_count_as_words() -> None:
    assert rejected(worded("路由器" * 20 + "坏", "说明", language="zh")) is None
    assert rejected(worded("路由器" * 30 + "坏", "说明", language="zh")) is Rejection.TOO_LONG


def test_a_question_about_nothing_is_too_generic() -> None:
    assert rejected(worded("What are the main points?")) is Rejection.TOO_GENERIC


def test_a_question_of_stop_words_alone_is_too_generic_in_any_language() -> None:
    swedish = Wording("Vad är det?", frozenset(), [], language="sv")
    assert rejected(swedish) is Rejection.TOO_GENERIC


def test_a_question_that_speaks_of_the_text_is_refused() -> None:
    fault = find_fault(worded("According to the passage, how is wifi wiped?"), LIMITS)
    assert fault is not None
    assert fault.rejection is Rejection.REFERS_TO_TEXT
    assert "according to the passage" in fault.detail


def test_a_question_in_another_language_than_its_chunk_is_refused() -> None:
    question = "Wie kann ich meinen Router wieder zurücksetzen?"
    fault = find_fault(worded(question), LIMITS)
    assert fault == Finding(Rejection.WRONG_LANGUAGE, "it is in de, its source in en")
    assert rejected(worded(question, language=None)) is None


@pytest.mark.parametrize("question", ["Where is the Factory reset?", "Do FACTORY things help?"])
def test_a_forbidden_term_is_refused(question: str) -> None:
    wording = replace(worded(question), forbidden=["factory"])
    assert find_fault(wording, LIMITS) == Finding(Rejection.FORBIDDEN_TERM, "it uses 'factory'")


def test_another_form_of_a_forbidden_term_is_refused_by_its_stem() -> None:
    wording = replace(
        worded("Which batteries fit?"),
        terms=frozenset({"batteri", "fit"}),
        forbidden=["battery"],
        forbidden_terms=frozenset({"batteri"}),
    )
    assert rejected(wording) is Rejection.FORBIDDEN_TERM


def test_a_forbidden_term_inside_another_word_passes() -> None:
    wording = replace(worded("Is satisfactory wifi promised?"), forbidden=["factory"])
    assert rejected(wording) is None


def test_a_long_run_of_the_chunks_words_is_refused_whatever_else_is_in_the_question() -> None:
    question = (
        "My colleague who lives in Lisbon asked yesterday whether one should really"
        " hold the power button for ten seconds when wifi hangs"
    )
    fault = find_fault(worded(question), LIMITS)
    assert fault is not None
    assert fault.rejection is Rejection.SHARED_RUN
    assert "hold the power button for ten seconds" in fault.detail


def test_a_run_of_as_many_words_as_allowed_passes() -> None:
    words = "one two three four five six"
    wording = worded(f"Does wifi cost {words} euros yearly everywhere in Lisbon", f"{words} seven")
    assert rejected(wording) is None


def test_a_run_of_chinese_characters_counts_as_words() -> None:
    chunk = "按住电源按钮十秒钟即可将路由器恢复出厂设置"
    copied = worded("为什么我家里的按住电源按钮十秒钟即可将路由器不行", chunk, language="zh")
    assert rejected(copied) is Rejection.SHARED_RUN


def test_a_question_made_of_the_chunks_words_is_refused() -> None:
    fault = find_fault(worded("Which button of my router to hold to reset factory power?"), LIMITS)
    assert fault == Finding(Rejection.OVERLAP, "100% of its content words stand in d:0")


def test_a_short_question_may_name_its_subject() -> None:
    assert rejected(worded("How do I reset the router?")) is None


def test_overlap_is_that_with_one_chunk_not_with_all_together() -> None:
    wording = worded("battery router remote parcel", "battery remote", "router parcel")
    assert overlap(wording) == (0.5, "d:0")


def test_the_subject_of_an_unanswerable_question_may_be_all_in_its_chunk() -> None:
    question = worded("Which button of my router to hold to reset factory power?")
    assert rejected(replace(question, kind=Kind.UNANSWERABLE)) is None


def test_the_names_of_filters_are_what_is_stored() -> None:
    assert {str(each) for each in Rejection} == {
        "empty", "control_characters", "too_long", "too_generic", "refers_to_text",
        "wrong_language", "forbidden_term", "chunk_not_needed",
        "shared_run", "overlap", "duplicate", "near_duplicate", "source_changed", "answered",
    }  # fmt: skip
