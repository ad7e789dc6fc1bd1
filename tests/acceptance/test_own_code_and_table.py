"""recallwatch beside what is there already: a chunks table of yours, code of yours, your Celery."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from pgvector.psycopg import register_vector

from cli.embedded.stack import Servers
from pipeline.embedding.local import LocalEmbedder
from tests.acceptance import guides
from tests.acceptance.command import Project
from tests.acceptance.conftest import fresh_database, standing_project

SETTINGS = """
[corpus]
table = "app.passages"
document_id = "doc_no"
chunk_index = "part"
content = "body"
embedding = "vec"
tenant = "customer"
"""

START_BATCH = """
from workers.enqueue import start_batch

started = start_batch(["vector", "fulltext"], requested_by="nightly job", k=3)
print(*started.run_ids)
"""


@dataclass(frozen=True)
class Application:
    """An application's database, and a project that is told of it by CORPUS_URL."""

    url: str
    project: Project


@pytest.fixture(scope="module")
def application(servers: Servers) -> Iterator[Application]:
    with fresh_database(servers) as url:
        _create_table(url)
        # The corpus is only read: a write to it would be refused.
        read_only = f"{url}&options=-c%20default_transaction_read_only%3Don"
        with standing_project(servers, {"CORPUS_URL": read_only}) as project:
            project.write_settings(SETTINGS)
            project.run("golden", "import", project.write("golden.jsonl", _questions()))
            yield Application(url, project)


def test_a_table_of_yours_is_searched_by_the_names_you_give_it(application: Application) -> None:
    shown = application.project.json("corpus", "show")
    assert shown["table"] == "app.passages"
    assert (shown["chunks"], shown["documents"]) == (120, 24)
    assert shown["tenants"] == {"acme": 60, "globex": 60}
    runs = application.project.evaluate("vector", "fulltext", "hybrid")
    for run in runs:
        assert (run["scored"], run["failed"], run["ineligible"]) == (120, 0, 0)
        assert run["metrics"]["hit@5"] > 0.9
        assert set(run["by_tenant"]) == {"acme", "globex"}
        for row in application.project.export(run["id"]):
            assert {_customer_of(key) for key in row["retrieved"]} <= {row["tenant"]}


def test_a_table_of_yours_is_not_loaded_into(application: Application) -> None:
    file = application.project.write("chunks.jsonl", guides.chunks())
    complaint = application.project.fails("corpus", "load", file)
    assert "app.passages" in complaint
    assert "only reads" in complaint


def test_your_code_starts_a_batch_that_celerys_own_worker_evaluates(
    application: Application,
) -> None:
    project = application.project
    script = project.start_program("-c", START_BATCH, **project.servers()).finish()
    assert script.code == 0, script
    first, second = map(int, script.out.split())
    with project.worker():
        vector, fulltext = project.wait_for_run(first), project.wait_for_run(second)
    assert (vector["strategy"], fulltext["strategy"]) == ("vector", "fulltext")
    for run in (vector, fulltext):
        assert (run["trigger"], run["requested_by"], run["k"]) == ("manual", "nightly job", 3)
        assert run["verdict"] == "baseline"


def _create_table(url: str) -> None:
    texts = [chunk["content"] for chunk in guides.chunks()]
    vectors = LocalEmbedder().embed(texts)
    with psycopg.connect(url) as database:
        database.execute("CREATE EXTENSION vector")
        register_vector(database)
        database.execute("CREATE SCHEMA app")
        database.execute(
            "CREATE TABLE app.passages (doc_no bigint, part smallint, body text, vec vector(256),"
            " customer text, PRIMARY KEY (doc_no, part))"
        )
        with database.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO app.passages VALUES (%s, %s, %s, %s, %s)",
                [
                    (_number(chunk["document_id"]), chunk["chunk_index"], chunk["content"], vector,
                     _customer(chunk["document_id"]))
                    for chunk, vector in zip(guides.chunks(), vectors, strict=True)
                ],
            )  # fmt: skip


def _questions() -> Iterator[dict[str, object]]:
    for question in guides.questions():
        ((key, grade),) = question["expected"].items()
        thing, _, index = key.rpartition(":")
        expected = {f"{_number(thing)}:{index}": grade}
        yield question | {"expected": expected, "tenant": _customer(thing)}


def _number(thing: str) -> int:
    return 1000 + guides.THINGS.index(thing)


def _customer(thing: str) -> str:
    return ("acme", "globex")[guides.THINGS.index(thing) % 2]


def _customer_of(key: str) -> str:
    return _customer(guides.THINGS[int(key.partition(":")[0]) - 1000])
