"""Exports as their owner meets them: free names, files that were there, errors on the way."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytrec_eval

from cli.embedded.stack import Servers
from tests.acceptance.command import Project, Record
from tests.acceptance.conftest import standing_project

DOCUMENTS = {
    "manual": ["Hold the reset button for ten seconds.", "The light blinks after a reset."],
    "my returns": ["Send it back within thirty days.", "We refund the price on return."],
}
GOLDEN = [
    {"question": "How do I reset the light?", "expected": {"manual:0": 2, "manual:1": 1},
     "external_id": "q 1"},
    {"question": "When do you refund the price?", "expected": {"my returns:1": 1}},
    {"question": "Which light blinks?", "expected": {"manual:1": 1, "my returns:0": 0}},
]  # fmt: skip


@pytest.fixture(scope="module")
def shop(servers: Servers) -> Iterator[Project]:
    """Give a project of which one question's id is the number of another."""
    with standing_project(servers) as project:
        chunks = [
            {"document_id": document, "chunk_index": n, "content": text}
            for document, texts in DOCUMENTS.items()
            for n, text in enumerate(texts)
        ]
        project.json("corpus", "load", _written(project, "corpus.jsonl", chunks))
        project.json("golden", "import", _written(project, "golden.jsonl", GOLDEN))
        numbers = [row["id"] for row in project.json_rows("golden", "list")]
        clash = {"question": "Whose?", "expected": ["manual:0"], "external_id": f"{max(numbers)}"}
        project.json("golden", "import", _written(project, "clash.jsonl", [clash]))
        yield project


def _written(project: Project, name: str, records: list[Record]) -> Path:
    path = project.folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def everything_in(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def first_fields(path: Path) -> set[str]:
    return {line.split()[0] for line in path.read_text().splitlines()}


@pytest.mark.parametrize("level", ["chunk", "document"])
def test_topics_of_a_set_are_those_of_its_runs_and_trec_eval_agrees(
    shop: Project, level: str
) -> None:
    [run] = shop.evaluate("fulltext", options=["--k", "3", "--level", level])
    out, qrels = shop.folder / f"{level}.run", shop.folder / f"{level}.qrels"
    shop.run("runs", "export", run["id"], "--format", "trec", "-o", out, "--qrels", qrels)
    folder = shop.folder / f"golden-{level}"
    shop.run("golden", "export", "--format", "trec", "-o", folder)
    topics = [line.partition("\t")[0] for line in (folder / "topics.tsv").read_text().splitlines()]
    assert first_fields(qrels) == {topic.replace(" ", "%20") for topic in topics}
    assert len(set(topics)) == len(GOLDEN) + 1
    assert sum(topic.endswith("_") for topic in topics) == 1
    if level == "document":
        judged = {line.split()[2] for line in qrels.read_text().splitlines()}
        assert judged == {"manual", "my%20returns"}

    with qrels.open() as judged_file, out.open() as ranked:
        names = {"ndcg_cut.3", "recall.3", "recip_rank"}
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judged_file), names)
        theirs = evaluator.evaluate(pytrec_eval.parse_run(ranked))
    for row in shop.export(run["id"]):
        found = theirs.get(row["id"].replace(" ", "%20"), {})
        for name, ours in (("ndcg_cut_3", "ndcg@3"), ("recall_3", "recall@3"),
                           ("recip_rank", "mrr@3")):  # fmt: skip
            assert found.get(name, 0.0) == pytest.approx(row["metrics"][ours])
    assert run["metrics"]["recall@3"] > 0


def test_beir_gives_back_the_set_and_trec_says_which_topic_it_named(shop: Project) -> None:
    folder = shop.folder / "beir"
    finished = shop.run("golden", "export", "--format", "beir", "-o", folder)
    assert finished.err == ""
    done = shop.json("golden", "import", folder, "--set", "back")
    assert done["report"]["added"] == len(GOLDEN) + 1
    again = shop.json("golden", "import", folder)
    assert again["report"]["unchanged"] == len(GOLDEN) + 1
    said = shop.run("golden", "export", "--format", "trec", "-o", shop.folder / "trec").err
    assert "1 questions without an external id have a number that is" in " ".join(said.split())


