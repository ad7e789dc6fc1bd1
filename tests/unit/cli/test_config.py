"""`recallwatch init` and `recallwatch config show`."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.config import config, init
from cli.context import Context
from cli.main import main
from cli.settings_template import settings_template
from pipeline.schedules import WEEKLY, Schedule
from pipeline.settings import Settings
from pipeline.settings_loading import load_settings
from pipeline.settings_sources import flatten

FILE = Path("recallwatch.toml")
SETTING = re.compile(r"^# (?=\w+ = |\[)", re.MULTILINE)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(config, ["show", *arguments], obj=Context())
    assert result.exit_code == 0, result.output
    return result.stdout


def shown_settings() -> dict[str, dict[str, Any]]:
    settings: dict[str, dict[str, Any]] = json.loads(shown("--json"))["settings"]
    return settings


def test_the_file_as_written_loads_and_changes_nothing() -> None:
    before = load_settings().settings
    assert main(["init"]) == 0
    loaded = load_settings()
    assert loaded.file == FILE.absolute()
    assert loaded.settings == before
    assert set(loaded.origins.values()) == {"default"}


def test_the_file_loads_with_every_setting_uncommented() -> None:
    FILE.write_text(SETTING.sub("", settings_template()))
    loaded = load_settings()
    assert loaded.settings.embedding.dimensions == 256
    assert loaded.settings.strategies["vector-ef200"].model_dump()["ef_search"] == 200


def test_uncommented_every_setting_that_has_a_default_has_its_default(folder: Path) -> None:
    FILE.write_text(SETTING.sub("", settings_template()))
    written = flatten(tomllib.loads(FILE.read_text()))
    defaults = flatten(Settings().model_dump(mode="json", exclude={"schedule"}))
    with_default = {key for key, value in defaults.items() if value is not None}
    assert {key: written[key] for key in with_default} == {
        key: defaults[key] for key in with_default
    }
    assert load_settings().settings.state_dir == folder / ".recallwatch"
    [weekly] = written["schedule"]
    default = WEEKLY.model_dump(exclude_none=True)
    assert {key: weekly[key] for key in default} == default


def test_every_setting_but_the_secret_ones_stands_in_the_file_with_a_description() -> None:
    text = settings_template()
    keys = {
        key.rpartition(".")[2]
        for key in flatten(Settings().model_dump())
        if ".arms." not in key and not key.endswith(("_api_key", "slack_webhook_url"))
    }
    # `every` stands in the description of cron: only one of them may be there.
    for key in (keys - {"schedule"}) | {"arms"} | (Schedule.model_fields.keys() - {"every"}):
        assert re.search(rf"^# {key} = \S.*  # \S", text, re.MULTILINE), key
    assert not re.search(r"^#? ?(openai_api_key|slack_webhook_url) =", text, re.MULTILINE)


def test_init_does_not_overwrite_unless_forced(capsys: pytest.CaptureFixture[str]) -> None:
    FILE.write_text("mine")
    assert main(["init"]) == 2
    assert FILE.read_text() == "mine"
    assert capsys.readouterr().err == (
        "error: recallwatch.toml: exists already; --force overwrites it\n"
    )
    assert main(["init", "--force"]) == 0
    assert FILE.read_text() == settings_template()


@pytest.mark.parametrize(
    ("argument", "written"), [("ci.toml", "ci.toml"), ("deploy", "deploy/recallwatch.toml")]
)
def test_init_writes_to_a_file_or_into_a_folder(
    folder: Path, capsys: pytest.CaptureFixture[str], argument: str, written: str
) -> None:
    (folder / "deploy").mkdir()
    assert main(["init", argument]) == 0
    assert (folder / written).read_text() == settings_template()
    assert capsys.readouterr().out == f"wrote {written}\n"


def test_init_writes_the_file_that_config_names(folder: Path) -> None:
    assert main(["--config", "ci.toml", "init"]) == 0
    assert (folder / "ci.toml").exists()


def test_init_says_where_it_cannot_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "no/such/folder.toml"]) == 2
    assert capsys.readouterr().err == (
        "error: no/such/folder.toml: cannot be written: No such file or directory\n"
    )


def test_init_is_a_command_of_its_own() -> None:
    assert CliRunner().invoke(init, ["x.toml"]).exit_code == 0


def test_show_tells_each_value_and_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    FILE.write_text("[eval]\nk = 10\n")
    monkeypatch.setenv("RECALLWATCH_GATE__MAX_DROP", "0.05")
    settings = shown_settings()
    assert settings["eval.k"] == {"value": 10, "from": "recallwatch.toml"}
    assert settings["gate.max_drop"] == {
        "value": 0.05,
        "from": "environment RECALLWATCH_GATE__MAX_DROP",
    }
    assert settings["eval.level"] == {"value": "chunk", "from": "default"}
    assert settings["database_url"] == {"value": None, "from": "default"}


def test_show_names_the_file_it_read(folder: Path) -> None:
    assert "settings file: none" in shown()
    assert json.loads(shown("--json"))["file"] is None
    FILE.touch()
    assert f"settings file: {folder / FILE}" in shown()
    assert json.loads(shown("--json"))["file"] == str(folder / FILE)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_show_masks_every_secret(monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:canary@host/db")
    monkeypatch.setenv("CORPUS_URL", "postgresql://host/db?password=canary")
    monkeypatch.setenv("REDIS_URL", "redis://:canary@host:6379/0")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-canary")
    monkeypatch.setenv("SLACK_WEBHOOK_URL", "https://hooks.example/canary")
    assert "canary" not in shown(*form)


def test_show_masks_the_password_alone_in_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://user:canary@host/db")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    settings = shown_settings()
    assert settings["database_url"]["value"] == "postgresql://user:***@host/db"
    assert settings["openai_api_key"] == {"value": "***", "from": "environment OPENAI_API_KEY"}
    assert settings["anthropic_api_key"]["value"] is None


def test_the_table_fits_80_columns_and_has_a_header_for_each_section(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = "long-host-name." * 8 + "example"
    monkeypatch.setenv("DATABASE_URL", f"postgresql://user:pw@{host}/db")
    monkeypatch.setenv("RECALLWATCH_STRATEGIES__FULLTEXT__MAX_DOCUMENT_FREQUENCY", "0.02")
    text = shown()
    assert max(map(len, text.splitlines())) <= 80
    headers = [line.strip() for line in text.splitlines() if line.strip().startswith("[")]
    assert headers == [
        "[[schedule]]", "[corpus]", "[embedding]", "[eval]", "[generation]", "[gate]", "[queue]",
        "[alerts]", "[log]",
        "[strategies.vector]", "[strategies.fulltext]", "[strategies.hybrid]",
    ]  # fmt: skip


def test_each_schedule_is_shown_with_its_keys_and_where_it_came_from() -> None:
    FILE.write_text(
        '[[schedule]]\nname = "a"\nevery = "6h"\n[[schedule]]\nname = "b"\ncron = "0 6 * * 1"'
    )
    lines = [" ".join(line.split()) for line in shown().splitlines()]
    assert lines.count("[[schedule]]") == 2
    assert {"name a recallwatch.toml", "every 6h recallwatch.toml"} <= set(lines)
    names = [each["name"] for each in shown_settings()["schedule"]["value"]]
    assert names == ["a", "b"]
    FILE.write_text("schedule = []")
    assert "schedule [] recallwatch.toml" in [
        " ".join(line.split()) for line in shown().splitlines()
    ]


def test_config_show_reports_a_wrong_setting(capsys: pytest.CaptureFixture[str]) -> None:
    FILE.write_text("[eval]\nkk = 1\n")
    assert main(["config", "show"]) == 2
    assert capsys.readouterr().err.startswith("error: recallwatch.toml: eval.kk: unknown key")
