"""What is logged, in which form, and what never is."""

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from pipeline.log import QUIET_LIBRARIES, configure
from pipeline.settings import LogSettings


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    levels = {name: logging.getLogger(name).level for name in QUIET_LIBRARIES}
    yield
    root.handlers, _ = before
    root.setLevel(before[1])
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_off_a_terminal_a_line_is_one_json_object_in_utc(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(LogSettings())
    with structlog.contextvars.bound_contextvars(run=7):
        structlog.get_logger("workers.reducing").warning("run_failed", reason="late")
    (line,) = lines(capsys)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line.pop("timestamp"))
    assert line == {
        "event": "run_failed",
        "level": "warning",
        "logger": "workers.reducing",
        "run": 7,
        "reason": "late",
    }


def test_console_form_is_text_without_colour_off_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(LogSettings(format="console"))
    structlog.get_logger().warning("run_failed", run=7)
    line = capsys.readouterr().err
    assert "run_failed" in line
    assert "run=7" in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("level", "verbosity", "written"),
    [
        ("warning", 0, ["warning", "error"]),
        ("error", 0, ["error"]),
        ("error", 1, ["info", "warning", "error"]),
        ("warning", 2, ["debug", "info", "warning", "error"]),
        ("warning", 9, ["debug", "info", "warning", "error"]),
        ("debug", 1, ["debug", "info", "warning", "error"]),
    ],
)
def test_the_level_is_the_settings_or_lower_with_verbosity(
    capsys: pytest.CaptureFixture[str], level: str, verbosity: int, written: list[str]
) -> None:
    configure(LogSettings.model_validate({"level": level}), verbosity=verbosity)
    for name in ("debug", "info", "warning", "error"):
        getattr(structlog.get_logger(), name)("event")
        getattr(logging.getLogger("a.library"), name)("event")
    assert [line["level"] for line in lines(capsys)] == [name for name in written for _ in range(2)]


def test_the_standard_librarys_records_take_the_same_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(LogSettings())
    logging.getLogger("celery.worker").warning("lost %s", "the broker")
    (line,) = lines(capsys)
    assert (line["event"], line["logger"]) == ("lost the broker", "celery.worker")


@pytest.mark.parametrize("library", QUIET_LIBRARIES)
def test_libraries_that_log_keys_and_texts_stay_quiet_even_at_debug(
    capsys: pytest.CaptureFixture[str], library: str
) -> None:
    configure(LogSettings(level="debug"))
    logging.getLogger(library).info("POST body")
    logging.getLogger(library).warning("refused")
    assert [line["event"] for line in lines(capsys)] == ["refused"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_are_masked_in_messages_fields_and_tracebacks(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    configure(LogSettings.model_validate({"format": form}), secrets=["sk-canary"])
    logging.getLogger("celery").error("at redis://:canary@h with sk-canary")
    structlog.get_logger().error("failed", nested={"key": ["sk-canary"]}, url="redis://:canary@h")
    try:
        int("sk-canary")
    except ValueError:
        structlog.get_logger().exception("failed")
        logging.getLogger("other").exception("failed")
    written = capsys.readouterr().err
    assert "canary" not in written
    assert written.count("ValueError: invalid literal for int() with base 10: '***'") == 2


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_does_not_show_local_variables(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    configure(LogSettings.model_validate({"format": form}))

    def fail(question: str) -> None:
        raise ValueError(len(question))

    try:
        fail("what is " + "private")
    except ValueError:
        structlog.get_logger().exception("failed")
    assert "what is private" not in capsys.readouterr().err


def test_a_logged_text_cannot_send_escape_codes(capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogSettings(format="console"))
    structlog.get_logger().warning("failed", document="\x1b[2J")
    assert "\x1b" not in capsys.readouterr().err


def test_configuring_twice_writes_each_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogSettings())
    configure(LogSettings())
    structlog.get_logger().warning("once")
    assert len(lines(capsys)) == 1


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_strangers_text_cannot_look_like_another_event(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    configure(LogSettings.model_validate({"format": form}))
    forged = "x\n2026-01-01T00:00:00Z [warning] all_is_well\r\nanother\u2028one\x85more"
    structlog.get_logger().warning("failed", reason=forged, nested=[forged])
    logging.getLogger("other").warning(forged)
    assert len(capsys.readouterr().err.splitlines()) == 2
