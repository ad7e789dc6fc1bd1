"""The strategies command: what there is, and what one returns now."""

from collections.abc import Iterator

import pytest

from cli.embedded.stack import Servers
from tests.acceptance.command import Project
from tests.acceptance.conftest import standing_project

CHUNKS = [
    ("reset", 0, "Hold the reset key for ten seconds to reset the router.", "acme"),
    ("reset", 1, "After the reset the router takes two minutes to start.", "acme"),
    ("battery", 0, "The battery of the remote control lasts two years.", "globex"),
]

SETTINGS = """
[strategies.mine]
kind = "sql"
statement = '''
SELECT document_id, chunk_index, 1.0 AS score FROM recallwatch_corpus.chunks
WHERE content ILIKE '%' || :question || '%' AND (:tenant IS NULL OR tenant = :tenant)
ORDER BY document_id, chunk_index LIMIT :k
'''

[strategies.own]
kind = "python"
path = "own_search:reset"

[strategies.broken]
kind = "python"
path = "own_search:nothing"

[strategies.second]
kind = "rerank"
candidates = "mine"
reranker = { kind = "python", path = "own_search:shortest" }
"""

OWN = """
def reset(question, tenant):
    if question == "poison":
        raise LookupError("no such thing")
    return ["reset:1", ("reset:0")]

def shortest(question, documents):
    return [-len(text) for text in documents]
"""


@pytest.fixture(scope="module")
def project(servers: Servers) -> Iterator[Project]:
    with standing_project(servers) as project:
        rows = [
            {"document_id": document, "chunk_index": n, "content": text, "tenant": tenant}
            for document, n, text, tenant in CHUNKS
        ]
        project.write_settings(SETTINGS)
        (project.folder / "own_search.py").write_text(OWN)
        project.run("corpus", "load", project.write("chunks.jsonl", rows))
        yield project


def test_each_strategy_is_listed_with_what_it_asks_and_is_told(project: Project) -> None:
    shown = project.run("strategies", "list").out
    assert "vector *" in shown
    assert "vector, fulltext" in shown
    listed = {each["name"]: each for each in project.json_rows("strategies", "list")}
    assert listed["mine"]["kind"] == "sql"
    assert (listed["hybrid"]["evaluated"], listed["own"]["evaluated"]) == (True, False)


def test_what_comes_back_is_shown_with_score_tenant_text_and_plan(project: Project) -> None:
    shown = project.run("strategies", "probe", "hybrid", "reset the router", "--explain").out
    assert "reset:0" in shown
    assert "Hold the reset key" in shown
    assert "acme" in shown
    assert shown.count("Execution Time") == 2
    found = project.json("strategies", "probe", "hybrid", "reset the router", "--k", "2")
    assert [each["rank"] for each in found["results"]] == [1, 2]
    assert set(found["stages"]) == {"vector", "fulltext"}


def test_own_sql_and_python_and_a_second_stage_answer(project: Project) -> None:
    mine = project.json("strategies", "probe", "mine", "reset", "--tenant", "acme")
    assert [each["key"] for each in mine["results"]] == ["reset:0", "reset:1"]
    other = project.json("strategies", "probe", "mine", "reset", "--tenant", "globex")
    assert other["results"] == []
    own = project.json("strategies", "probe", "own", "anything")
    assert [(each["key"], each["content"]) for each in own["results"]] == [
        ("reset:1", CHUNKS[1][2]), ("reset:0", CHUNKS[0][2]),
    ]  # fmt: skip
    second = project.json("strategies", "probe", "second", "reset")
    assert [each["key"] for each in second["results"]] == ["reset:1", "reset:0"]
    assert [each["key"] for each in second["stages"]["candidates"]] == ["reset:0", "reset:1"]


def test_what_cannot_answer_says_why_in_a_line(project: Project) -> None:
    assert "no strategy 'nope'" in project.fails("strategies", "probe", "nope", "x")
    failed = project.fails("strategies", "probe", "own", "poison", code=3)
    assert failed == "strategy own cannot answer it: LookupError: no such thing"
    broken = project.fails("strategies", "probe", "broken", "x", code=3)
    assert "own_search:nothing cannot be imported (AttributeError: " in broken


def test_a_search_that_falls_short_says_why(project: Project) -> None:
    shown = project.run("strategies", "probe", "vector", "reset", "--tenant", "nobody").out
    assert "it returns nothing" in shown
    assert "no chunk of the corpus is of tenant 'nobody'" in shown
