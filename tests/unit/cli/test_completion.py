"""Shell completion: the scripts, and what they get to offer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import main as frame
from cli.main import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_asks_the_program_in_the_shells_way(
    capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_RECALLWATCH_COMPLETE={shell}_complete" in script
    assert "recallwatch" in script


def test_help_says_how_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "--help"]) == 0
    text = capsys.readouterr().out
    assert "recallwatch completion fish > ~/.config/fish/completions/recallwatch.fish" in text


@pytest.mark.parametrize(
    ("words", "offered"),
    [("recallwatch ev", "eval"), ("recallwatch config sh", "show")],
)
def test_commands_are_completed(tmp_path: Path, words: str, offered: str) -> None:
    assert complete(tmp_path, words) == f"plain,{offered}\n"


@pytest.mark.parametrize("command", ["strategies probe", "eval --strategy", "eval -s"])
@pytest.mark.parametrize("given", ["", "--config other.toml "])
def test_strategies_are_completed_by_name(tmp_path: Path, command: str, given: str) -> None:
    named = "[strategies.filtered]\nkind = 'vector'\n"
    (tmp_path / ("other.toml" if given else "recallwatch.toml")).write_text(named)

    offered = complete(tmp_path, f"recallwatch {given}{command} f")

    assert set(offered.splitlines()) == {"plain,fulltext", "plain,filtered"}


def test_faulty_settings_offer_no_names(tmp_path: Path) -> None:
    (tmp_path / "recallwatch.toml").write_text("[strategies.filtered]\nkind = 'none'\n")
    assert complete(tmp_path, "recallwatch strategies probe f").strip() == ""


def complete(folder: Path, words: str) -> str:
    """Return what is offered to a shell in the folder; succeeds without a word of its own."""
    # The variables that the bash script sets: the words typed, and which of them is at hand.
    done = subprocess.run(
        (sys.executable, "-m", "cli.main"),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=60,
        env=os.environ
        | {
            "PYTHONPATH": str(Path(frame.__file__).parent.parent),
            "_RECALLWATCH_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        },
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
