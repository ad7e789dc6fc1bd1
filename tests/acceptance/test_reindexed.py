"""Notices of a re-index, by the command and by another Celery app."""

import json
from collections.abc import Iterator
from typing import Any, LiteralString

import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project, rows, wait_until
from tests.acceptance.conftest import standing_project

OTHER_APP = """
import sys
from celery import Celery
app = Celery("ingest", broker=sys.argv[1])
for _ in range(3):
    app.send_task("recallwatch.reindexed", kwargs=dict(documents=["kettle"],
                  strategies=["fulltext"], requested_by="ingest"), queue="default")
"""


NOTICED = """
SELECT FROM recallwatch.run JOIN recallwatch.batch ON batch.id = batch_id
WHERE requested_by = 'ingest'
"""


@pytest.fixture(scope="module")
def guided(servers: Servers) -> Iterator[Project]:
    """Give a project in which re-indexing counts as over after three quiet seconds."""
    with standing_project(servers, {"RECALLWATCH_QUEUE__REINDEX_QUIET": "3"}) as project:
        guides.load(project)
        yield project


def test_calls_at_once_start_one_batch_and_all_wait_for_its_verdict(guided: Project) -> None:
    words = ("reindexed", "--strategy", "fulltext", "--wait", "--json")
    quiet = {"RECALLWATCH_QUEUE__REINDEX_QUIET": "20"}
    calls = [guided.start(*words, **quiet) for _ in range(4)]

    ended = [call.finish() for call in calls]

    assert [each.code for each in ended] == [0] * 4, ended
    records = [json.loads(each.out) for each in ended]
    assert len({record["batch"] for record in records}) == 1
    assert sorted(record["joined"] for record in records) == [False, True, True, True]
    for record in records:
        [run] = record["runs"]
        assert (run["trigger"], run["verdict"], run["scored"]) == ("reindex", "baseline", 120)
        assert (record["expected_keys"], record["keys_gone"], record["exit_code"]) == (120, 0, 0)


def test_a_call_that_does_not_wait_says_the_keys_state_and_when_it_starts(guided: Project) -> None:
    # Of another strategy than the other tests': a notice for the same thing would join it.
    done = guided.run("reindexed", "--strategy", "vector")

    keys, start = done.out.splitlines()
    assert keys == "all 120 expected keys are in the corpus"
    assert start.startswith("queued batch ")
    assert "unless re-indexing goes on; see: recallwatch runs show" in start
    assert done.err == ""
    again = guided.run("reindexed", "--strategy", "vector").out
    assert again.splitlines()[1].startswith(("joined batch", "queued batch"))


def test_another_celery_app_sends_notices_that_start_one_batch(guided: Project) -> None:
    before = {run["id"] for run in guided.json_rows("runs", "list")}
    servers = guided.servers()
    path, _, _ = servers["REDIS_URL"].removeprefix("unix://").partition("?")

    def found(query: LiteralString) -> list[tuple[Any, ...]]:
        return rows(servers["DATABASE_URL"], query)

    with guided.worker():
        app = guided.start_program("-c", OTHER_APP, f"redis+socket://{path}?virtual_host=0")
        assert app.finish().code == 0
        wait_until(lambda: found(f"{NOTICED} AND quiet_until < clock_timestamp()"))
        # No beat runs here: the command's own sweep lets the batch go.
        guided.evaluate("vector")
        wait_until(lambda: found(f"{NOTICED} AND verdict IS NOT NULL"))
    [run] = [run for run in guided.json_rows("runs", "list") if run["requested_by"] == "ingest"]
    assert run["id"] not in before
    assert (run["trigger"], run["strategy"]) == ("reindex", "fulltext")


def test_named_documents_are_looked_at_by_argument_and_by_file(
    servers: Servers,
) -> None:
    with standing_project(servers, {"RECALLWATCH_QUEUE__REINDEX_QUIET": "60"}) as project:
        kept = [chunk for chunk in guides.chunks() if chunk["document_id"] != "harp"]
        cut = [chunk for chunk in kept if (chunk["document_id"], chunk["chunk_index"])
               not in {("kettle", 1), ("kettle", 4)}]  # fmt: skip
        project.run("corpus", "load", project.write("chunks.jsonl", cut))
        project.run("golden", "import", project.write("golden.jsonl", guides.questions()))
        (project.folder / "ids.txt").write_text("kettle\n\nharp\n")
        words = ("reindexed", "--strategy", "fulltext")

        record = project.json(*words, "--documents", "@ids.txt", "--documents", "piano")

        assert (record["expected_keys"], record["keys_gone"]) == (120, 7)
        harp = [f"harp:{number}" for number in range(5)]
        assert record["documents"] == [
            {"document_id": "kettle", "expected": 5, "gone": ["kettle:1", "kettle:4"],
             "questions": 2},
            {"document_id": "harp", "expected": 5, "gone": harp, "questions": 5},
            {"document_id": "piano", "expected": 5, "gone": [], "questions": 0},
        ]  # fmt: skip
        assert record["unknown_documents"] == ["harp"]

        shown = project.run(*words, "--documents", "kettle", "--documents", "sofa")

        assert shown.out.splitlines()[0] == "of 2 documents named, golden questions expect 1"
        assert shown.out.splitlines()[1].startswith("joined batch ")
        all_keys, kettle, unknown = shown.err.splitlines()
        assert all_keys == "warning: 7 of 120 expected keys are not in the corpus, as 'harp:0'"
        assert kettle == (
            "warning: document 'kettle': 2 of 5 expected keys are gone, as 'kettle:1';"
            " questions that expect them: 2"
        )
        assert unknown == "warning: no chunk in the corpus: 'sofa'"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--documents", "@nowhere.txt"], "nowhere.txt: cannot be read: No such file"),
        (["--strategy", "vectr"], "unknown strategy 'vectr'; the strategies are"),
        (["--k", "0"], "k must be from 1 to 1000, not 0"),
        (["--set", "faq"], "golden set 'faq' has no active question; run"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    guided: Project, words: list[str], complaint: str
) -> None:
    assert complaint in guided.fails("reindexed", *words)
