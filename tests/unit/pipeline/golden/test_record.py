import pytest

from pipeline.golden.record import FIELDS
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.conftest import ReadLine, Refusal

MINIMAL = {"question": "Who?", "expected": {"a:0": 1}}
HINT = "; golden import --source says one for all questions"


def test_only_question_and_expected_are_needed(read_line: ReadLine) -> None:
    assert read_line(MINIMAL) == Question(
        text="Who?",
        expected={"a:0": 1},
        kind=Kind.ANSWERABLE,
        category=None,
        tenant=None,
        language=None,
        source=Source.MANUAL,
        must_pass=False,
        external_id=None,
        notes=None,
    )


def test_every_field_is_taken(read_line: ReadLine) -> None:
    record = {
        "question": "Who?",
        "expected": {"a:0": 2},
        "kind": "answerable",
        "category": "factual",
        "tenant": "acme",
        "language": "pt",
        "source": "log",
        "must_pass": True,
        "external_id": "q-17",
        "notes": "asked on Mondays",
        "evidence": {"a:0": "It is I."},
    }
    assert set(record) == set(FIELDS)
    assert read_line(record) == Question(
        text="Who?",
        expected={"a:0": 2},
        kind=Kind.ANSWERABLE,
        category="factual",
        tenant="acme",
        language="pt",
        source=Source.LOG,
        must_pass=True,
        external_id="q-17",
        notes="asked on Mondays",
        evidence={"a:0": "It is I."},
    )


def test_null_counts_as_absent_in_every_optional_field(read_line: ReadLine) -> None:
    nulls = dict.fromkeys(set(FIELDS) - set(MINIMAL))
    assert read_line(MINIMAL | nulls) == read_line(MINIMAL)


@pytest.mark.parametrize(
    "text", [" Who? ", "\ufeffWho?", "W\u200bho?", "Who?\r\nAnd why?", "who\u0301?", "?"]
)
def test_the_text_is_kept_exactly(read_line: ReadLine, text: str) -> None:
    assert read_line(MINIMAL | {"question": text}).text == text


@pytest.mark.parametrize("text", ["", "  \t\n", "\ufeff", " \u200b \u2060"])
def test_a_blank_question_is_refused(refusal: Refusal, text: str) -> None:
    assert refusal(MINIMAL | {"question": text}) == "question is blank"


def test_a_question_may_have_8000_characters_and_no_more(
    read_line: ReadLine, refusal: Refusal
) -> None:
    longest = "é" * 8_000
    assert read_line(MINIMAL | {"question": longest}).text == longest
    assert refusal(MINIMAL | {"question": longest + "!"}) == (
        "question is 8,001 characters long; at most 8,000 are allowed"
    )


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"expected": ["a:0"]}, "the field question is missing"),
        (MINIMAL | {"question": None}, "question is null: a text is needed"),
        (MINIMAL | {"question": 7}, "question is 7: a text is needed"),
        (MINIMAL | {"question": ["Who?"]}, "question is an array: a text is needed"),
        (MINIMAL | {"question": "a\0b"}, "question holds a NUL character (\\u0000): take it out"),
        (
            MINIMAL | {"question": "\ud83d!"},
            "question holds \\ud83d, half of a surrogate pair: take it out",
        ),
    ],
)
def test_a_question_without_a_storable_text_is_refused(
    refusal: Refusal, record: object, reason: str
) -> None:
    assert refusal(record) == reason


@pytest.mark.parametrize("absent", [{}, {"expected": None}])
def test_expected_may_be_absent_only_when_the_kind_is_stated_as_unanswerable(
    read_line: ReadLine, refusal: Refusal, absent: dict[str, object]
) -> None:
    question = read_line({"question": "Who?", "kind": "unanswerable"} | absent)
    assert (question.kind, question.expected) == (Kind.UNANSWERABLE, {})
    assert refusal({"question": "Who?"} | absent).startswith("the field expected is missing")
    assert refusal({"question": "Who?", "kind": "answerable"} | absent).startswith(
        "the field expected is missing"
    )


def test_an_empty_object_says_that_nothing_answers_the_question(read_line: ReadLine) -> None:
    assert read_line({"question": "Who?", "expected": {}}).kind is Kind.UNANSWERABLE


def test_an_empty_list_is_taken_only_where_the_kind_is_stated_as_unanswerable(
    read_line: ReadLine, refusal: Refusal
) -> None:
    nothing = {"question": "Who?", "expected": []}
    assert read_line(nothing | {"kind": "unanswerable"}).kind is Kind.UNANSWERABLE
    assert refusal(nothing) == (
        "expected is an empty list: name the chunks that should come back, "
        "or say that kind is unanswerable"
    )
    assert refusal(nothing | {"kind": "answerable"}).startswith("kind is answerable, but no")


def test_evidence_is_the_text_of_some_expected_keys_as_it_is(read_line: ReadLine) -> None:
    record = {
        "question": "Who?",
        "expected": {"a:0": 1, "b:1": 0},
        "evidence": {"b:1": " Me.\u200b"},
    }
    assert read_line(record).evidence == {"b:1": " Me.\u200b"}
    assert read_line(record | {"evidence": None}).evidence == {}


