"""What a command finds in its context."""

import logging
from pathlib import Path

import pytest
import structlog

from cli.context import Context
from pipeline.errors import SettingsError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_settings_are_loaded_once_and_when_asked_for(folder: Path) -> None:
    context = Context(Path("rw.toml"))
    (folder / "rw.toml").write_text("[eval]\nk = 3\n")
    assert context.settings.eval.k == 3
    (folder / "rw.toml").unlink()
    assert context.settings.eval.k == 3


def test_wrong_settings_raise_when_asked_for(folder: Path) -> None:
    (folder / "recallwatch.toml").write_text("[eval]\nk = 0\n")
    context = Context()
    with pytest.raises(SettingsError):
        _ = context.settings


def test_loading_configures_logging_with_the_verbosity_and_the_secrets(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = '[alerts.channels.team]\nkind = "slack"\nurl_env = "TEAM_HOOK"\n'
    (folder / "recallwatch.toml").write_text(channel)
    monkeypatch.setenv("TEAM_HOOK", "https://hooks.slack.com/services/T0/B0/canary")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    try:
        _ = Context(verbosity=1).settings
        structlog.get_logger().info(
            "asked", key="sk-canary", url="https://hooks.slack.com/services/T0/B0/canary"
        )
        written = capsys.readouterr().err
    finally:
        root.handlers, level = before
        root.setLevel(level)
        structlog.reset_defaults()
    assert '"event": "asked"' in written
    assert "canary" not in written


def test_consoles_write_to_their_streams(capsys: pytest.CaptureFixture[str]) -> None:
    context = Context()
    context.console.print("result")
    context.err.print("note")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("result\n", "note\n")
