"""The frame of the command line: help, spelling, and how each way out ends."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from cli import main as frame
from cli.context import Context, pass_context
from cli.lazy import LazyCommand, examples
from cli.main import COMMANDS, main, root
from pipeline.errors import (
    InputError,
    RecallwatchError,
    SettingsError,
    TransientError,
    UnmeasuredError,
)

HEAVY = ("celery", "kombu", "sqlalchemy", "numpy", "pydantic", "psycopg", "redis", "rich")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Subprocesses run elsewhere than in the repository, and find it by this.
    monkeypatch.setenv("PYTHONPATH", str(Path(frame.__file__).parent.parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Add a command `try` that does what is passed."""

    def add(body: Callable[[], None]) -> None:
        monkeypatch.setitem(root.commands, "try", click.Command("try", callback=body))

    return add


def raising(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-m", "cli.main", *arguments),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
        timeout=60,
    )


def test_help_imports_none_of_the_heavy_packages() -> None:
    script = (
        "import sys\n"
        "from cli.main import main\n"
        "code = main(['--help'])\n"
        f"loaded = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "sys.exit(f'{code} {loaded}' if code or loaded else 0)"
    )
    done = subprocess.run(
        (sys.executable, "-c", script), capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n  {name}" in done.stdout for name, _, _ in COMMANDS)


def test_help_lists_commands_in_the_order_of_use_with_whole_texts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    places = [text.index(f"  {name} ") for name, _, _ in COMMANDS]
    assert places == sorted(places)
    assert all(short in text for _, _, short in COMMANDS)
    assert max(map(len, text.splitlines())) <= 80


def test_help_keeps_the_lines_of_examples_and_exit_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["-h"])
    text = capsys.readouterr().out
    assert "\n    recallwatch init\n    recallwatch corpus load chunks.jsonl\n" in text
    assert "\n    2   wrong usage, settings or input\n" in text


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("recallwatch ")


