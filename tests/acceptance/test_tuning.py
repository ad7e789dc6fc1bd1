"""From a run to better settings, and back: what was promised is what the next run measures."""

import random

import pytest

from cli.embedded.stack import Servers
from tests.acceptance.command import Project
from tests.acceptance.conftest import standing_project

WORDS = ("router", "battery", "parcel", "warranty", "refund", "invoice", "password", "cable",
         "antenna", "screen", "manual", "charger", "store", "delivery")  # fmt: skip

SETTINGS = """
[strategies.near]
kind = "vector"
exact = true

[strategies.both]
kind = "hybrid"
arms = { near = 9.0, fulltext = 1.0 }
"""


def corpus_and_questions(project: Project) -> None:
    """Write texts of words at random, and for each a question with some of its words."""
    texts = [random.Random(n).choices(WORDS, k=7) for n in range(80)]  # noqa: S311 - made-up texts
    chunks = [
        {"document_id": f"d{n}", "chunk_index": 0, "content": " ".join(words)}
        for n, words in enumerate(texts)
    ]
    golden = [
        {"question": f"{' '.join(words[:3])}, case {n}", "expected": {f"d{n}:0": 1}}
        for n, words in enumerate(texts)
    ]
    project.run("corpus", "load", project.write("chunks.jsonl", chunks))
    project.run("golden", "import", project.write("golden.jsonl", golden))


def test_settings_that_tuning_promises_measure_as_promised(servers: Servers) -> None:
    with standing_project(servers) as project:
        project.write_settings(SETTINGS)
        corpus_and_questions(project)
        assert "no completed run of a hybrid" in project.fails("tune", "hybrid")
        project.run("eval", "--k", 3, "--strategy", "both")

        found = project.json("tune", "hybrid", "--metric", "mrr@3")
        shown = project.run("tune", "hybrid", "--metric", "mrr@3").out

        assert found["toml"] in shown
        promised = {row["name"]: row["means"] for row in found["top"]["rows"]}
        winner = promised[found["winner"]["name"]]
        assert winner["mrr@3"] > promised["present"]["mrr@3"]
        tuned = found["toml"].replace("[strategies.both]", "[strategies.tuned]")
        project.write_settings(f"{SETTINGS}\n{tuned}\n")
        [run] = project.json("eval", "--k", 3, "--strategy", "tuned")["runs"]
        for measure in ("mrr@3", "recall@3"):
            assert run["metrics"][measure] == pytest.approx(winner[measure], abs=1e-12)
