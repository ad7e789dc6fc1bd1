"""`compare-embeddings` and `compare-chunkings`: as a user runs them, right and wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import guides
from tests.acceptance.command import Project
from tests.loopback.embedding_server import EmbeddingServer


@pytest.fixture(scope="module")
def loaded(project: Project) -> Project:
    guides.load(project)
    return project


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with EmbeddingServer() as server:
        yield server


def test_models_are_compared_in_a_table_and_nothing_is_asked_twice(
    loaded: Project, server: EmbeddingServer
) -> None:
    loaded.write_settings(
        f'[models.voyage]\nprovider = "voyage"\nmodel = "m"\nprice = 0.06\n'
        f'base_url = "{server.url("voyage")}"\n'
    )
    compare = ("compare-embeddings", "--model", "corpus", "--model", "voyage")

    dry = loaded.run(*compare, "--dry-run")
    assert "to embed: voyage: 240 new texts, about $0.0" in dry.err
    assert (dry.out, server.requests) == ("", [])

    done = loaded.run(*compare)
    assert "120 questions, held against corpus" in done.out
    assert "nothing is better than corpus over these 120 questions" in done.out
    assert "searched exactly among 120 of 120 chunks\n" in done.out
    assert max(map(len, done.out.partition("\nnothing")[0].splitlines())) <= 80
    asked = len(server.requests)

    again = loaded.json(*compare, "--sample", "5")
    assert len(server.requests) == asked
    assert [row["name"] for row in again["rows"]] == ["corpus", "voyage"]
    assert again["best"] is None
    assert again["left_out"] == again["spent"] == 0

    assert loaded.run("compare-embeddings", "--forget").out == "deleted 240 vectors\n"


def test_chunkings_are_compared_on_a_folder_of_documents(loaded: Project, tmp_path: Path) -> None:
    for thing in guides.THINGS:
        parts = [text.format(thing) for text, _ in guides.TOPICS]
        (tmp_path / f"{thing}.md").write_text("\n\n".join(parts))

    done = loaded.run(
        "compare-chunkings", "--folder", str(tmp_path), "--size", "60,400", "--overlap", "0,20"
    )

    assert "120 questions, held against 60" in done.out
    assert "held@2000: share of the judged texts in the first 2,000 letters" in done.out
    assert max(map(len, done.out.partition("\nheld@2000:")[0].splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["compare-embeddings"], "nothing to compare: name a model"),
        (["compare-embeddings", "--model", "gpt"], "--model gpt: write provider:name"),
        (["compare-embeddings", "--model", "cohere:x"], "what cohere:x costs is not known"),
        (["compare-embeddings", "--model", "local", "--max-cost", "nan"], "invalid value for"),
        (["compare-chunkings", "--size", "10"], "size 10: at least 50 characters"),
        (["compare-chunkings", "--size", "100", "--overlap", "60"], "overlap 60 with size 100"),
        (["compare-chunkings", "--folder", "/nowhere"], "/nowhere: no such folder"),
        (["compare-chunkings", "--model", "corpus"], "other chunks have no vectors"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(
    loaded: Project, arguments: list[str], complaint: str
) -> None:
    assert complaint in loaded.fails(*arguments)
