"""Where settings come from, which of two wins, and what is remembered of it."""

from pathlib import Path

import pytest

from pipeline import settings_sources
from pipeline.errors import SettingsError
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.settings import Settings
from pipeline.settings_loading import load_settings

FILE = "recallwatch.toml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_without_file_and_environment_all_is_default(folder: Path) -> None:
    loaded = load_settings()
    folders = {"state_dir": folder / ".recallwatch", "python_folder": folder}
    expected = Settings().model_copy(update=folders)
    assert loaded.settings == expected
    assert set(loaded.origins.values()) == {"default"}
    assert (loaded.file, loaded.root) == (None, folder)


def test_the_file_overrides_a_default_and_the_environment_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / FILE).write_text("[eval]\nk = 10\nlook_depth = 20\n")
    monkeypatch.setenv("RECALLWATCH_EVAL__K", "20")
    loaded = load_settings()
    assert (loaded.settings.eval.k, loaded.settings.eval.look_depth) == (20, 20)
    assert loaded.origins["eval.k"] == "environment RECALLWATCH_EVAL__K"
    assert loaded.origins["eval.look_depth"] == FILE
    assert loaded.origins["eval.shard_size"] == "default"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DATABASE_URL", "postgresql://u:p@h/a"),
        ("CORPUS_URL", "postgresql://u:p@h/b"),
        ("REDIS_URL", "redis://:p@h"),
        ("OPENAI_API_KEY", "sk-1"),
        ("VOYAGE_API_KEY", "pa-1"),
        ("COHERE_API_KEY", "co-1"),
        ("TEI_API_KEY", "hf-1"),
        ("ANTHROPIC_API_KEY", "sk-2"),
        ("SLACK_WEBHOOK_URL", "https://h/T"),
    ],
)
def test_well_known_variables_are_read(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    loaded = load_settings()
    assert getattr(loaded.settings, variable.lower()).get_secret_value() == value
    assert loaded.origins[variable.lower()] == f"environment {variable}"


@pytest.mark.usefixtures("folder")
def test_the_prefixed_variable_wins_over_the_well_known_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql:///theirs")
    monkeypatch.setenv("RECALLWATCH_DATABASE_URL", "postgresql:///ours")
    loaded = load_settings()
    assert loaded.settings.database_url is not None
    assert loaded.settings.database_url.get_secret_value() == "postgresql:///ours"
    assert loaded.origins["database_url"] == "environment RECALLWATCH_DATABASE_URL"


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_counts_as_unset(
    folder: Path, monkeypatch: pytest.MonkeyPatch, empty: str
) -> None:
    (folder / FILE).write_text('database_url = "postgresql:///d"\n')
    for name in ("DATABASE_URL", "REDIS_URL", "RECALLWATCH_EVAL__K", "RECALLWATCH_CONFIG"):
        monkeypatch.setenv(name, empty)
    loaded = load_settings()
    assert loaded.origins["database_url"] == FILE
    assert loaded.settings.redis_url is None
    assert loaded.settings.eval.k == 5


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", ["3,7", " 3 , 7 ", "[3, 7]"])
def test_a_list_is_json_or_separated_by_commas(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("RECALLWATCH_EVAL__CUTOFFS", text)
    assert load_settings().settings.eval.cutoffs == [3, 7]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("RECALLWATCH_EVAL__STRATEGIES", "vector", "eval.strategies", ["vector"]),
        ("RECALLWATCH_EVAL__LEVEL", "document", "eval.level", "document"),
        ("RECALLWATCH_GATE__MAX_DROP", "0.1", "gate.max_drop", 0.1),
        ("RECALLWATCH_GATE__MAX_DROP", "1", "gate.max_drop", 1.0),
        ("RECALLWATCH_EMBEDDING__DIMENSIONS", "128", "embedding.dimensions", 128),
        ("RECALLWATCH_LOG__FORMAT", "json", "log.format", "json"),
        ("RECALLWATCH_CORPUS__TENANT", "customer", "corpus.tenant", "customer"),
        ("recallwatch_queue__workers", "3", "queue.workers", 3),
    ],
)
def test_a_variable_becomes_a_value_of_the_keys_type(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, path: str, value: object
) -> None:
    monkeypatch.setenv(variable, text)
    loaded = load_settings()
    section, key = path.split(".")
    assert getattr(getattr(loaded.settings, section), key) == value
    assert loaded.origins[path] == f"environment {variable}"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", ["true", "1", "yes"])
