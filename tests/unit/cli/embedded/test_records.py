import os
from pathlib import Path

import pytest

from cli.embedded import records
from cli.embedded.records import Record


def test_records_of_processes_that_exist_come_back(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    own = Record.of(os.getpid(), "eval --k 5")
    gone = Record(2**22 + 1, "boot/1", "gone")
    reused = Record(os.getppid(), "boot/1", "another process had this number")
    records.write(path, [gone, own, reused])
    assert records.read(path) == [own]


@pytest.mark.parametrize("text", ["", "[", "7", "[7]", '[{"pid": 1}]', '{"a": 1}', "\x00"])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "users.json"
    path.write_text(text)
    assert records.read(path) == []
    records.add_self(path, "next")
    assert [record.label for record in records.read(path)] == ["next"]


def test_a_process_that_came_twice_and_leaves_once_is_still_there(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    records.add_self(path, "outer")
    records.add_self(path, "inner")
    records.remove_self(path)
    assert len(records.read(path)) == 1
    records.remove_self(path)
    records.remove_self(path)
    assert records.read(path) == []
