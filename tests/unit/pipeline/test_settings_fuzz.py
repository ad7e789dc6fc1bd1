"""Whatever the file and the environment hold: settings, or one line a fault, never a traceback."""

import json
import os
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import SettingsError
from pipeline.settings_loading import load_settings
from pipeline.settings_schema import dotted_keys
from pipeline.settings_sources import FILE_NAME, MAX_FILE_BYTES, WELL_KNOWN

shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder to load settings in; the environment is as before in the end."""
    before = dict(os.environ)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    _restore(before)


def _restore(environment: dict[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]


def load_or_refuse() -> str | None:
    """Load the settings; return what was said where they were refused."""
    try:
        load_settings()
    except SettingsError as error:
        message = str(error)
        assert message
        assert "Traceback" not in message
        return message
    return None


HARD_FILES = {
    "a NUL byte": b"\0",
    "a NUL in a path": b'state_dir = "a\\u0000b"',
    "a NUL in a name": b'[corpus]\ntable = "a\\u0000b"',
    "UTF-16": "[eval]\nk = 3".encode("utf-16"),
    "Latin-1": b'[eval]\nset = "caf\xe9"',
    "half a surrogate pair": b'[eval]\nset = "\\ud800"',
    "an array without end": b"x = " + b"[" * 3000,
    "an array too deep": b"x = " + b"[" * 3000 + b"]" * 3000,
    "an array deep": b"[eval]\nk = " + b"[" * 200 + b"]" * 200,
    "a key too deep": b".".join([b"a"] * 3000) + b" = 1",
    "a known key too deep": b"eval." + b".".join([b"a"] * 900) + b" = 1",
    "a table too deep": b"[" + b".".join([b"a"] * 3000) + b"]",
    "an endless integer": b"[eval]\nk = " + b"9" * 5000,
    "an endless hexadecimal integer": b"[eval]\nk = 0x" + b"f" * 6000,
    "an integer of 80 bits": b"[eval]\nk = 999999999999999999999999",
    "a number beyond floats": b"[embedding]\ntimeout = 1e400",
    "no number": b"[embedding]\ntimeout = nan",
    "a date": b"[eval]\nk = 1979-05-27",
    "a key twice": b"[eval]\nk = 1\nk = 2",
    "a zone outside the folder of zones": (
        b'[[schedule]]\nname = "a"\ncron = "0 0 * * *"\ntimezone = "../../../etc/passwd"'
    ),
    "a minute beyond measure": b'[[schedule]]\nname = "a"\ncron = "' + b"9" * 5000 + b' * * * *"',
    "a file beyond measure": b"#" * (MAX_FILE_BYTES + 1),
}


@pytest.mark.parametrize("name", HARD_FILES)
def test_a_hard_file_is_refused_in_words(folder: Path, name: str) -> None:
    (folder / FILE_NAME).write_bytes(HARD_FILES[name])
    said = load_or_refuse()
    assert said is not None
    assert said.startswith((f"{FILE_NAME}: ", "settings: nested too deeply"))
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf[eval]\nk = 3\n", b"[eval]\r\nk = 3\r\n"])
def test_marks_and_line_ends_of_windows_are_no_fault(folder: Path, content: bytes) -> None:
    (folder / FILE_NAME).write_bytes(content)
    assert load_settings().settings.eval.k == 3


@pytest.mark.parametrize("name", ["/", "/dev/null/x", "/" + "a" * 5000])
def test_a_settings_file_that_is_none_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("RECALLWATCH_CONFIG", name)
    assert load_or_refuse() is not None


def test_a_file_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLWATCH_CONFIG", "/dev/zero")
    assert "larger than" in str(load_or_refuse())


HARD_VALUES = [
    "[",
    "[" * 5000,
    '{"a":' * 3000,
    "9" * 5000,
    "[" + "9" * 5000 + "]",
    "[1e400]",
    "[NaN]",
    '{"k": 5, "k": 6}',
    '["\\ud800"]',
    "\udcff",
    "\x1b[2J",
    "null",
]
ANY_NAME = st.text(string.ascii_uppercase + "_").map("RECALLWATCH_".__add__)
VARIABLES = (
    *WELL_KNOWN,
    *(f"{name}_FILE" for name in WELL_KNOWN),
    *(f"RECALLWATCH_{key.replace('.', '__').upper()}" for key in dotted_keys()),
    "RECALLWATCH_EVAL__K__DEEPER",
    "RECALLWATCH_STRATEGIES__MINE__KIND",
)


@pytest.mark.parametrize("number", range(len(HARD_VALUES)))
def test_a_hard_value_of_any_variable_is_taken_or_refused_in_words(
    folder: Path, number: int
) -> None:
    assert folder.is_dir()
    for name in VARIABLES:
        os.environ[name] = HARD_VALUES[number]
        said = load_or_refuse()
        assert said is None or name in said
        del os.environ[name]


def test_a_variable_nested_without_end_is_refused_in_words(folder: Path) -> None:
    assert folder.is_dir()
    os.environ["RECALLWATCH_" + "__".join(["EVAL"] * 3000)] = "1"
    assert load_or_refuse() is not None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
).map(json.dumps)
NO_NUL = st.text(st.characters(exclude_characters="\0"), max_size=40)


@shared
@given(
    variables=st.dictionaries(
        st.sampled_from(VARIABLES) | ANY_NAME,
        (NO_NUL | JSON_VALUES).filter(lambda text: "\0" not in text),
        max_size=4,
    )
)
def test_any_environment_is_taken_or_refused_in_words(
    folder: Path, variables: dict[str, str]
) -> None:
    assert folder.is_dir()
    before = dict(os.environ)
    os.environ.update({name: text.encode("utf-8", "replace").decode() for name, text in
                       variables.items()})  # fmt: skip
    try:
        load_or_refuse()
    finally:
        _restore(before)


SECTIONS = st.sampled_from([key for key in dotted_keys() if "." in key] + ["schedule", "eval", "x"])
TOML_VALUES = (
    JSON_VALUES
    | st.sampled_from(["nan", "inf", "-0", "0x1f", "1979-05-27", "07:32:00", "'''", "{}", "{a=1}"])
    | st.text(max_size=20)
)


@shared
@given(lines=st.lists(st.tuples(SECTIONS, TOML_VALUES), max_size=5), noise=st.binary(max_size=20))
def test_any_file_is_taken_or_refused_in_words(
    folder: Path, lines: list[tuple[str, str]], noise: bytes
) -> None:
    text = "\n".join(f"{key} = {value}" for key, value in lines)
    (folder / FILE_NAME).write_bytes(text.encode("utf-8", "replace") + noise)
    said = load_or_refuse()
    assert said is None or FILE_NAME in said, "it names the file"


SCHEDULE_TEXTS = st.text(string.digits + "*/,-#LW? \u00b2\u0661", max_size=25) | st.text(
    max_size=20
)


@shared
@given(
    values=st.dictionaries(
        st.sampled_from(["name", "cron", "every", "timezone", "set", "grace", "k", "level"]),
        SCHEDULE_TEXTS | st.integers(),
    )
)
def test_any_schedule_is_taken_or_refused_in_words(folder: Path, values: dict[str, object]) -> None:
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    text = "\n".join(["[[schedule]]", *lines])
    (folder / FILE_NAME).write_text(text, encoding="utf-8", errors="replace")
    said = load_or_refuse()
    assert said is None or FILE_NAME in said, "it names the file"
