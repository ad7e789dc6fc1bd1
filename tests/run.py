"""Run all tests, with coverage, on three processes: what `make test` runs after the linters.

Options that are not ours are pytest's, and come last: `python -m tests.run -n 0 --no-cov FILE` is a
quick run. Processes that unit and integration tests start are measured too; pyproject.toml says
how, and how much must be covered.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence

import pytest

OPTIONS = (
    # Three on two cores, for tests that kill, freeze and restart things mostly wait. A module's
    # tests go to one process, for its fixtures are dear, and the longest modules come first.
    "-n=3", "--dist=loadfile", "--no-loadscope-reorder",
    "--cov", "--cov-report=term",
    "--durations=10", "--durations-min=5",
)  # fmt: skip


class NothingSkipped:
    """A pytest plugin: the run fails when a test was skipped."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn success into failure; a failure keeps its own exit code."""
        if _skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the tests; pytest's own summary gives the reasons."""
        skipped = _skipped(terminalreporter.config)
        if skipped:
            terminalreporter.section("skipped, and none may be", red=True)
            terminalreporter.write_line("\n".join(skipped))


def _skipped(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [report.nodeid for report in reporter.stats.get("skipped", [])] if reporter else []


def _keep_ignored_signals_from_children() -> None:
    """Go on ignoring what a background job or nohup ignores, but let commands under test hear it.

    A child inherits that a signal is ignored, but not a handler that does nothing.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pytest and return its exit code."""
    parser = argparse.ArgumentParser("python -m tests.run", allow_abbrev=False)
    parser.add_argument("--no-skips", action="store_true", help="fail when a test is skipped")
    own, theirs = parser.parse_known_args(arguments)
    plugins = [NothingSkipped()] if own.no_skips else []
    _keep_ignored_signals_from_children()
    # OpenBLAS's threads spin while they wait for work, in each of the hundreds of processes that
    # tests start: with one thread there is nothing to wait for.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A folder of this run's own: every other run of pytest takes away the search permission of
    # the usual one, and a PostgreSQL that runs for root under another account needs it.
    with tempfile.TemporaryDirectory(prefix="recallwatch-") as folder:
        options = [*OPTIONS, f"--basetemp={folder}/tests", *theirs]
        return pytest.main(options, plugins)


if __name__ == "__main__":
    sys.exit(main())
