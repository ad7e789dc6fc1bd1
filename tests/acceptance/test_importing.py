"""`recallwatch golden import` as a person meets it, with files that are not all right."""

import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.command import Project, without_ours

WHO = '{"question": "Who?", "expected": {"a:0": 1}}'
ELSEWHERE = '{"question": "\\u200bWho?", "expected": {"b:0": 2}}'
WHY = '{"question": "Why?", "expected": ["a:1"], "evidence": {"a:1": "Because."}}'
BAD = '{"question": "When?", "expected": {"a:0": null}}'


def write(project: Project, name: str, *lines: str) -> Path:
    file = project.folder / name
    file.write_text("\n".join(lines))
    return file


def listed(project: Project, name: str) -> list[dict[str, object]]:
    return [row["question"] for row in project.json_rows("golden", "list", "--set", name)]


def test_a_question_with_two_answers_is_refused_and_both_are_shown(project: Project) -> None:
    file = write(project, "two.jsonl", WHO, WHY, ELSEWHERE)
    complaint = project.fails("golden", "import", file, "--set", "two")
    assert complaint.startswith(f"{file}:1: the question 'Who?' stands at {file}:3 too")
    assert "'b:0' (2) there and 'a:0' (1) here" in complaint
    assert "--merge" in complaint
    assert "--keep-both" in complaint
    assert project.json_rows("golden", "list", "--sets") == []


def test_two_answers_are_merged_or_both_kept_on_request(project: Project) -> None:
    file = write(project, "merged.jsonl", WHO, ELSEWHERE)
    merged = project.json("golden", "import", file, "--set", "merged", "--merge")
    both = project.json("golden", "import", file, "--set", "both", "--keep-both")

    assert (merged["merged"], merged["report"]["added"]) == (1, 1)
    assert [row["expected"] for row in listed(project, "merged")] == [{"a:0": 1, "b:0": 2}]
    assert both["report"]["added"] == 2
    assert "zero-width" in both["warnings"][-1]


def test_refused_lines_are_corrected_and_imported(project: Project) -> None:
    file = write(project, "some.jsonl", WHO, BAD, WHY)
    done = project.json("golden", "import", file, "--set", "some", "--skip-bad")
    refused = project.folder / "some.refused.jsonl"

    assert (done["report"]["added"], done["refused"]) == (2, 1)
    assert Path(done["refused_lines"]) == refused
    assert refused.read_text() == f"{BAD}\n"
    assert (
        (project.folder / "some.refused.jsonl.txt")
        .read_text()
        .startswith(f"{file}:2: expected key ")
    )
    complaint = project.fails("golden", "import", file, "--set", "some", "--skip-bad")
    assert complaint.startswith(f"{refused}: is there already")
    refused.write_text(refused.read_text().replace("null", "1"))
    assert project.json("golden", "import", refused, "--set", "some")["report"]["added"] == 1
    assert len(listed(project, "some")) == 3


def test_a_file_of_bad_lines_alone_imports_nothing_and_says_where_they_are(
    project: Project,
) -> None:
    file = write(project, "bad.jsonl", BAD, "{")
    done = project.run("golden", "import", file, "--set", "bad", "--skip-bad", code=2)
    assert "no question can be imported: all 2 are refused" in done.err
    assert len((project.folder / "bad.refused.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--merge", "--keep-both"], "--merge and --keep-both contradict each other"),
        (["--replace", "--skip-bad"], "--replace would retire"),
        (["--refused", "x.jsonl"], "add --skip-bad"),
        (["--format", "jsonl", "--qrels", "x.tsv"], "no use for --qrels"),
        (["--format", "xml"], "'xml'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    project: Project, options: list[str], words: str
) -> None:
    file = write(project, "options.jsonl", WHO)
    assert words in project.fails("golden", "import", file, "--set", "options", *options)


def test_a_rejected_question_is_not_brought_back_unasked(project: Project) -> None:
    file = write(project, "rejected.jsonl", WHO, WHY)
    project.run("golden", "import", file, "--set", "rejected")
    with psycopg.connect(project.servers()["DATABASE_URL"]) as database:
        database.execute(
            "UPDATE recallwatch.question SET status = 'rejected'"
            " WHERE set_name = 'rejected' AND text = 'Who?'"
        )

    again = project.run("golden", "import", file, "--set", "rejected")
    assert "1 left rejected" in again.out
    assert "questions that a reviewer rejected, left so (--reactivate): 1" in again.err
    assert len(listed(project, "rejected")) == 1
    back = project.run("golden", "import", file, "--set", "rejected", "--reactivate")
    assert "active again: 1" in back.err
    assert len(listed(project, "rejected")) == 2


