"""Files that are there whole or not at all, whatever happens on the way."""

import os
import threading
from pathlib import Path

import pytest

from pipeline.whole_files import whole_files, whole_folder


def everything_in(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_files_appear_together_at_the_end(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"older and longer")
    with whole_files(first, second) as (one, two):
        one.write(b"1")
        two.write(b"2")
        assert first.read_bytes() == b"older and longer"
        assert not second.exists()
    assert everything_in(tmp_path) == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_changed_or_left_where_the_block_fails(
    tmp_path: Path, error: type[BaseException]
) -> None:
    kept = tmp_path / "a"
    kept.write_bytes(b"older")
    with pytest.raises(error):
        _fail_half_way(error, kept, tmp_path / "b")
    assert everything_in(tmp_path) == {"a": b"older"}


def _fail_half_way(error: type[BaseException], *paths: Path) -> None:
    with whole_files(*paths) as (one, _):
        one.write(b"half")
        raise error


def test_nothing_is_touched_where_one_of_them_cannot_be_opened(tmp_path: Path) -> None:
    kept = tmp_path / "a"
    kept.write_bytes(b"older")
    with pytest.raises(FileNotFoundError) as caught, whole_files(kept, tmp_path / "no" / "b"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "b")
    assert everything_in(tmp_path) == {"a": b"older"}


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), whole_files(tmp_path):
        pass


def test_a_link_stays_one_and_permissions_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"older")
    target.chmod(0o640)
    link.symlink_to(target)
    with whole_files(link) as (stream,):
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with whole_files(pipe) as (stream,):
        stream.write(b"through")
    reader.join(timeout=10)
    assert read == [b"through"]
    assert pipe.is_fifo()


def test_an_open_file_by_its_number_is_added_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"older\n")
    with log.open("ab") as opened, whole_files(Path(f"/dev/fd/{opened.fileno()}")) as (stream,):
        stream.write(b"new\n")
    assert everything_in(tmp_path) == {"log": b"older\nnew\n"}


def test_folders_are_made_for_files_and_stay(tmp_path: Path) -> None:
    folder = tmp_path / "golden"
    with whole_folder(folder, "a", "sub/b") as (one, two):
        one.write(b"1")
        two.write(b"2")
    assert everything_in(folder) == {"a": b"1", "sub/b": b"2"}


def test_only_folders_that_were_made_go_again(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for folder in (tmp_path / "mine", tmp_path / "new"):
        with pytest.raises(ValueError, match="no"), whole_folder(folder, "a", "sub/b"):
            raise ValueError("no")
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]
