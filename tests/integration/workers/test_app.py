"""The Celery app as a process finds it: its settings are those of its environment."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


def run(
    *arguments: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, text=True, capture_output=True, timeout=60,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)} | environment, check=False,
    )  # fmt: skip


def test_the_broker_is_that_of_the_environment(tmp_path: Path) -> None:
    done = run(
        "-c",
        "from workers.app import app; print(app.conf.broker_url, app.conf.task_time_limit)",
        folder=tmp_path,
        environment={"REDIS_URL": "redis://:pw@broker:1/2", "RECALLWATCH_QUEUE__LEASE": "7"},
    )

    assert (done.stdout, done.stderr) == ("redis://:pw@broker:1/2 37\n", "")


@pytest.mark.parametrize("program", ["worker", "beat"])
def test_without_servers_celery_says_what_is_missing_and_stops(
    tmp_path: Path, program: str
) -> None:
    done = run("-m", "celery", "-A", "workers.app", program, folder=tmp_path, environment={})

    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last == "error: DATABASE_URL is not set; see: recallwatch up --help"
    assert "Traceback" not in done.stderr