def test_a_person_sees_what_was_judged(project: Project) -> None:
    project.run("golden", "import", write(project, "why.jsonl", WHY), "--set", "why")
    [row] = project.json_rows("golden", "list", "--set", "why")
    shown = project.json("golden", "show", row["id"])
    assert shown["question"]["evidence"] == {"a:1": "Because."}
    assert json.loads(WHY)["evidence"] == shown["question"]["evidence"]


def test_what_is_piped_in_has_its_refused_lines_in_the_folder(project: Project) -> None:
    write(project, "piped.jsonl", WHO, BAD)
    command = "cat piped.jsonl | {} -m cli.main golden import /dev/stdin --skip-bad --set piped"
    for options, code in (("", 2), (" --format jsonl", 0)):
        done = subprocess.run(
            ("/bin/sh", "-c", command.format(sys.executable) + options),
            cwd=project.folder, env=without_ours() | project.environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
    assert (project.folder / "questions.refused.jsonl").read_text() == f"{BAD}\n"


@pytest.mark.parametrize("scheme", ["mysql", "https", "postgresqlx"])
@pytest.mark.parametrize("options", [[], ["--format", "csv"], ["--format", "sql"], ["--skip-bad"]])
def test_a_url_that_is_refused_does_not_show_its_password(
    project: Project, scheme: str, options: list[str]
) -> None:
    complaint = project.fails("golden", "import", f"{scheme}://me:canary-7@localhost/x", *options)
    assert "canary-7" not in complaint
    assert "a URL that is not PostgreSQL's" in complaint


def test_a_database_is_never_read_as_a_file(project: Project) -> None:
    url = "postgresql+psycopg://me:canary-7@127.0.0.1:1/x"
    complaint = project.fails("golden", "import", url, "--format", "csv")
    assert complaint.startswith("a database cannot be read as csv")
    complaint = project.fails("golden", "import", url)
    assert complaint.startswith("table rag_eval_queries cannot be read")
    assert "canary-7" not in complaint


def test_the_folder_one_stands_in_is_imported_and_its_bad_query_set_aside(
    project: Project,
) -> None:
    folder = project.folder / "beir"
    (folder / "qrels").mkdir(parents=True)
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n1\ta\t1\n2\ta\t1\n3\tb:0\t0\n"
    )
    (folder / "queries.jsonl").write_text(
        '{"_id": "1", "text": "Who?"}\n{"_id": "2", "text": "\\ud800"}\n{"_id": "3", "text": "No?"}'
    )
    complaint = project.fails("golden", "import", folder, "--skip-bad", "--refused", folder)
    assert "is a folder: --refused names a file" in complaint
    assert "half of a surrogate pair" in project.fails("golden", "import", folder)
    done = project.json(
        "golden", "import", folder / "qrels" / "..", "--skip-bad", "--set", "beir",
        "--source", "synthetic",
    )  # fmt: skip
    assert (done["report"]["added"], done["refused"]) == (2, 1)
    assert Path(done["refused_lines"]) == project.folder.resolve() / "beir.refused.jsonl"
    assert any("none of a relevant document" in each for each in done["warnings"])
    assert {row["source"] for row in listed(project, "beir")} == {"synthetic"}


def test_a_proposed_question_that_a_file_holds_is_said_to_be_active(project: Project) -> None:
    file = write(project, "proposed.jsonl", WHO, WHY)
    project.run("golden", "import", file, "--set", "proposed")
    with psycopg.connect(project.servers()["DATABASE_URL"]) as database:
        database.execute(
            "UPDATE recallwatch.question SET status = 'proposed' WHERE set_name = 'proposed'"
        )
    again = project.run("golden", "import", file, "--set", "proposed")
    assert "that were proposed and nobody had reviewed, active now: 2" in again.err


def test_rows_of_a_table_are_set_aside_under_its_name(project: Project) -> None:
    url = project.servers()["DATABASE_URL"]
    with psycopg.connect(url) as database:
        database.execute("CREATE SCHEMA IF NOT EXISTS mine")
        database.execute("CREATE TABLE mine.golden (id text, question text, expected jsonb)")
        database.execute(
            "INSERT INTO mine.golden VALUES ('1', 'Who?', '[\"MED-1\"]'),"
            " (E'2\\n\\x1b[31m', 'Why?', '{\"MED-1\": 0.5}')"
        )
    done = project.json("golden", "import", url, "--table", "mine.golden", "--skip-bad",
                        "--set", "rows")  # fmt: skip
    assert done["refused_lines"] == "mine.golden.refused.jsonl"
    reasons = (project.folder / "mine.golden.refused.jsonl.txt").read_text()
    assert reasons.startswith("mine.golden: id '2\\n\\x1b[31m': expected key 'MED-1:0' has")
    assert reasons.count("\n") == 1
