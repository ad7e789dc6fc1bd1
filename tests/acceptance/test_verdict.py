"""What `recallwatch eval` says of a corpus, a golden set or a question that changed meanwhile.

The tests share a golden set. Runs are compared at equal k only, so each test takes a k of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.acceptance import guides
from tests.acceptance.command import Finished, Project, Record


@pytest.fixture(scope="module")
def loaded(project: Project) -> Project:
    """Give the project with corpus and golden set."""
    project.write_settings('[strategies.vector-exact]\nkind = "vector"\nexact = true\n')
    guides.load(project)
    return project


@dataclass(frozen=True)
class Spoiled:
    """What commands said before and after a third of the documents got wrong vectors."""

    before: list[Record]
    table: Finished
    report: Record
    lenient: Record
    shown: Record
    exports: list[list[Record]]


@pytest.fixture(scope="module")
def spoiled(loaded: Project) -> Spoiled:
    """Evaluate, spoil the vectors, evaluate in three ways (each at its own k), and mend."""
    _, before, _ = (evaluate(loaded, "vector", "fulltext", k=k) for k in (11, 12, 13))
    loaded.run("corpus", "load", loaded.write("spoiled.jsonl", guides.spoiled_chunks()))
    table = loaded.run("eval", "-s", "vector", "-s", "fulltext", "--k", 11, code=1)
    report = loaded.json("eval", "-s", "vector", "-s", "fulltext", "--k", 12, code=1)
    lenient = loaded.json("eval", "-s", "vector", "--k", 13, "--max-drop", 1)
    vector = report["runs"][0]["id"]
    shown = loaded.json("runs", "show", vector, "--lost", "--limit", 200)
    exports = [loaded.export(before[0]["id"]), loaded.export(vector)]
    loaded.run("corpus", "load", loaded.write("chunks.jsonl", guides.chunks()))
    return Spoiled(before, table, report, lenient, shown, exports)


def test_a_second_run_on_the_same_corpus_is_ok_and_differs_in_nothing(loaded: Project) -> None:
    (first,) = evaluate(loaded, "vector", k=2)
    (second,) = evaluate(loaded, "vector", k=2)
    assert (first["verdict"], second["verdict"]) == ("baseline", "ok")
    assert second["compared_to"] == first["id"]
    assert second["metrics"] == first["metrics"]
    assert {change["difference"] for change in second["comparison"]["changes"]} == {0}
    assert second["comparison"]["corpus"] == ["chunk texts unchanged", "vectors unchanged"]


def test_wrong_vectors_are_a_regression_of_vector_search_alone(spoiled: Spoiled) -> None:
    assert [run["verdict"] for run in spoiled.before] == ["baseline", "baseline"]
    vector, fulltext = spoiled.report["runs"]
    assert (vector["verdict"], fulltext["verdict"]) == ("regressed", "ok")
    assert vector["metrics"]["recall@12"] < spoiled.before[0]["metrics"]["recall@12"] - 0.1
    assert fulltext["metrics"] == spoiled.before[1]["metrics"]
    for run in (vector, fulltext):
        assert run["comparison"]["corpus"] == ["chunk texts unchanged", "vectors changed"]


def test_the_exit_code_of_a_regression_is_1_and_stands_in_the_json(spoiled: Spoiled) -> None:
    assert spoiled.table.code == spoiled.report["exit_code"] == 1


def test_the_table_of_a_regression_shows_both_means_and_the_drop(spoiled: Spoiled) -> None:
    (change,) = [
        change for change in spoiled.report["runs"][0]["comparison"]["changes"]
        if change["metric"] == "hit@10"
    ]  # fmt: skip
    drop = change["current"] - change["previous"]
    assert change["difference"] == drop < -0.1
    rows = [line.split() for line in spoiled.table.out.splitlines()]
    _, *figures, p = next(row for row in rows if row[:1] == ["recall@11"])
    current, previous, difference, low, high = map(float, figures)
    assert difference == pytest.approx(current - previous, abs=1.5e-4)
    assert low < difference < high < 0
    assert (difference < -0.1, p) == (True, "<.001")
    assert "regressed" in spoiled.table.out
    assert "more than max_drop 0.02" in " ".join(spoiled.table.out.split())
    assert "without a hit at 11" in spoiled.table.out


def test_the_lost_questions_are_those_that_had_a_hit_and_have_none(spoiled: Spoiled) -> None:
    had, have = map(_questions_with_a_hit, spoiled.exports)
    lost = {row["question"] for row in spoiled.shown["lost"]}
    assert lost == had - have
    assert len(lost) == spoiled.shown["comparison"]["lost"]
    documents = {chunk["document_id"] for chunk in guides.spoiled_chunks()}
    assert all(any(document in question for document in documents) for question in lost)


def test_max_drop_1_lets_any_drop_pass(spoiled: Spoiled) -> None:
    assert spoiled.lenient["exit_code"] == 0
    (run,) = spoiled.lenient["runs"]
    assert run["verdict"] == "ok"
    assert min(change["difference"] for change in run["comparison"]["changes"]) < -0.1


def test_a_corrected_question_is_a_change_of_the_set_and_not_of_retrieval(loaded: Project) -> None:
    first, *others = guides.questions()
    import_set(loaded, "corrected", [first, *others])
    (before,) = evaluate(loaded, "fulltext", k=5, options=("--set", "corrected"))
    never_found = {f"{guides.THINGS[-1]}:0": 1}
    import_set(loaded, "corrected", [first | {"expected": never_found}, *others])
    (after,) = evaluate(loaded, "fulltext", k=5, options=("--set", "corrected"))
    assert after["verdict"] == "ok"
    assert after["comparison"]["pairing"] == {
        "shared": 119, "new": 0, "changed": 1, "gone": 0, "relived": 0, "unscored": 0
    }  # fmt: skip
    assert {change["difference"] for change in after["comparison"]["changes"]} == {0}
    assert after["metrics"]["hit@5"] < before["metrics"]["hit@5"]
    assert after["version"]["id"] != before["version"]["id"]
    shown = loaded.run("runs", "show", after["id"]).out
    assert "119 shared, 1 changed" in shown
    assert "regressed" not in shown


def test_another_k_or_level_has_a_history_of_its_own(loaded: Project) -> None:
    for options in ((), ("--level", "document")):
        (run,) = evaluate(loaded, "fulltext", k=6, options=options)
        assert run["verdict"] == "baseline"
    (run,) = evaluate(loaded, "fulltext", k=7)
    assert run["verdict"] == "baseline"
    (run,) = evaluate(loaded, "fulltext", k=6)
    assert run["verdict"] == "ok"


def test_only_what_was_asked_for_is_run_and_a_variant_under_its_own_name(loaded: Project) -> None:
    exact, vector = evaluate(loaded, "vector-exact", "vector", k=8)
    assert (exact["strategy"], vector["strategy"]) == ("vector-exact", "vector")
    assert exact["batch"] == vector["batch"]
    assert exact["settings"]["strategy"]["exact"]
    assert not vector["settings"]["strategy"]["exact"]
    listed = loaded.json_rows("runs", "list", "--strategy", "vector-exact")
    assert [run["id"] for run in listed] == [exact["id"]]


def test_without_waiting_the_run_is_queued_and_its_verdict_is_there_later(loaded: Project) -> None:
    said = loaded.run("eval", "-s", "fulltext", "--k", 9, "--no-wait").out
    newest = loaded.json_rows("runs", "list", "--limit", 1)[0]
    assert f"recallwatch runs show {newest['id']}" in said
    evaluate(loaded, "fulltext", k=9)
    assert loaded.json("runs", "show", newest["id"])["verdict"] == "baseline"


def test_runs_show_lists_what_was_lost_since_which_run(loaded: Project, spoiled: Spoiled) -> None:
    regressed, first = spoiled.report["runs"][0], spoiled.before[0]
    shown = loaded.run("runs", "show", regressed["id"], "--lost").out
    assert f"lost since run {first['id']}" in shown
    assert guides.THINGS[0] in shown
    shown = loaded.run("runs", "show", first["id"], "--lost").out
    assert "lost (no run to compare with): none" in shown


def test_runs_show_gives_what_eval_gave(loaded: Project, spoiled: Spoiled) -> None:
    for run in spoiled.report["runs"]:
        assert loaded.json("runs", "show", run["id"]) == run


def evaluate(
    project: Project, *strategies: str, k: int, options: Sequence[object] = ()
) -> list[Record]:
    return project.evaluate(*strategies, options=("--k", k, *options))


def _questions_with_a_hit(export: list[Record]) -> set[str]:
    return {row["question"] for row in export if row["metrics"]["hit@12"]}


def import_set(project: Project, name: str, questions: Sequence[Record]) -> None:
    project.run("golden", "import", project.write(f"{name}.jsonl", questions), "--set", name)
