"""The kill suite in short; `make chaos` is the long one, and docs/reliability.md says what for."""

import json
import subprocess
import sys
from typing import Any

from tests.acceptance.command import REPOSITORY, _without_ours


def chaos(*options: str) -> tuple[int, dict[str, Any]]:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--json", *options],
        cwd=REPOSITORY, env=_without_ours(), capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert finished.stdout, finished.stderr
    return finished.returncode, json.loads(finished.stdout)


def test_whatever_is_killed_runs_end_with_the_numbers_of_the_oracle() -> None:
    killed = ("kill -9 of a pool child", "kill -9 of the broker, queue lost",
              "kill -9 of PostgreSQL", "every message sent three times")  # fmt: skip
    only = [word for name in killed for word in ("--only", name)]
    code, report = chaos("--runs", "3", "--seed", "5", *only)
    assert code == 0, report
    assert report["violations"] == {}
    assert report["ended_right"] == report["runs"] == 6, "two strategies a batch"
    assert report["faults"] >= 3


def test_a_worker_that_stores_without_its_token_is_caught() -> None:
    code, report = chaos("--mutant", "token check off", "--seed", "5")
    assert code == 0, report
    assert report["mutants"] == {"token check off": "closed by its holder"}