def test_without_a_command_help_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Commands:" in captured.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["evl"], "no such command 'evl'; did you mean eval? (see recallwatch --help)"),
        (["zzzzz"], "no such command 'zzzzz' (see recallwatch --help)"),
        (
            ["config", "shw"],
            "no such command 'shw'; did you mean show? (see recallwatch config --help)",
        ),
        (
            ["config", "show", "--jsn"],
            "no such option '--jsn'. Did you mean '--json'? (see recallwatch config show --help)",
        ),
        (
            ["completion", "tcsh"],
            (
                "invalid value for '{bash|zsh|fish}': 'tcsh' is not one of 'bash', 'zsh', 'fish' "
                "(see recallwatch completion --help)"
            ),
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"error: {line}\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("recallwatch.toml: k"), 2),
        (InputError("golden.jsonl line 3: no question"), 2),
        (TransientError("PostgreSQL does not answer", retry_after=3), 2),
        (UnmeasuredError("12 of 100 questions failed"), 3),
    ],
)
def test_our_errors_are_one_line_with_their_exit_code(
    command: Callable[[Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
    error: RecallwatchError,
    code: int,
) -> None:
    command(raising(error))
    assert main(["try"]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"error: {error}\n")


def test_an_error_line_is_not_wrapped_coloured_or_able_to_send_escape_codes(
    command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(InputError("word " * 40 + "[red]\x1b[2J redis://:canary@h")))
    main(["try"])
    assert capsys.readouterr().err == f"error: {'word ' * 40}[red][2J redis://:***@h\n"


def test_on_a_terminal_the_word_error_is_red(
    command: Callable[[Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    command(raising(InputError("no question")))
    main(["try"])
    assert capsys.readouterr().err == "\x1b[1;31merror\x1b[0m: no question\n"


def test_several_faults_are_a_line_each(
    command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(SettingsError("first\nsecond")))
    main(["try"])
    assert capsys.readouterr().err == "error: first\nerror: second\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_one_line_and_130(
    command: Callable[[Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
) -> None:
    command(raising(error))
    assert main(["try"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_an_interrupt_may_say_what_it_leaves(
    command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(KeyboardInterrupt("run 7 goes on")))
    assert main(["try"]) == 130
    assert capsys.readouterr().err == "error: interrupted; run 7 goes on\n"


def test_an_unexpected_error_is_called_a_bug_with_how_to_see_more(
    command: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(ZeroDivisionError("division\nby zero")))
    assert main(["try"]) == 70
    assert capsys.readouterr().err == (
        "error: this is a bug in recallwatch: ZeroDivisionError: division by zero "
        "(-v or RECALLWATCH_DEBUG=1 shows the traceback)\n"
    )


@pytest.mark.parametrize("by", ["-v", "RECALLWATCH_DEBUG"])
def test_the_traceback_of_a_bug_is_shown_on_request(
    command: Callable[[Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    by: str,
) -> None:
    command(raising(ZeroDivisionError("by zero")))
    if by != "-v":
        monkeypatch.setenv(by, "1")
    assert main(["-v", "try"] if by == "-v" else ["try"]) == 70
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "error: this is a bug in recallwatch: ZeroDivisionError: by zero"


def test_a_command_chooses_its_exit_code(command: Callable[[Callable[[], None]], None]) -> None:
    command(raising(click.exceptions.Exit(1)))
    assert main(["try"]) == 1


def test_a_command_that_ends_well_exits_0(command: Callable[[Callable[[], None]], None]) -> None:
    command(lambda: None)
    assert main(["try"]) == 0


def test_global_options_reach_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    @pass_context
    def look(context: Context) -> None:
        click.echo(f"{context.config_path} {context.verbosity}")

    monkeypatch.setitem(root.commands, "look", look)
    assert main(["--config", "x.toml", "-vv", "look"]) == 0
    assert capsys.readouterr().out == "x.toml 2\n"


def test_every_command_is_lazy_and_has_a_module_path() -> None:
    commands = root.commands.values()
    assert all(isinstance(command, LazyCommand) for command in commands)
    assert all(target.count(":") == 1 for _, target, _ in COMMANDS)


def test_examples_keep_their_lines_in_a_commands_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = click.Command("shown", epilog=examples("recallwatch a", "recallwatch b --c"))
    monkeypatch.setitem(root.commands, "shown", shown)
    main(["shown", "--help"])
    assert "\n  Examples:\n    recallwatch a\n    recallwatch b --c\n" in capsys.readouterr().out


def test_as_a_process_a_wrong_setting_exits_2_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "recallwatch.toml").write_text("[eval]\nk = 0\n")
    done = run("config", "show")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: recallwatch.toml: eval.k: must be an integer from 1 to 1000, not 0\n"
    )


def test_as_a_process_wrong_usage_exits_2_and_success_0() -> None:
    assert run("evl").returncode == 2
    done = run("config", "show", "--json", RECALLWATCH_EVAL__K="9")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["settings"]["eval.k"]["value"] == 9


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            (sys.executable, "-m", "cli.main", "config", "show"),
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (141, "")


def test_output_in_a_poor_encoding_does_not_fail(tmp_path: Path) -> None:
    (tmp_path / "recallwatch.toml").write_text('[eval]\nset = "caf\u00e9"\n', encoding="utf-8")
    done = run("config", "show", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "caf\\xe9" in done.stdout


@pytest.mark.parametrize("verbosity", [(), ("-v",)])
@pytest.mark.parametrize("error", [InputError, RuntimeError])
def test_an_error_or_its_traceback_shows_no_secret_of_the_settings(
    command: Callable[[Callable[[], None]], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    verbosity: tuple[str, ...],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary/4711")

    def fail() -> None:
        click.get_current_context().obj.settings.model_copy()
        raise error("the server said sk-canary/4711 and sk-canary%2F4711\x1b[2J")

    command(fail)
    main([*verbosity, "try"])
    said = capsys.readouterr().err
    assert "the server said *** and ***" in said
    assert "canary" not in said
    assert "\x1b" not in said
