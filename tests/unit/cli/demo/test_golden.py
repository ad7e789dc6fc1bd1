"""The demo's golden set: its shape, and that the corpus of this interpreter answers it."""

import json
import re
from collections import Counter
from functools import cache
from importlib.resources import files
from typing import TypedDict

from cli.demo.corpus import standard_library_chunks

CATEGORIES = {"factual", "procedural", "comparison", "error-message", "unanswerable"}
COPIED_WORDS = 8
"""A question that shares so many words in a row with its answer was copied from it."""


class _Required(TypedDict):
    external_id: str
    question: str
    expected: dict[str, int]
    category: str
    source: str
    language: str


class GoldenLine(_Required, total=False):
    kind: str
    must_pass: bool


@cache
def golden() -> tuple[GoldenLine, ...]:
    text = files("cli.demo").joinpath("golden.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


@cache
def corpus() -> dict[str, str]:
    return {
        f"{chunk['document_id']}:{chunk['chunk_index']}": chunk["content"]
        for chunk in standard_library_chunks()
    }


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + COPIED_WORDS]) for i in range(len(words) - COPIED_WORDS + 1)}


def test_holds_a_hundred_and_twenty_questions_or_more() -> None:
    assert len(golden()) >= 120


def test_ids_and_texts_are_unique_and_not_blank() -> None:
    assert len({line["external_id"] for line in golden()}) == len(golden())
    texts = {" ".join(line["question"].lower().split()) for line in golden()}
    assert len(texts) == len(golden())
    assert "" not in texts


def test_each_category_holds_twelve_questions_or_more() -> None:
    counts = Counter(line["category"] for line in golden())
    assert set(counts) == CATEGORIES
    assert min(counts.values()) >= 12


def test_every_expected_key_is_in_the_corpus_of_this_interpreter() -> None:
    missing = {key for line in golden() for key in line["expected"] if key not in corpus()}
    assert missing == set()


def test_grades_are_two_for_an_answer_and_one_for_help() -> None:
    assert {grade for line in golden() for grade in line["expected"].values()} == {1, 2}


def test_many_questions_have_several_expected_chunks_of_both_grades() -> None:
    several = [line for line in golden() if len(line["expected"]) > 1]
    assert len(several) >= 35
    assert sum(len(set(line["expected"].values())) > 1 for line in several) >= 35


def test_questions_are_spread_over_fifty_modules_or_more() -> None:
    modules = {re.split(r"[.:]", key)[0] for line in golden() for key in line["expected"]}
    assert len(modules) >= 50


def test_unanswerable_questions_and_no_others_expect_nothing() -> None:
    for line in golden():
        unanswerable = line["category"] == "unanswerable"
        assert (line["expected"] == {}) is unanswerable
        assert (line.get("kind") == "unanswerable") is unanswerable


def test_no_question_is_copied_from_a_chunk_it_expects() -> None:
    copied = [
        (line["external_id"], key)
        for line in golden()
        for key in line["expected"]
        if runs_of_words(line["question"]) & runs_of_words(corpus()[key])
    ]
    assert copied == []


def test_a_few_questions_must_pass_and_all_of_them_can() -> None:
    must_pass = [line for line in golden() if line.get("must_pass")]
    assert 3 <= len(must_pass) <= 8
    assert all(line["expected"] for line in must_pass)


def test_every_question_is_english_and_written_by_hand() -> None:
    assert {(line["language"], line["source"]) for line in golden()} == {("en", "manual")}
