"""tests/run.py: what `make test` says of skipped tests and of failures."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PASSES = "def test_one(): pass\n"
SKIPS = "import pytest\n@pytest.mark.skip(reason='not here')\ndef test_two(): pass\n"
SKIPS_ALL = "import pytest\npytest.skip('not here', allow_module_level=True)\n"
FAILS = "def test_three(): raise ValueError\n"
ASKS_A_CHILD = """
import subprocess, sys
ASKED = "import signal; print(*(signal.getsignal(n) is signal.SIG_IGN for n in (1, 2)))"
def test_four():
    assert subprocess.check_output([sys.executable, "-c", ASKED]) == b"False False\\n"
"""


def run(
    folder: Path, *texts: str, options: tuple[str, ...] = (), before: tuple[str, ...] = ()
) -> tuple[int, str]:
    """Run test files of one's own; return the exit code and what was printed."""
    for number, text in enumerate(texts):
        (folder / f"test_trial_{number}.py").write_text(text, encoding="utf-8")
    quick = ["-n=0", "--no-cov", "-p", "no:cacheprovider", f"--rootdir={folder}"]
    done = subprocess.run(
        [*before, sys.executable, "-m", "tests.run", *quick, *options, str(folder)],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.parametrize(("text", "processes"), [(SKIPS, 0), (SKIPS, 1), (SKIPS_ALL, 1)])
def test_a_skipped_test_fails_the_run_where_none_may_be(
    tmp_path: Path, text: str, processes: int
) -> None:
    code, output = run(tmp_path, PASSES, text, options=("--no-skips", f"-n={processes}"))
    assert code == pytest.ExitCode.TESTS_FAILED
    named = output.partition("skipped, and none may be")[2]
    assert "test_trial_1.py" in named
    assert "test_trial_0.py" not in named


def test_a_skipped_test_is_allowed_otherwise(tmp_path: Path) -> None:
    code, output = run(tmp_path, PASSES, SKIPS)
    assert code == pytest.ExitCode.OK
    assert "none may be" not in output


def test_a_run_without_a_skip_passes_and_ends_with_pytests_own_line(tmp_path: Path) -> None:
    code, output = run(tmp_path, PASSES, options=("--no-skips",))
    assert code == pytest.ExitCode.OK
    assert re.fullmatch(r"=+ 1 passed in \d+\.\d\ds =+", output.splitlines()[-1])


def test_a_failed_test_fails_the_run_whether_or_not_one_is_skipped(tmp_path: Path) -> None:
    code, output = run(tmp_path, FAILS, SKIPS, options=("--no-skips",))
    assert code == pytest.ExitCode.TESTS_FAILED
    assert re.fullmatch(r"=+ 1 failed, 1 skipped in \d+\.\d\ds =+", output.splitlines()[-1])


def test_commands_under_test_hear_signals_that_the_run_was_started_to_ignore(
    tmp_path: Path,
) -> None:
    in_background = ("/bin/sh", "-c", """trap "" HUP INT; exec "$@" """, "sh")
    code, output = run(tmp_path, ASKS_A_CHILD, options=("-n=1",), before=in_background)
    assert code == pytest.ExitCode.OK, output
