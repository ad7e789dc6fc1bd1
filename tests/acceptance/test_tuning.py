"""From a run to better settings, and back: what was promised is what the next run measures."""

import tomllib

import pytest

from cli.embedded.stack import Servers
from tests.acceptance.command import Project
from tests.acceptance.conftest import standing_project

COLOURS = ("red", "green", "blue", "black", "white", "yellow")
THINGS = ("router", "battery", "parcel", "invoice", "cable", "antenna", "screen", "charger")

SETTINGS = """
[strategies.near]
kind = "vector"
exact = true

[strategies.both]
kind = "hybrid"
arms = { near = 3.0, fulltext = 1.0 }
"""


def corpus_and_questions(project: Project) -> None:
    """Write texts that differ in two words, and a question for each in these words."""
    pairs = [(colour, thing) for thing in THINGS for colour in COLOURS]
    chunks = [
        {"document_id": f"{colour}-{thing}", "chunk_index": 0,
         "content": f"What we sell: the {thing} which is {colour}, at a fair price."}
        for colour, thing in pairs
    ]  # fmt: skip
    golden = [
        {"question": f"Where is some {colour} {thing}?", "expected": {f"{colour}-{thing}:0": 1}}
        for colour, thing in pairs
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
        [winner] = [each for name, each in promised.items() if name.startswith(_name(found))]
        assert winner["mrr@3"] > promised["present"]["mrr@3"]
        tuned = found["toml"].replace("[strategies.both]", "[strategies.tuned]")
        assert tomllib.loads(tuned)
        project.write_settings(f"{SETTINGS}\n{tuned}\n")
        [run] = project.json("eval", "--k", 3, "--strategy", "tuned")["runs"]
        for measure in ("mrr@3", "ndcg@3", "recall@3"):
            if measure in winner:
                assert run["metrics"][measure] == pytest.approx(winner[measure], abs=1e-12)


def _name(found: dict[str, object]) -> str:
    """Return how the table calls the winner, up to its formula."""
    winner = found["winner"]
    assert isinstance(winner, dict)
    return ":".join(f"{weight:g}" for weight in winner["arms"].values()) + " "
