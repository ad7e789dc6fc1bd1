"""A re-chunk under the same document ids, from the refusal to new keys and back."""

import json
from collections.abc import Iterator

import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project, Record
from tests.acceptance.conftest import standing_project

EVAL = ("eval", "--strategy", "fulltext")


@pytest.fixture(scope="module")
def rechunked(servers: Servers) -> Iterator[Project]:
    """Give a project that was evaluated, and whose corpus was then cut anew."""
    with standing_project(servers, {}) as project:
        guides.load(project)
        project.run(*EVAL)
        project.run("corpus", "load", "--replace", project.write("new.jsonl", list(new_chunks())))
        yield project


def new_chunks() -> Iterator[Record]:
    """Yield the guides with two chunks in one, behind a chunk that no question asks for."""
    by_document: dict[str, list[str]] = {}
    for chunk in guides.chunks():
        by_document.setdefault(chunk["document_id"], []).append(chunk["content"])
    for document, texts in by_document.items():
        pieces = ["All there is to know.", " ".join(texts[:2]), *texts[2:]]
        for number, piece in enumerate(pieces):
            yield {"document_id": document, "chunk_index": number, "content": piece}


def test_keys_follow_their_texts_and_can_be_put_back(rechunked: Project) -> None:
    complaint = rechunked.fails(*EVAL)
    assert complaint.startswith("24 of 120 questions have no usable expected key (20.0%; ")
    assert "recallwatch golden check" in complaint
    assert complaint.endswith("or evaluate documents: recallwatch eval --level document")

    checked = rechunked.json("golden", "check")
    assert {state: n for state, n in checked["states"].items() if n} == {"live": 72, "merged": 48}

    proposed = rechunked.run("golden", "remap", "--limit", "1")
    assert proposed.out.startswith("new keys: 48 judgments")
    assert "edit" not in proposed.out

    written = rechunked.json("golden", "remap", "--apply")
    assert (written["edit"], len(written["questions"]), written["left"]) == (1, 48, [])
    rechunked.run(*EVAL)

    now, before = json.loads(rechunked.run("golden", "versions", "--json").out)
    changes = rechunked.json("golden", "diff", str(before["id"]), str(now["id"]))["questions"]
    assert len(changes) == 24, "half of the keys are where they were, with more text"
    assert {"harp:0": [1, None], "harp:1": [None, 1]} in [each["keys"] for each in changes]

    assert rechunked.run("golden", "undo", "1").out == (
        "edit 1 is undone: 48 questions are as before\n"
    )
    assert rechunked.fails("golden", "undo", "1") == "edit 1 was undone already"
    assert rechunked.json("golden", "diff", str(before["id"]))["questions"] == []


def test_documents_are_evaluated_without_their_texts(rechunked: Project) -> None:
    evaluated = rechunked.json(*EVAL, "--level", "document")
    [run] = evaluated["runs"]
    assert (run["level"], run["ineligible"], run["scored"]) == ("document", 0, run["questions"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("check", "--set", "nobody"), "golden set 'nobody' has no active or proposed question"),
        (("remap", "--set", "nobody"), "golden set 'nobody' has no active or proposed question"),
        (("diff", "99"), "there is no golden version 99; see: recallwatch golden versions"),
        (("undo", "99"), "there is no edit 99; see: recallwatch golden edits"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    rechunked: Project, words: tuple[str, ...], complaint: str
) -> None:
    assert rechunked.fails("golden", *words).startswith(complaint)