def test_strategies_are_set_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("RECALLWATCH_STRATEGIES__VECTOR__EF_SEARCH", "200")
    monkeypatch.setenv("RECALLWATCH_STRATEGIES__VECTOR__EXACT", text)
    assert load_settings().settings.strategies["vector"] == VectorStrategy(
        ef_search=200, exact=True
    )


@pytest.mark.usefixtures("folder")
def test_a_section_is_set_as_json_and_a_key_of_it_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLWATCH_EVAL", '{"k": 3, "look_depth": 9}')
    monkeypatch.setenv("RECALLWATCH_EVAL__K", "4")
    loaded = load_settings()
    assert (loaded.settings.eval.k, loaded.settings.eval.look_depth) == (4, 9)
    assert loaded.origins["eval.k"] == "environment RECALLWATCH_EVAL__K"
    assert loaded.origins["eval.look_depth"] == "environment RECALLWATCH_EVAL"


def test_the_nearest_file_above_is_used_and_its_folder_is_the_root(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / FILE).write_text("[eval]\nk = 9\n")
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    loaded = load_settings()
    assert (loaded.settings.eval.k, loaded.file, loaded.root) == (9, folder / FILE, folder)
    assert loaded.settings.state_dir == folder / ".recallwatch"
    assert loaded.origins["eval.k"] == str(folder / FILE)


def test_the_search_stops_at_the_nearest_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / FILE).write_text("[eval]\nk = 9\n")
    below = folder / "a"
    below.mkdir()
    (below / FILE).write_text("")
    monkeypatch.chdir(below)
    assert load_settings().settings.eval.k == 5


def test_the_search_does_not_go_above_the_home_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / FILE).write_text("[eval]\nk = 9\n")
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    assert load_settings().file is None


def test_the_argument_wins_over_the_variable_and_that_over_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / FILE).write_text("[eval]\nk = 1\n")
    (folder / "second.toml").write_text("[eval]\nk = 2\n")
    (folder / "third.toml").write_text("[eval]\nk = 3\n")
    assert load_settings().settings.eval.k == 1
    monkeypatch.setenv("RECALLWATCH_CONFIG", "second.toml")
    assert load_settings().settings.eval.k == 2
    loaded = load_settings(Path("third.toml"))
    assert loaded.settings.eval.k == 3
    assert loaded.origins["eval.k"] == "third.toml"


def test_a_state_folder_is_resolved_against_the_files_folder(folder: Path) -> None:
    (folder / "deploy").mkdir()
    (folder / "deploy" / "rw.toml").write_text('state_dir = "data/rw"\n')
    assert load_settings(Path("deploy/rw.toml")).settings.state_dir == folder / "deploy/data/rw"


@pytest.mark.parametrize(("given", "expected"), [("/srv/rw", "/srv/rw"), ("~/rw", "{home}/rw")])
def test_an_absolute_state_folder_stays(folder: Path, given: str, expected: str) -> None:
    (folder / FILE).write_text(f'state_dir = "{given}"\n')
    assert load_settings().settings.state_dir == Path(expected.format(home=folder))


def test_a_file_with_a_byte_order_mark_loads(folder: Path) -> None:
    (folder / FILE).write_text("[eval]\nk = 8\n", encoding="utf-8-sig")
    assert load_settings().settings.eval.k == 8


@pytest.mark.usefixtures("folder")
def test_a_user_without_home_folder_can_still_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert load_settings().settings.eval.k == 5


def test_an_unreadable_file_is_named(folder: Path) -> None:
    (folder / "rw.toml").mkdir()
    with pytest.raises(SettingsError, match=r"^rw\.toml: cannot be read: Is a directory$"):
        load_settings(Path("rw.toml"))


