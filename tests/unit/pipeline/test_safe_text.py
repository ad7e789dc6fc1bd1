"""No escape code and no secret gets through."""

import json
import unicodedata
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.safe_text import MASK, Masker, clean, mask_passwords


def urlencoded_in_json(text: str) -> str:
    return json.dumps({"url": quote(text, safe="")})[9:-2]


@given(st.text(alphabet=st.characters(), max_size=40))
def test_clean_removes_exactly_controls_reordering_marks_and_surrogates(text: str) -> None:
    def stays(character: str) -> bool:
        marks = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
        return character in "\n\t" or (
            unicodedata.category(character) not in {"Cc", "Cs"}
            and unicodedata.bidirectional(character) not in marks
        )

    assert clean(text) == "".join(filter(stays, text))


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "\x9b31mred", "\x1b]0;title\x07", "a\rb"])
def test_clean_takes_the_power_from_terminal_sequences(text: str) -> None:
    assert not set("\x1b\x9b\x07\r") & set(clean(text))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://user:pw@host:5432/db", "postgresql://user:***@host:5432/db"),
        ("redis://:pw@host", "redis://:***@host"),
        ("redis://default:p@ss@host/0", "redis://default:***@host/0"),
        ("postgresql+psycopg://u:p:w@h/d", "postgresql+psycopg://u:***@h/d"),
        ("two: redis://:a@h and redis://:b@h", "two: redis://:***@h and redis://:***@h"),
        ("postgresql:///db?host=/tmp&password=pw", "postgresql:///db?host=/tmp&password=***"),
        ("host=h password=pw dbname=d", "host=h password=*** dbname=d"),
        ('{"url":"redis://:pw@h","mail":"a@b"}', '{"url":"redis://:***@h","mail":"a@b"}'),
    ],
)
def test_passwords_are_masked_and_nothing_else(text: str, masked: str) -> None:
    assert mask_passwords(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://user@host:5432/db",
        "postgresql:///db?host=/var/run",
        "https://docs.example/page:3 written by someone@example",
        "http://localhost:8080/v1",
        "unix:///run/valkey.sock?db=0",
    ],
)
def test_texts_without_a_password_stay_as_they_are(text: str) -> None:
    assert mask_passwords(text) == text


def test_known_secrets_are_masked_wherever_they_stand() -> None:
    mask = Masker(["sk-canary", "sk-canary-longer"])
    assert mask("a sk-canary-longer b sk-canary c") == f"a {MASK} b {MASK} c"


def test_a_known_secret_is_masked_in_its_json_form_too() -> None:
    secret = 'p"a\\ss\u00e9'
    line = json.dumps({"error": f"refused {secret}"})
    assert json.loads(Masker([secret])(line)) == {"error": f"refused {MASK}"}


def test_an_empty_secret_masks_nothing() -> None:
    assert Masker([""])("plain") == "plain"


def test_masking_takes_no_longer_a_letter_in_a_long_text() -> None:
    """Counted in steps of the pattern, not in seconds: a quadratic one never ends here."""
    assert mask_passwords("a" * 2_000_000).count("a") == 2_000_000


@pytest.mark.parametrize("write", [str, quote, quote_plus, repr, json.dumps, urlencoded_in_json])
def test_a_known_secret_is_masked_however_a_text_writes_it(write: Callable[[str], str]) -> None:
    secret = "p/w@\"a\\s's:é"
    written = write(secret)
    assert MASK in Masker([secret])(f"refused {written}.")
    assert written.strip("\"'") not in Masker([secret])(f"refused {written}.")


def test_the_password_of_a_clients_key_is_masked() -> None:
    assert mask_passwords("postgresql://h/d?sslpassword=pw") == ("postgresql://h/d?sslpassword=***")
