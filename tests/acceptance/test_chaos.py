"""The kill suite is any good: it catches what it is for. CI runs it whole, with `make chaos`."""

import json
import subprocess
import sys
from typing import Any

from tests.acceptance.command import REPOSITORY, without_ours


def chaos(*options: str) -> tuple[int, dict[str, Any]]:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--json", *options],
        cwd=REPOSITORY, env=without_ours(), capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert finished.stdout, finished.stderr
    return finished.returncode, json.loads(finished.stdout)


def test_a_worker_that_stores_without_its_token_is_caught() -> None:
    code, report = chaos("--mutant", "token check off", "--seed", "5")
    assert code == 0, report
    assert report["mutants"] == {"token check off": "closed by its holder"}
