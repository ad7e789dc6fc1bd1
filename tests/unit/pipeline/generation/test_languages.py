import json

import pytest

from pipeline.corpus.reading import read_chunks
from pipeline.generation.languages import language_of, other_language, source_language
from tests.shared import collection, needs_shared

PORTUGUESE = "Como posso redefinir o roteador para as configurações de fábrica?"
SPANISH = "¿Cómo puedo restablecer el enrutador a la configuración de fábrica?"
GERMAN = "Wie kann ich den Router auf die Werkseinstellungen zurücksetzen?"
ENGLISH = "How can I reset the router to its factory settings?"
CHINESE = "如何将路由器恢复出厂设置?"
JAPANESE = "ルーターを工場出荷時の設定に戻すにはどうすればよいですか?"
QUESTIONS = {
    "pt": PORTUGUESE, "es": SPANISH, "de": GERMAN, "en": ENGLISH, "zh": CHINESE, "ja": JAPANESE,
}  # fmt: skip


def asked_in(name: str) -> list[str]:
    with collection(name).golden.open() as lines:
        return [json.loads(line)["question"] for line in lines]


@pytest.mark.parametrize("wanted", QUESTIONS)
@pytest.mark.parametrize("language", QUESTIONS)
def test_a_question_is_in_another_language_exactly_where_it_is(wanted: str, language: str) -> None:
    found = other_language(QUESTIONS[language], wanted)

    assert found == (None if wanted == language else language)


@pytest.mark.parametrize("name", ["pt", "PT", "pt-BR", "pt_PT", "por", "Portuguese"])
def test_a_language_goes_by_all_its_names(name: str) -> None:
    assert other_language(PORTUGUESE, name) is None
    assert other_language(ENGLISH, name) == "en"


@pytest.mark.parametrize("question", ["NAT?", "Tax rate for LLC", "MKSYSB", "42", "Why Mars?"])
def test_nothing_is_said_of_a_question_too_short_to_tell(question: str) -> None:
    assert other_language(question, "en") is None


def test_portuguese_that_looks_galician_is_not_refused() -> None:
    assert other_language("O que é universidade?", "pt") is None


def test_norwegian_is_not_taken_for_another_language_of_norway() -> None:
    norwegian = "Hvordan kan jeg tilbakestille ruteren til fabrikkinnstillingene?"
    assert other_language(norwegian, "no") is None
    assert other_language(norwegian, "nb") is None
    assert other_language(norwegian, "nn") is None


def test_nothing_is_held_against_a_language_that_is_not_known() -> None:
    assert other_language(ENGLISH, "tlh") is None
    assert other_language(ENGLISH, "?") is None


def test_a_chunks_language_is_the_declared_one_where_that_is_known() -> None:
    assert source_language("pt-BR", PORTUGUESE * 5) == "pt-BR"


@pytest.mark.parametrize("text", [ENGLISH, "MKSYSB 4711 " * 30])
def test_the_declared_language_stays_where_the_text_is_short_or_in_none(text: str) -> None:
    assert source_language("pt-BR", text) == "pt-BR"


def test_a_text_that_is_certain_to_be_in_another_language_than_declared_wins() -> None:
    assert source_language("pt-BR", f"{ENGLISH} " * 5) == "en"


@needs_shared
@pytest.mark.parametrize(
    ("name", "language"), [("faquad-pt", "pt"), ("anthropic-docs-en", "en"), ("eshop-en", "en")]
)
def test_no_chunk_of_a_real_collection_contradicts_its_language(name: str, language: str) -> None:
    for chunk in read_chunks(collection(name).chunks):
        assert source_language(language, chunk.content) == language


@pytest.mark.parametrize("declared", [None, "", "klingon"])
def test_a_chunks_language_is_else_told_by_its_text(declared: str | None) -> None:
    assert source_language(declared, GERMAN) == "de"


def test_the_language_of_a_text_without_words_is_not_known() -> None:
    assert language_of("4711 0815") is None


@needs_shared
@pytest.mark.parametrize(
    ("name", "language"),
    [("faquad-pt", "pt"), ("anthropic-docs-en", "en"), ("mtrag-un-en", "en"), ("eshop-en", "en")],
)
def test_no_question_of_a_person_is_refused_for_its_language(name: str, language: str) -> None:
    refused = [each for each in asked_in(name) if other_language(each, language) is not None]

    assert refused == []


@needs_shared
@pytest.mark.parametrize(("name", "wanted"), [("faquad-pt", "en"), ("anthropic-docs-en", "pt")])
def test_questions_in_another_language_are_found(name: str, wanted: str) -> None:
    questions = asked_in(name)
    found = sum(other_language(each, wanted) is not None for each in questions)

    assert found >= 0.98 * len(questions)