def test_a_missing_file_is_named_with_who_named_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match=r"^no\.toml: no such file \(named by --config\)"):
        load_settings(Path("no.toml"))
    monkeypatch.setenv("RECALLWATCH_CONFIG", str(folder / "gone.toml"))
    with pytest.raises(SettingsError, match="named by environment RECALLWATCH_CONFIG"):
        load_settings()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DATABASE_URL", "postgresql://u:p@h/a"),
        ("CORPUS_URL", "postgresql://u:p@h/b"),
        ("REDIS_URL", "redis://:p@h"),
        ("OPENAI_API_KEY", "sk-1"),
        ("VOYAGE_API_KEY", "pa-1"),
        ("COHERE_API_KEY", "co-1"),
        ("TEI_API_KEY", "hf-1"),
        ("ANTHROPIC_API_KEY", "sk-2"),
        ("SLACK_WEBHOOK_URL", "https://h/T"),
    ],
)
def test_a_secret_is_read_from_the_file_that_a_variable_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    (folder / "secret").write_text(f"{value}\n")
    monkeypatch.setenv(f"{variable}_FILE", str(folder / "secret"))
    loaded = load_settings()
    assert getattr(loaded.settings, variable.lower()).get_secret_value() == value
    assert loaded.origins[variable.lower()] == f"environment {variable}_FILE"


@pytest.mark.usefixtures("folder")
def test_a_secret_file_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY_FILE", "/nowhere/key")
    with pytest.raises(SettingsError, match=r"^environment OPENAI_API_KEY_FILE: /nowhere/key "):
        load_settings()


UNPROTECTED = {
    "DATABASE_URL": "postgresql://u@db.example.org/a",
    "CORPUS_URL": "postgresql://u@corpus.example.org/a",
    "REDIS_URL": "redis://cache.example.org",
}


@pytest.mark.usefixtures("folder")
def test_servers_elsewhere_without_a_password_are_refused_in_a_line_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, url in UNPROTECTED.items():
        monkeypatch.setenv(name, url)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    lines = str(caught.value).splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        f"environment {name}: {name.lower()}: holds no password" for name in UNPROTECTED
    ]
    assert all("allow_no_password = true" in line for line in lines)
    monkeypatch.setenv("RECALLWATCH_ALLOW_NO_PASSWORD", "true")
    assert load_settings().settings.redis_url is not None


def test_a_server_without_a_password_may_be_allowed_in_the_file(folder: Path) -> None:
    (folder / FILE).write_text('redis_url = "redis://h"\n')
    with pytest.raises(SettingsError, match=f"^{FILE}: redis_url: holds no password, and h is"):
        load_settings()
    (folder / FILE).write_text('redis_url = "redis://h"\nallow_no_password = true\n')
    assert load_settings().settings.allow_no_password


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> dict[Path, int]:
    """Give who owns which path, for tests that run as anybody; this process is user 1000."""
    owned: dict[Path, int] = {}
    monkeypatch.setattr(settings_sources, "_owner", lambda path: owned[path])
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    return owned


@pytest.mark.parametrize(
    ("folders", "files", "trusted"),
    [
        (1000, 1000, True),
        (0, 1000, True),  # ours, in /tmp
        (1000, 0, True),  # the administrator's, in /
        (1001, 1001, True),  # a container, in a folder of the host's user
        (1000, 1001, False),  # somebody else's, above our folder
        (0, 1001, False),  # somebody else's, in /tmp
    ],
)
def test_a_settings_file_that_a_stranger_left_is_not_used_unless_it_is_named(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    owners: dict[Path, int],
    folders: int,
    files: int,
    *,
    trusted: bool,
) -> None:
    file, below = folder / FILE, folder / "below"
    file.write_text("[eval]\nk = 7\n")
    below.mkdir()
    monkeypatch.chdir(below)
    owners.update({below: folders, file: files})
    if trusted:
        assert load_settings().settings.eval.k == 7
        return
    with pytest.raises(SettingsError, match="belongs to another user") as caught:
        load_settings()
    assert str(file) in str(caught.value)
    assert load_settings(file).settings.eval.k == 7
