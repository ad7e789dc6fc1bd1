import errno
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.golden.formats import Refused
from pipeline.golden.refused_files import (
    RefusedFiles,
    beside,
    named,
    refuse_overwriting,
    written,
)

BAD = [
    Refused("g.csv:2", "question is blank", ",a:0\r\n"),
    Refused("g.csv:9", "not UTF-8", "caf\udce9,a:0"),
]


@pytest.fixture
def files(tmp_path: Path) -> RefusedFiles:
    return beside(tmp_path / "golden.csv")


@pytest.mark.parametrize(
    ("source", "lines", "reasons"),
    [
        ("golden.jsonl", "golden.refused.jsonl", "golden.refused.jsonl.txt"),
        ("my.set.csv", "my.set.refused.csv", "my.set.refused.csv.txt"),
        ("golden.jsonl.gz", "golden.refused.jsonl", "golden.refused.jsonl.txt"),
        ("golden", "golden.refused", "golden.refused.txt"),
        ("topics.txt", "topics.refused.txt", "topics.refused.txt.txt"),
    ],
)
def test_refused_lines_and_reasons_lie_beside_their_source(
    source: str, lines: str, reasons: str
) -> None:
    folder = Path("some")
    assert beside(folder / source) == RefusedFiles(folder / lines, folder / reasons)


def test_a_folders_refused_lines_are_a_file_of_their_own_form() -> None:
    assert beside(Path("some/beir/"), suffix=".jsonl").lines == Path("some/beir.refused.jsonl")


def test_two_forms_of_one_name_have_two_files_of_reasons() -> None:
    table, lines = beside(Path("golden.csv")), beside(Path("golden.jsonl"))
    assert {table.lines, table.reasons}.isdisjoint({lines.lines, lines.reasons})


def test_the_present_folder_has_its_files_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "beir")
    expected = tmp_path / "beir.refused.jsonl"
    assert beside(Path(), suffix=".jsonl").lines == expected
    monkeypatch.chdir(tmp_path / "beir" / "qrels")
    assert beside(Path(".."), suffix=".jsonl").lines == expected
    assert beside(Path("/"), suffix=".jsonl").lines == Path("/questions.refused.jsonl")


@pytest.mark.parametrize("name", [".", "..", "/", ""])
def test_a_folder_is_no_name_of_a_file(name: str) -> None:
    with pytest.raises(InputError, match="is a folder: --refused names a file"):
        named(Path(name))


def test_a_person_may_name_the_file() -> None:
    assert named(Path("bad.jsonl")) == RefusedFiles(Path("bad.jsonl"), Path("bad.jsonl.txt"))


def test_lines_are_written_byte_for_byte_under_their_header(files: RefusedFiles) -> None:
    with written(files, "question,expected\r\n", BAD):
        pass
    assert files.lines.read_bytes() == b"question,expected\r\n,a:0\r\ncaf\xe9,a:0\n"
    assert files.reasons.read_text() == "g.csv:2: question is blank\ng.csv:9: not UTF-8\n"


def test_nothing_is_left_of_an_import_that_failed(files: RefusedFiles) -> None:
    def fail() -> None:
        with written(files, "", BAD):
            assert files.lines.exists()
            raise KeyError("the database")

    with pytest.raises(KeyError):
        fail()
    assert list(files.lines.parent.iterdir()) == []


@pytest.mark.parametrize("which", ["lines", "reasons"])
def test_a_file_that_is_there_is_not_overwritten(files: RefusedFiles, which: str) -> None:
    refuse_overwriting(files)
    path: Path = getattr(files, which)
    path.write_text("corrected by hand")
    with pytest.raises(InputError, match=r"is there already.*--refused"):
        refuse_overwriting(files)


@pytest.mark.parametrize("which", ["lines", "reasons"])
def test_a_file_that_came_meanwhile_stays_and_stays_alone(files: RefusedFiles, which: str) -> None:
    path: Path = getattr(files, which)
    path.write_text("of another import")
    with pytest.raises(InputError, match="File exists"), written(files, "", BAD):
        pass
    assert list(path.parent.iterdir()) == [path]
    assert path.read_text() == "of another import"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    files = named(tmp_path / "absent" / "bad.jsonl")
    with (
        pytest.raises(InputError, match=r"bad\.jsonl: cannot be written: No such file.*--refused"),
        written(files, "", BAD),
    ):
        pass


def test_a_full_disk_leaves_no_half_file(
    files: RefusedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pipeline.golden.refused_files._ended", full)
    with pytest.raises(InputError, match="No space left"), written(files, "", BAD):
        pass
    assert list(files.lines.parent.iterdir()) == []
