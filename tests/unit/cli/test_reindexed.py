"""`recallwatch reindexed`: which documents an option names."""

import io
from pathlib import Path

import pytest

from cli.reindexed import _ids
from pipeline.errors import InputError


def test_a_plain_value_is_an_id_whatever_it_holds() -> None:
    assert list(_ids("http://a:80/manual 7")) == ["http://a:80/manual 7"]


def test_a_file_and_standard_input_hold_an_id_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ids.txt").write_text("one\n\n  two \r\nthree")
    monkeypatch.setattr("sys.stdin", io.StringIO("four\n\nfive\n"))

    assert list(_ids(f"@{tmp_path}/ids.txt")) == ["one", "two", "three"]
    assert list(_ids("-")) == ["four", "five"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.txt: cannot be read"):
        list(_ids(f"@{tmp_path}/none.txt"))
