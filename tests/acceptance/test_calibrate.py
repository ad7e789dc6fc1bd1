"""`recallwatch calibrate`: on recallwatch's own table, and on one of the user's."""

import psycopg
import pytest

from tests.acceptance import guides
from tests.acceptance.command import Project

OWN_TABLE = """
CREATE SCHEMA app;
CREATE TABLE app.docs AS
    SELECT document_id, chunk_index, content, embedding FROM recallwatch_corpus.chunks;
CREATE INDEX docs_vectors ON app.docs USING hnsw (embedding vector_cosine_ops)
"""
OWN_SETTINGS = '[corpus]\ntable = "app.docs"\n'

RECORD = {
    "id", "set", "version", "strategy", "k", "level", "n", "pairs", "flips", "flip_rate",
    "largest_net", "alpha", "net_lost_needed", "blind_spot_points", "reindexed", "differences",
    "settings", "corpus", "created_at",
}  # fmt: skip


@pytest.fixture(scope="module")
def loaded(project: Project) -> Project:
    guides.load(project)
    with psycopg.connect(project.environment["DATABASE_URL"], autocommit=True) as conn:
        conn.execute(OWN_TABLE)
    return project


def index_file(project: Project, index: str) -> int:
    with psycopg.connect(project.environment["DATABASE_URL"]) as conn:
        row = conn.execute("SELECT pg_relation_filenode(%s::regclass)", [index]).fetchone()
    assert row is not None
    number: int = row[0]
    return number


def test_nothing_was_calibrated_yet(loaded: Project) -> None:
    assert loaded.run("calibrate", "list", "--set", "none").out == "no calibration yet\n"
    assert loaded.json_rows("calibrate", "list", "--set", "none") == []


def test_a_table_and_a_line_say_how_noisy_each_strategy_is(loaded: Project) -> None:
    done = loaded.run("calibrate", "--strategy", "vector", "--strategy", "fulltext")

    assert done.err == ""
    # With f = 1 / (2 * 120 * 12) the binomial tail gives three net lost, and four points.
    for name in ("vector", "fulltext"):
        assert (
            f"{name}: f = 0.1 % (0 flips in 4 pairs of 120): a drop is told from 3 net lost"
            " questions on; cannot see drops under 4.0 points (80 % power)\n"
        ) in done.out
    table = done.out.partition("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert loaded.json_rows("runs", "list") == [], "no run is recorded"


def test_a_rebuild_says_what_it_rebuilds_and_leaves_deterministic_strategies_out(
    loaded: Project,
) -> None:
    before = index_file(loaded, "recallwatch_corpus.chunks_embedding")

    done = loaded.run("calibrate", "--reindex", "--pairs", 5)

    assert done.err.splitlines() == [
        "fulltext is deterministic: needs no calibration, left out",
        "rebuilds index chunks_embedding of recallwatch_corpus.chunks 5 times",
    ]
    assert "hybrid: f =" in done.out
    assert "fulltext" not in done.out
    assert index_file(loaded, "recallwatch_corpus.chunks_embedding") != before


def test_everything_is_there_as_json(loaded: Project) -> None:
    made = loaded.json(
        "calibrate", "-s", "vector", "-s", "fulltext", "--reindex", "-k", 3, "--level", "document"
    )

    (record,) = made["calibrations"]
    assert {*record} == RECORD
    assert (record["strategy"], record["k"], record["level"]) == ("vector", 3, "document")
    assert (record["n"], record["pairs"], record["reindexed"]) == (120, 12, True)
    assert record["flip_rate"] == (record["flips"] + 1) / (2 * 120 * 12)
    assert sum(count for _, count in record["differences"]["ndcg@3"]) == 1440
    assert record["corpus"]["index"]["name"] == "chunks_embedding"
    assert made["skipped"] == ["fulltext"]
    assert made["left_out"] == {"vector": 0}

    listed = loaded.json_rows("calibrate", "list", "--strategy", "vector", "--limit", 1)
    assert listed == [record | {"stale": []}]


def test_the_list_says_what_is_stale_and_why(loaded: Project) -> None:
    loaded.run("calibrate", "-s", "vector")
    fresh = loaded.json_rows("calibrate", "list", "-s", "vector", "--limit", 1)
    assert fresh[0]["stale"] == []
    loaded.write_settings("[strategies.vector]\nef_search = 100\n")
    try:
        listed = loaded.run("calibrate", "list", "-s", "vector", "--limit", 1).out
    finally:
        loaded.write_settings("")

    said = f"stale: {fresh[0]['id']} (vector): other strategy settings"
    assert listed.splitlines()[-1] == said


def test_a_table_of_ones_own_is_left_alone_unless_it_is_a_copy(loaded: Project) -> None:
    before = index_file(loaded, "app.docs_vectors")
    rebuild = ("calibrate", "-s", "vector", "--reindex")
    try:
        loaded.write_settings(OWN_SETTINGS)
        said = loaded.fails(*rebuild)
        assert "--reindex would rebuild the vector index of app.docs" in said
        assert "set staging = true in [corpus]" in said
        assert index_file(loaded, "app.docs_vectors") == before
        assert "vector: f =" in loaded.run("calibrate", "-s", "vector").out

        loaded.write_settings(OWN_SETTINGS + "staging = true\n")
        done = loaded.run(*rebuild)
    finally:
        loaded.write_settings("")

    assert done.err == "rebuilds index docs_vectors of app.docs 12 times\n"
    assert index_file(loaded, "app.docs_vectors") != before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pairs", "3"], "invalid value for '--pairs': 3 is not in the range x>=4"),
        (["-s", "nope"], "unknown strategy 'nope'"),
        (["-k", "0"], "k must be from 1 to 1000, not 0"),
        (["--level", "page"], "invalid value for '--level'"),
        (["--set", "none"], "golden set 'none' has no active question"),
        (["--reindex", "-s", "fulltext"], "deterministic: needs no calibration"),
        (["--reindex", "list"], "options of `calibrate list` stand behind it"),
        (["nothing"], "no such command 'nothing'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    loaded: Project, arguments: list[str], said: str
) -> None:
    assert said in loaded.fails("calibrate", *arguments)
