"""The format of a source, told from its name and from what it holds."""

import os
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.golden.formats import READERS, guess, reader


@pytest.mark.parametrize(("name", "content", "format_name"), [
    ("golden.jsonl", "", "jsonl"),
    ("golden.jsonl.gz", "", "jsonl"),
    ("golden.csv", "question,expected\n", "csv"),
    ("golden.TSV", "question\texpected\n", "csv"),
    ("ratings.csv", "query,docid,rating\n", "quepid"),
    ("ratings.csv", '\ufeff"Query Text";"Doc ID";"Rating"\r\n', "quepid"),
    ("all.csv", "Case ID,Query Text,Doc ID,Doc Position,Title,Rating,extra\n", "quepid"),
    ("golden", ' {"question": "Who?"}', "jsonl"),
    ("golden.dat", "<top>\n<num> 1", "trec"),
])  # fmt: skip
def test_a_file_tells_its_format(tmp_path: Path, name: str, content: str, format_name: str) -> None:
    (tmp_path / name).write_text(content)
    assert guess(str(tmp_path / name)) == format_name


def test_a_file_beside_judgments_holds_topics(tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("1\tWho?\n")
    assert guess(str(tmp_path / "topics.tsv"), qrels=tmp_path / "qrels") == "trec"
    assert guess(str(tmp_path / "queries.jsonl.gz"), qrels=tmp_path / "qrels") == "beir"


def test_nothing_is_read_of_a_pipe_to_tell_its_format(tmp_path: Path) -> None:
    # To open a pipe that nobody writes to would wait for ever.
    os.mkfifo(tmp_path / "golden.jsonl")
    assert guess(str(tmp_path / "golden.jsonl")) == "jsonl"


@pytest.mark.parametrize(("name", "format_name"), [
    ("queries.jsonl", "beir"), ("queries.jsonl.gz", "beir"), ("topics.301-350.txt", "trec"),
])  # fmt: skip
def test_a_folder_is_told_by_what_it_holds(tmp_path: Path, name: str, format_name: str) -> None:
    (tmp_path / name).touch()
    assert guess(str(tmp_path)) == format_name


def test_a_url_is_a_database() -> None:
    assert guess("postgresql://me@db.example/rag") == "sql"


@pytest.mark.parametrize(("name", "reason"), [
    ("golden.xlsx", "is no text file: save it as CSV UTF-8"),
    ("test.parquet", "is no text file: save it as JSON lines"),
    ("golden.dat", "the format cannot be told: say it with --format"),
    ("absent.csv", "cannot be read: No such file"),
    (".", "holds neither queries.jsonl"),
])  # fmt: skip
def test_what_cannot_be_told_is_refused_with_what_to_do(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "golden.dat").write_text("what?")
    with pytest.raises(InputError, match=reason):
        guess(str(tmp_path / name))


@pytest.mark.parametrize("name", READERS)
def test_every_format_has_a_reader(name: str) -> None:
    assert callable(reader(name))


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "postgres", "POSTGRESQL"])
def test_a_database_is_known_by_its_scheme(scheme: str) -> None:
    assert guess(f"{scheme}://me:secret@localhost/x") == "sql"


@pytest.mark.parametrize("source", ["s3://me:secret@bucket/x", "HTTPS://me:secret@a.example/x.csv",
                                    "postgresql-x://me:secret@localhost/x"])  # fmt: skip
def test_no_url_is_taken_for_a_file(source: str) -> None:
    with pytest.raises(InputError, match="fetch the file first") as refused:
        guess(source)
    assert "secret" not in str(refused.value)


def test_a_folder_that_nobody_may_look_into_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(self: Path) -> object:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", closed)
    with pytest.raises(InputError, match=r"^\S+: cannot be read: Permission denied$"):
        guess(str(tmp_path))


def test_another_url_is_refused_without_quoting_its_password() -> None:
    with pytest.raises(InputError, match="fetch the file first") as refused:
        guess("mysql://me:secret@localhost/x")
    assert "secret" not in str(refused.value)
