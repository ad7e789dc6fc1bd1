"""Golden sets, corpora and runs in other tools' files, through the real commands."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import pytrec_eval

from cli.embedded.stack import Servers
from tests.acceptance.command import Project, Record
from tests.acceptance.conftest import standing_project

BODY = (
    "resets|Hold the reset button for ten seconds until the light blinks.",
    "returns|Send it back within thirty days and we refund the price.",
    "my guide, 2nd.pdf|Batteries last for two years of normal use.",
    "https://a.example/w#1::b|The warranty ends three years after the day of purchase.",
    "0|Parcels leave our store within one working day.",
)
ASKED = (
    ("0", "How do I reset the light?", "resets", 1),
    ("9007199254740993", "Until when may I send it back for a refund?", "returns", 2),
    ("q three", "How long do batteries last in use?", "my guide, 2nd.pdf", 1),
    ("4", "When does the warranty end?", "https://a.example/w#1::b", 1),
    ("5", "When do parcels leave the store?", "0", 1),
)


@pytest.fixture(scope="module")
def shop(servers: Servers) -> Iterator[Project]:
    """Give a project whose corpus and golden set came from one BEIR folder."""
    with standing_project(servers) as project:
        folder = project.folder / "shop"
        (folder / "qrels").mkdir(parents=True)
        bodies = [each.partition("|") for each in BODY]
        _write_jsonl(folder / "corpus.jsonl", [
            {"_id": name, "title": "", "text": text} for name, _, text in bodies
        ])  # fmt: skip
        _write_jsonl(folder / "queries.jsonl", [{"_id": q, "text": text} for q, text, *_ in ASKED])
        lines = [f"{q}\t{document}\t{grade}\n" for q, _, document, grade in ASKED]
        (folder / "qrels" / "test.tsv").write_text(
            "query-id\tcorpus-id\tscore\n" + "".join(lines) + "4\t0\t0\n"
        )
        assert project.json("corpus", "load", folder)["inserted"] == len(BODY)
        done = project.json("golden", "import", folder, "--set", "default")
        assert (done["format"], done["report"]["added"]) == ("beir", len(ASKED))
        yield project


def _write_jsonl(path: Path, records: list[Record]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def questions_of(project: Project, name: str) -> list[Record]:
    rows = project.json_rows("golden", "list", "--set", name)
    return sorted((row["question"] for row in rows), key=lambda each: each["text"])


def test_trec_eval_finds_the_figures_of_a_run_in_its_trec_export(shop: Project) -> None:
    [run] = shop.evaluate("fulltext", options=["--k", "3"])
    out, qrels = shop.folder / "run.txt", shop.folder / "qrels.txt"
    finished = shop.run("runs", "export", run["id"], "--format", "trec", "-o", out,
                        "--qrels", qrels)  # fmt: skip
    assert finished.out == ""
    with qrels.open() as judged, out.open() as ranked:
        names = {"ndcg_cut.3", "recall.3", "recip_rank"}
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judged), names)
        theirs = evaluator.evaluate(pytrec_eval.parse_run(ranked))
    for row in shop.export(run["id"]):
        found = theirs.get(row["id"].replace(" ", "%20"), {})
        for name, ours in (("ndcg_cut_3", "ndcg@3"), ("recall_3", "recall@3"),
                           ("recip_rank", "mrr@3")):  # fmt: skip
            assert found.get(name, 0.0) == pytest.approx(row["metrics"][ours])
    assert run["metrics"]["recall@3"] > 0


def test_qrels_of_a_run_go_with_a_run_file_only(shop: Project) -> None:
    [run] = shop.evaluate("fulltext", options=["--k", "3"])
    complaint = shop.fails("runs", "export", run["id"], "--qrels", shop.folder / "x")
    assert complaint.startswith("--qrels goes with --format trec")


@pytest.mark.parametrize("name", ["all.jsonl", "all.csv", "all.tsv", "beir", "trec"])
def test_an_export_is_imported_as_it_was(shop: Project, name: str) -> None:
    target = shop.folder / name
    form = ["--format", name] if "." not in name else []
    shop.run("golden", "export", "--set", "default", *form, "--output", target)
    done = shop.json("golden", "import", target, "--set", name)
    assert done["report"]["added"] == len(ASKED)
    assert questions_of(shop, name) == questions_of(shop, "default")
    again = shop.json("golden", "import", target, "--set", name)
    assert again["report"]["unchanged"] == len(ASKED)


def test_an_export_to_a_folder_needs_one(shop: Project) -> None:
    complaint = shop.fails("golden", "export", "--set", "default", "--format", "trec")
    assert complaint.startswith("trec is several files: name a folder with --output")
    taken = shop.folder / "taken"
    taken.touch()
    complaint = shop.fails("golden", "export", "--set", "default", "--format", "beir",
                           "--output", taken)  # fmt: skip
    assert str(taken) in complaint


def test_a_table_is_printed_where_no_file_is_named(shop: Project) -> None:
    printed = shop.run("golden", "export", "--set", "default", "--format", "csv").out
    assert "question,expected,kind" in printed.splitlines()[0]
    assert len(printed.splitlines()) == len(ASKED) + 1


def test_topics_beside_their_judgments_are_imported(shop: Project) -> None:
    topics, qrels = shop.folder / "mine.tsv", shop.folder / "mine.qrels"
    topics.write_text("1\tWho?\n2\tWhy?\n")
    qrels.write_text("# judged\n1 0 resets 1\n2 0 returns 1")
    done = shop.json("golden", "import", topics, "--qrels", qrels, "--set", "named")
    assert done["report"]["added"] == 2
    assert any("2 ids have no chunk index" in each for each in done["warnings"])


def test_a_windows_1252_table_of_excel_is_imported_and_its_bad_row_set_aside(
    shop: Project,
) -> None:
    file = shop.folder / "excel.csv"
    file.write_bytes("sep=;\r\nquestion;expected\r\nOnde está?;a:0\r\nOnde é?;a:0=½\r\n"
                     .encode("cp1252"))  # fmt: skip
    done = shop.json("golden", "import", file, "--set", "excel", "--skip-bad")
    assert (done["report"]["added"], done["refused"]) == (1, 1)
    assert any("read as Windows-1252" in each for each in done["warnings"])
    refused = Path(done["refused_lines"])
    refused.write_text(refused.read_text().replace("½", "2"))
    assert shop.json("golden", "import", refused, "--set", "excel")["report"]["added"] == 1
    assert [q["text"] for q in questions_of(shop, "excel")] == ["Onde está?", "Onde é?"]


def test_a_refused_topic_is_corrected_as_a_line_of_jsonl(shop: Project) -> None:
    folder = shop.folder / "half"
    folder.mkdir()
    (folder / "topics.txt").write_text("1\tWho?\n2\tWhy?\n")
    (folder / "qrels.txt").write_text("1 0 a:0 1\n2 0 b:0 0.5\n")
    complaint = shop.fails("golden", "import", folder, "--set", "half")
    assert complaint.startswith(f"{folder / 'qrels.txt'}:2: 'b:0': the grade is '0.5'")
    done = shop.json("golden", "import", folder, "--set", "half", "--skip-bad")
    refused = Path(done["refused_lines"])
    assert refused.suffix == ".jsonl"
    refused.write_text(refused.read_text().replace("0.5", "2"))
    assert shop.json("golden", "import", refused, "--set", "half")["report"]["added"] == 1


def test_a_table_of_a_database_is_imported_and_its_password_is_not_shown(shop: Project) -> None:
    url = shop.servers()["DATABASE_URL"]
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE TABLE rag_eval_queries"
            " (question text, expected_keys jsonb, source text, active bool)"
        )
        connection.execute(
            "INSERT INTO rag_eval_queries VALUES ('Who?', '[\"resets\"]', 'log', true),"
            " ('Old?', '[\"resets\"]', 'log', false)"
        )
    with_password = url.replace("postgres@", "postgres:canary-7@")
    assert with_password != url
    finished = shop.run("golden", "import", with_password, "--set", "sql")
    assert "1 added" in finished.out
    assert "1 rows are not active" in " ".join(finished.err.split())
    assert "canary-7" not in finished.err + finished.out
    complaint = shop.fails("golden", "import", with_password, "--set", "sql", "--table", "absent")
    assert "the database holds no table absent" in complaint
    assert "canary-7" not in complaint
