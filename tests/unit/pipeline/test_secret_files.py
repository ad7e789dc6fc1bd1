"""Secrets from the environment or from files, as Docker hands them over."""

from pathlib import Path

import pytest

from pipeline.errors import SettingsError
from pipeline.secret_files import MAX_BYTES, secret


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "secret"


def refusal(environment: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        secret("KEY", environment)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert "canary" not in message
    return message


@pytest.mark.parametrize("environment", [{}, {"KEY": " "}, {"KEY_FILE": ""}, {"OTHER": "x"}])
def test_what_is_not_set_or_blank_is_none(environment: dict[str, str]) -> None:
    assert secret("KEY", environment) is None


@pytest.mark.parametrize(
    "content", [b"sk-1", b"sk-1\n", b"  sk-1\r\n\r\n", b"\xef\xbb\xbfsk-1"], ids=str
)
def test_a_file_holds_the_value_whatever_its_editor_put_around_it(
    file: Path, content: bytes
) -> None:
    file.write_bytes(content)
    assert secret("KEY", {"KEY_FILE": str(file)}) == "sk-1"


def test_value_and_file_at_once_are_refused(file: Path) -> None:
    file.write_text("canary")
    said = refusal({"KEY": "canary", "KEY_FILE": str(file)})
    assert said == "environment KEY: KEY_FILE is set too: unset one of the two"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"canary\xff", "is not UTF-8"),
        (b"canary" * MAX_BYTES, "is larger than 65,536 bytes"),
    ],
    ids=["empty", "blank", "latin-1", "large"],
)
def test_a_file_of_no_use_is_told_with_variable_and_name(
    file: Path, content: bytes, said: str
) -> None:
    file.write_bytes(content)
    message = refusal({"KEY_FILE": str(file)})
    assert message.startswith(f"environment KEY_FILE: {file} {said}")


def test_a_file_without_end_is_not_read_to_its_end() -> None:
    assert "larger than" in refusal({"KEY_FILE": "/dev/zero"})


@pytest.mark.parametrize("name", ["/nowhere/at/all", "/", "a\0b", "a" * 5000])
def test_a_file_that_cannot_be_read_is_told(name: str) -> None:
    assert "cannot be read" in refusal({"KEY_FILE": name})
