"""What `recallwatch eval` says of a corpus, a golden set or a question that changed meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.acceptance import guides
from tests.acceptance.command import Project

Record = dict[str, Any]


@pytest.fixture(scope="module")
def loaded(project: Project) -> Project:
    """Give a project whose corpus is loaded; each test imports a golden set of its own."""
    project.write_settings(
        '[strategies.vector-exact]\nkind = "vector"\nexact = true\n'
        "[queue]\nworkers = 1\n"
    )  # fmt: skip
    project.run("corpus", "load", project.write("chunks.jsonl", guides.chunks()))
    return project


def import_set(project: Project, name: str, questions: list[Record] | None = None) -> None:
    path = project.write(f"{name}.jsonl", questions or guides.questions())
    project.run("golden", "import", path, "--set", name)


@contextmanager
def spoiled_vectors(project: Project) -> Iterator[None]:
    """Give a third of the documents vectors that have nothing to do with their texts."""
    project.run("corpus", "load", project.write("spoiled.jsonl", guides.spoiled_chunks()))
    try:
        yield
    finally:
        project.run("corpus", "load", project.write("chunks.jsonl", guides.chunks()))


def test_a_second_run_on_the_same_corpus_is_ok_and_differs_in_nothing(loaded: Project) -> None:
    import_set(loaded, "same")
    (first,) = evaluate(loaded, "same", "vector")
    (second,) = evaluate(loaded, "same", "vector")
    assert (first["verdict"], second["verdict"]) == ("baseline", "ok")
    assert second["compared_to"] == first["id"]
    assert second["metrics"] == first["metrics"]
    assert {change["difference"] for change in second["comparison"]["changes"]} == {0}
    assert second["comparison"]["corpus"] == ["chunk texts unchanged", "vectors unchanged"]


def test_spoiled_vectors_are_a_regression_of_vector_search_alone(loaded: Project) -> None:
    import_set(loaded, "spoiled")
    evaluate(loaded, "spoiled", "vector", "fulltext")
    with spoiled_vectors(loaded):
        report = loaded.run("eval", "--set", "spoiled", "-s", "vector", "-s", "fulltext", code=1)
        again = loaded.run("eval", "--set", "spoiled", "-s", "vector", code=0)
    listed = loaded.json("runs", "list", "--set", "spoiled")
    assert [run["verdict"] for run in listed] == ["ok", "ok", "regressed", "baseline", "baseline"]
    assert "regressed" in report.out
    assert "vectors changed" in report.out
    assert "chunk texts unchanged" in report.out
    assert "regressed" not in again.out, "the drop is compared with the last run, not told twice"


def test_the_lost_questions_are_those_of_the_spoiled_documents(loaded: Project) -> None:
    import_set(loaded, "lost")
    (before,) = evaluate(loaded, "lost", "vector")
    with spoiled_vectors(loaded):
        (after,) = evaluate(loaded, "lost", "vector", code=1)
    shown = loaded.json("runs", "show", after["id"], "--lost", "--limit", 200)
    spoiled = {chunk["document_id"] for chunk in guides.spoiled_chunks()}
    had_hit = _questions_with_a_hit(loaded.export(before["id"]))
    have_hit = _questions_with_a_hit(loaded.export(after["id"]))
    assert {row["question"] for row in shown["lost"]} == had_hit - have_hit
    assert len(shown["lost"]) == after["comparison"]["lost"]
    assert all(any(thing in row["question"] for thing in spoiled) for row in shown["lost"])
    text = loaded.run("runs", "show", after["id"], "--lost", "--failures", "--cutoffs").out
    assert "lost since the reference" in text


def test_max_drop_1_lets_any_drop_pass(loaded: Project) -> None:
    import_set(loaded, "lenient")
    evaluate(loaded, "lenient", "vector")
    with spoiled_vectors(loaded):
        (run,) = evaluate(loaded, "lenient", "vector", options=("--max-drop", 1))
    assert run["verdict"] == "ok"
    assert min(change["difference"] for change in run["comparison"]["changes"]) < -0.1


def test_a_corrected_question_is_a_change_of_the_set_and_not_of_retrieval(loaded: Project) -> None:
    questions = guides.questions()
    import_set(loaded, "corrected", questions)
    (before,) = evaluate(loaded, "corrected", "fulltext")
    never_found = {f"{guides.THINGS[-1]}:0": 1}
    import_set(loaded, "corrected", [questions[0] | {"expected": never_found}, *questions[1:]])
    (after,) = evaluate(loaded, "corrected", "fulltext")
    assert after["verdict"] == "ok"
    assert after["comparison"]["pairing"] == {
        "shared": 119, "new": 0, "changed": 1, "gone": 0, "relived": 0, "unscored": 0
    }  # fmt: skip
    assert {change["difference"] for change in after["comparison"]["changes"]} == {0}
    assert after["metrics"]["hit@5"] < before["metrics"]["hit@5"]
    assert after["version"]["id"] != before["version"]["id"]
    assert "1 changed" in loaded.run("runs", "show", after["id"]).out


def test_another_k_or_level_has_a_history_of_its_own(loaded: Project) -> None:
    import_set(loaded, "depths")
    for options in ((), ("--k", 3), ("--level", "document")):
        (run,) = evaluate(loaded, "depths", "fulltext", options=options)
        assert run["verdict"] == "baseline"
    (run,) = evaluate(loaded, "depths", "fulltext", options=("--k", 3))
    assert run["verdict"] == "ok"


def test_a_named_variant_is_evaluated_under_its_name(loaded: Project) -> None:
    import_set(loaded, "variant")
    vector, exact = evaluate(loaded, "variant", "vector", "vector-exact")
    assert (vector["strategy"], exact["strategy"]) == ("vector", "vector-exact")
    assert (vector["settings"]["strategy"]["exact"], exact["settings"]["strategy"]["exact"]) == (
        False, True
    )  # fmt: skip
    assert exact["metrics"]["hit@5"] >= 0.9


def test_only_the_strategies_that_were_asked_for_are_run(loaded: Project) -> None:
    import_set(loaded, "two")
    runs = evaluate(loaded, "two", "hybrid", "fulltext")
    assert [run["strategy"] for run in runs] == ["hybrid", "fulltext"]
    assert {run["batch"] for run in runs} == {runs[0]["batch"]}


def test_without_waiting_the_run_is_queued_and_its_verdict_is_there_later(loaded: Project) -> None:
    import_set(loaded, "later")
    queued = loaded.json("eval", "--set", "later", "-s", "fulltext", "--no-wait")
    (run_id,) = queued["runs"]
    waiting = loaded.json("runs", "show", run_id)
    assert waiting["status"] in {"queued", "running", "completed"}
    evaluate(loaded, "later", "fulltext")
    assert loaded.json("runs", "show", run_id)["verdict"] == "baseline"


def test_json_holds_the_exit_code_and_what_runs_show_shows(loaded: Project) -> None:
    import_set(loaded, "json")
    evaluate(loaded, "json", "vector")
    with spoiled_vectors(loaded):
        report = loaded.json("eval", "--set", "json", "-s", "vector", code=1)
    assert report["exit_code"] == 1
    (run,) = report["runs"]
    assert loaded.json("runs", "show", run["id"]) == run


def evaluate(
    project: Project, set_name: str, *strategies: str, code: int = 0, options: tuple[object, ...] = ()
) -> list[Record]:
    """Evaluate a set with some strategies and return their runs."""
    chosen = [word for name in strategies for word in ("--strategy", name)]
    runs: list[Record] = project.json("eval", "--set", set_name, *chosen, *options, code=code)["runs"]
    return runs


def _questions_with_a_hit(export: list[Record]) -> set[str]:
    return {row["question"] for row in export if row["metrics"]["hit@5"] == 1}
