import pytest

from pipeline.corpus.languages import CONFIGURATIONS, text_config


@pytest.mark.parametrize(
    ("language", "config"),
    [
        ("en", "english"),
        ("en-GB", "english"),
        ("eng", "english"),
        ("English", "english"),
        ("pt", "portuguese"),
        ("pt-BR", "portuguese"),
        ("pt_BR.UTF-8", "portuguese"),
        ("PORTUGUESE", "portuguese"),
        (" ro ", "romanian"),
        ("ron", "romanian"),
        ("nb-NO", "norwegian"),
        ("sr-Latn-RS", "serbian"),
        ("et", "estonian"),
    ],
)
def test_codes_locales_and_names_give_the_configuration_of_their_language(
    language: str, config: str
) -> None:
    assert text_config(language) == config


@pytest.mark.parametrize("language", [None, "", " ", "zh", "Klingon", "e", "enx", "-en", "ó"])
def test_an_unknown_or_absent_language_is_simple(language: str | None) -> None:
    assert text_config(language) == "simple"


def test_a_configuration_that_the_server_lacks_is_simple() -> None:
    available = CONFIGURATIONS - {"estonian"}

    assert text_config("et", available) == "simple"
    assert text_config("en", available) == "english"