UNKNOWN_KEY = (
    "evidence is given for 'c:0', which is not expected: add the key to expected, "
    "or take the evidence out"
)


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        ({"c:0": "x"}, UNKNOWN_KEY),
        (["a:0"], "evidence is an array: an object of key -> text is needed"),
        ({"a:0": 3}, "the evidence of 'a:0' is 3: a text is needed"),
        ({"a:0": "\u200b "}, "the evidence of 'a:0' is blank"),
        ({"a:0": "x\0"}, "the evidence of 'a:0' holds a NUL character (\\u0000): take it out"),
    ],
)  # fmt: skip
def test_evidence_of_nothing_judged_and_evidence_that_is_no_text_are_refused(
    refusal: Refusal, evidence: object, reason: str
) -> None:
    assert refusal(MINIMAL | {"evidence": evidence}) == reason


def test_a_kind_that_contradicts_the_grades_is_refused(refusal: Refusal) -> None:
    assert refusal({"question": "Who?", "expected": {}, "kind": "answerable"}).startswith(
        "kind is answerable, but no expected key has a grade of 1 or more"
    )
    assert refusal(MINIMAL | {"kind": "unanswerable"}).startswith(
        "kind is unanswerable, but 'a:0' is expected with grade 1"
    )


def test_an_unknown_field_is_refused_with_the_nearest_and_all_allowed_names(
    refusal: Refusal,
) -> None:
    assert refusal(MINIMAL | {"catgory": "factual"}) == (
        "unknown field 'catgory' (did you mean category?): allowed are question, expected, kind, "
        "category, tenant, language, source, must_pass, external_id, notes, evidence"
    )


def test_an_unknown_field_that_is_near_to_none_is_refused_without_a_guess(
    refusal: Refusal,
) -> None:
    reason = refusal(MINIMAL | {"zzz": None})
    assert reason.startswith("unknown field 'zzz': allowed are question, ")


@pytest.mark.parametrize("name", ["category", "tenant", "language", "external_id"])
def test_a_label_is_kept_exactly_and_limited_to_what_an_index_holds(
    read_line: ReadLine, refusal: Refusal, name: str
) -> None:
    longest = " " + "é" * 999 + "!"
    assert getattr(read_line(MINIMAL | {name: longest}), name) == longest
    assert refusal(MINIMAL | {name: longest + "!"}) == (
        f"{name} is 2,001 bytes long; at most 2,000 are allowed"
    )
    assert refusal(MINIMAL | {name: " "}) == f"{name} is blank"
    assert refusal(MINIMAL | {name: True}) == f"{name} is true: a text is needed"
    assert refusal(MINIMAL | {name: "\0"}).startswith(f"{name} holds a NUL character")


@pytest.mark.parametrize("number", [0, 17, -3, 10**30])
def test_an_integer_external_id_becomes_text(read_line: ReadLine, number: int) -> None:
    assert read_line(MINIMAL | {"external_id": number}).external_id == str(number)


def test_an_integer_external_id_longer_than_an_index_holds_is_refused(refusal: Refusal) -> None:
    assert refusal(MINIMAL | {"external_id": 10**2_500}).startswith("external_id is 2,501 bytes")


@pytest.mark.parametrize("value", [1.5, ["a"], {}])
def test_an_external_id_of_another_type_is_refused(refusal: Refusal, value: object) -> None:
    assert refusal(MINIMAL | {"external_id": value}).endswith("a text is needed")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("source", "human", "source is 'human': it must be one of manual, synthetic, log" + HINT),
        ("source", "Manual", "source is 'Manual': it must be one of manual, synthetic, log" + HINT),
        ("source", ["log"], "source is an array: it must be one of manual, synthetic, log" + HINT),
        ("kind", "maybe", "kind is 'maybe': it must be one of answerable, unanswerable"),
        ("kind", 1, "kind is 1: it must be one of answerable, unanswerable"),
        ("must_pass", "yes", "must_pass is 'yes': true or false is needed"),
        ("must_pass", 1, "must_pass is 1: true or false is needed"),
        ("notes", 5, "notes is 5: a text is needed"),
        ("notes", "\udfff", "notes holds \\udfff, half of a surrogate pair: take it out"),
    ],
)
def test_a_wrong_value_is_refused_with_the_allowed_ones(
    refusal: Refusal, name: str, value: object, reason: str
) -> None:
    assert refusal(MINIMAL | {name: value}) == reason


def test_notes_may_be_blank_and_long(read_line: ReadLine) -> None:
    for notes in ("", " ", "n" * 100_000):
        assert read_line(MINIMAL | {"notes": notes}).notes == notes


def test_a_value_that_is_shown_is_cut_and_escaped(refusal: Refusal) -> None:
    assert refusal(MINIMAL | {"source": "x\n\u2028" + "y" * 500}) == (
        "source is 'x\\n\\u2028"
        + "y" * 57
        + "...': it must be one of manual, synthetic, log"
        + HINT
    )
    assert refusal(MINIMAL | {"must_pass": 10**1_000}) == (
        "must_pass is 1" + "0" * 59 + "...: true or false is needed"
    )