@pytest.mark.parametrize(
    ("format_name", "there"),
    [
        ("trec", "qrels.txt"),
        ("trec", "topics.sgml"),
        ("beir", "queries.jsonl"),
        ("beir", "qrels/train.tsv"),
    ],
)
def test_a_folder_with_a_golden_set_is_overwritten_with_force_only(
    shop: Project, tmp_path: Path, format_name: str, there: str
) -> None:
    kept = tmp_path / there
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine")
    export = ("golden", "export", "--format", format_name, "-o", tmp_path)
    complaint = shop.fails(*export)
    assert complaint == f"{kept} exists already: name another folder, or overwrite with --force"
    assert everything_in(tmp_path) == {there: b"mine"}
    shop.run(*export, "--force")
    assert len(everything_in(tmp_path)) in {2, 3}


def test_beir_is_written_beside_its_corpus(shop: Project, tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("mine")
    shop.run("golden", "export", "--format", "beir", "-o", tmp_path)
    assert set(everything_in(tmp_path)) == {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"}


def test_a_file_that_is_named_is_overwritten_once_the_new_one_is_complete(
    shop: Project, tmp_path: Path
) -> None:
    file = tmp_path / "golden.csv"
    file.write_text("older" * 1000)
    shop.fails("golden", "export", "--set", "absent", "-o", file)
    assert file.read_text() == "older" * 1000
    shop.run("golden", "export", "-o", file)
    assert "older" not in file.read_text()
    assert list(tmp_path.iterdir()) == [file]


def test_a_device_is_written_directly(shop: Project) -> None:
    printed = shop.run("golden", "export", "-o", "/dev/stdout").out
    assert printed == shop.run("golden", "export").out
    assert len(printed.splitlines()) == len(GOLDEN) + 1


def test_a_run_and_its_judgments_are_two_files(shop: Project, tmp_path: Path) -> None:
    [run] = shop.evaluate("fulltext", options=["--k", "3"])
    export = ("runs", "export", run["id"], "--format", "trec")
    kept = tmp_path / "run.txt"
    kept.write_text("mine")
    (tmp_path / "link").symlink_to(kept)
    for qrels in (kept, tmp_path / "link", tmp_path / "." / "run.txt"):
        complaint = shop.fails(*export, "-o", kept, "--qrels", qrels)
        assert complaint == "--output and --qrels are one file: name two"
    complaint = shop.fails(*export, "--qrels", "/dev/stdout")
    assert complaint == "--output and --qrels are one file: name two"
    assert str(tmp_path / "no") in shop.fails(*export, "-o", kept, "--qrels", tmp_path / "no" / "q")
    assert kept.read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"run.txt", "link"}


def test_a_set_made_with_keep_both_comes_back_with_it(shop: Project, tmp_path: Path) -> None:
    same = [{"question": "Who?", "expected": [key]} for key in ("manual:0", "my returns:0")]
    source = _written(shop, "both.jsonl", [*same, {"question": "Why?", "expected": ["manual:1"]}])
    shop.json("golden", "import", source, "--set", "both", "--keep-both")
    for form, name in (("jsonl", "x.jsonl"), ("csv", "x.csv"), ("tsv", "x.tsv"), ("beir", "x")):
        target = tmp_path / name
        said = shop.run("golden", "export", "--set", "both", "--format", form, "-o", target).err
        assert " ".join(said.split()) == (
            "warning: 2 questions share a text and tenant with others: import with --keep-both"
        )
        shop.fails("golden", "import", target, "--set", f"back-{form}")
        back = shop.json("golden", "import", target, "--set", f"back-{form}", "--keep-both")
        assert back["report"]["added"] == 3
        again = shop.json("golden", "import", target, "--set", "both", "--keep-both")
        assert again["report"]["unchanged"] == 3


def test_topics_of_one_text_need_no_option(shop: Project, tmp_path: Path) -> None:
    same = [{"question": "Who?", "expected": [key]} for key in ("manual:0", "my returns:0")]
    shop.json("golden", "import", _written(shop, "two.jsonl", same), "--set", "two", "--keep-both")
    said = shop.run("golden", "export", "--set", "two", "--format", "trec", "-o", tmp_path).err
    assert "--keep-both" not in said
    assert shop.json("golden", "import", tmp_path, "--set", "topics")["report"]["added"] == 2
