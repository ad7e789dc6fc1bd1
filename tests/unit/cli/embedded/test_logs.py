import os
from pathlib import Path

import pytest

from cli.embedded import logs
from cli.embedded.logs import appending, explanation, size_of

POSTGRES = """\
2026-11-30 14:04:04.914 UTC [15549] LOG:  starting PostgreSQL 18.4 on x86_64-pc-linux-gnu
2026-11-30 14:04:04.917 UTC [15549] FATAL:  could not create lock file "x": Permission denied
2026-11-30 14:04:04.944 UTC [15549] LOG:  database system is shut down
"""
VALKEY = """\
15491:M 30 Nov 2026 14:03:56.950 # WARNING Memory overcommit must be enabled! Without it, ...
15491:M 30 Nov 2026 14:03:56.950 # Failed opening Unix socket: bind: No such file or directory
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (POSTGRES, 'FATAL:  could not create lock file "x": Permission denied'),
        (VALKEY, "Failed opening Unix socket: bind: No such file or directory"),
        ("initdb: error: directory exists\n\n", "initdb: error: directory exists"),
        ("one\ntwo\n", "two"),
        ("", ""),
    ],
)
def test_the_explanation_is_the_last_line_of_complaint(
    tmp_path: Path, text: str, expected: str
) -> None:
    log = tmp_path / "log"
    log.write_text(text)
    assert explanation(log) == expected


def test_the_explanation_leaves_out_what_an_earlier_start_complained_about(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(POSTGRES)
    since = size_of(log)
    assert explanation(log, since) == ""
    with appending(log) as output:
        os.write(output, b"quiet end\n")
    assert explanation(log, since) == "quiet end"


def test_without_a_log_there_is_no_explanation(tmp_path: Path) -> None:
    assert size_of(tmp_path / "none") == 0
    assert explanation(tmp_path / "none") == ""


def test_a_log_is_emptied_only_beyond_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 10)
    log = tmp_path / "log"
    for content, kept in [(b"x" * 10, 10), (b"x" * 11, 0)]:
        log.write_bytes(content)
        with appending(log):
            assert log.stat().st_size == kept


def test_an_explanation_survives_the_emptying_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("FATAL: new\n")
    assert explanation(log, since=20_000_000) == "FATAL: new"


def test_only_the_end_of_a_huge_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("FATAL: long ago\n" + "fine\n" * 100_000)
    assert explanation(log) == "fine"
