"""`recallwatch compare` and `baseline`, on runs of a corpus that was spoiled meanwhile."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.acceptance import guides
from tests.acceptance.command import Project, Record

HEADLINE = ("hit@5", "recall@5", "precision@5", "mrr@5", "map@5", "ndcg@5")


@dataclass(frozen=True)
class Runs:
    """Two strategies of one batch, and vector search over spoiled vectors."""

    vector: int
    fulltext: int
    spoiled: int
    exports: dict[int, list[Record]]

    def differences(self, before: int, after: int, metric: str) -> NDArray[np.float64]:
        """Return what each question's metric changed by."""
        was, now = (
            np.array([row["metrics"][metric] for row in self.exports[run_id]], dtype=np.float64)
            for run_id in (before, after)
        )
        return np.subtract(now, was)


@pytest.fixture(scope="module")
def runs(project: Project) -> Runs:
    project.run("corpus", "load", project.write("chunks.jsonl", guides.chunks()))
    project.run("golden", "import", project.write("golden.jsonl", guides.questions()))
    vector, fulltext = project.evaluate("vector", "fulltext")
    project.run("corpus", "load", project.write("spoiled.jsonl", guides.spoiled_chunks()))
    (spoiled,) = project.evaluate("vector", code=1)
    vector_id, fulltext_id, spoiled_id = ids = [run["id"] for run in (vector, fulltext, spoiled)]
    exports = {run_id: project.export(run_id) for run_id in ids}
    return Runs(vector_id, fulltext_id, spoiled_id, exports)


def by_metric(compared: Record) -> dict[str, Record]:
    return {change["metric"]: change for change in compared["changes"]}


@pytest.mark.parametrize("pair", [("fulltext", "vector"), ("vector", "spoiled")])
def test_the_figures_are_scipys_on_the_exported_questions(
    project: Project, runs: Runs, pair: tuple[str, str]
) -> None:
    before, after = (getattr(runs, name) for name in pair)
    compared = project.json("compare", before, after)

    assert compared["reference"] == before
    assert compared["pairing"]["shared"] == len(guides.questions())
    for metric in HEADLINE:
        change, raw = by_metric(compared)[metric], runs.differences(before, after, metric)
        assert change["difference"] == pytest.approx(raw.mean(), abs=1e-12)
        interval = stats.bootstrap(
            (raw,), np.mean, method="percentile", n_resamples=10_000, batch=1000,
            rng=np.random.default_rng(7),
        ).confidence_interval  # fmt: skip
        # Bounds of 10,000 resamples differ from draw to draw by a few hundredths of their width.
        width = interval.high - interval.low
        assert change["interval"] == pytest.approx(list(interval), abs=0.05 * width)
        p = stats.permutation_test(
            (raw,), np.mean, permutation_type="samples", vectorized=True, n_resamples=10_000,
            batch=1000, rng=np.random.default_rng(7),
        ).pvalue  # fmt: skip
        assert change["p"] == pytest.approx(p, abs=max(5 * np.sqrt(p * (1 - p) / 10_000), 3e-4))


def test_what_was_lost_and_won_is_counted_in_full_listed_up_to_the_limit_and_the_same_twice(
    project: Project, runs: Runs
) -> None:
    there = project.json("compare", runs.vector, runs.spoiled, "--limit", 200)
    assert project.json("compare", runs.vector, runs.spoiled, "--limit", 200) == there
    back = project.json("compare", runs.spoiled, runs.vector, "--limit", 2)

    hits = runs.differences(runs.vector, runs.spoiled, "hit@5")
    assert (there["lost"], there["won"]) == ((hits < 0).sum(), (hits > 0).sum())
    assert (back["lost"], back["won"]) == (there["won"], there["lost"])
    assert {row["position"] for row in there["lost_questions"]} == {*np.flatnonzero(hits < 0)}
    assert len(back["won_questions"]) == 2
    for row in there["lost_questions"]:
        was, now = (runs.exports[n][row["position"]] for n in (runs.vector, runs.spoiled))
        assert (row["question"], row["first_rank_before"]) == (was["question"], was["first_rank"])
        assert row["entered"] == [k for k in now["retrieved"] if k not in was["retrieved"]]
        assert row["left"] == [k for k in was["retrieved"] if k not in now["retrieved"]]


def test_people_get_a_table_and_pull_requests_markdown(project: Project, runs: Runs) -> None:
    shown = project.run("compare", runs.vector, runs.spoiled).out
    lost = (runs.differences(runs.vector, runs.spoiled, "hit@5") < 0).sum()
    assert f": 120 shared; hits lost {lost}, won 0" in shown
    assert "95 % interval" in shown
    assert max(map(len, shown.splitlines())) <= 80

    written = project.run("compare", runs.vector, runs.spoiled, "--markdown", "--limit", 3).out
    lines = written.splitlines()
    assert lines[0].startswith(f"| metric | run {runs.vector} | run {runs.spoiled} |")
    assert [line.split()[1] for line in lines[2:8]] == [*HEADLINE]
    assert sum(line.startswith("- ") for line in lines) == 3


def test_what_cannot_be_compared_is_refused_in_one_line(project: Project, runs: Runs) -> None:
    queued = project.json("eval", "--strategy", "fulltext", "--k", 4, "--no-wait")["runs"][0]

    assert project.fails("compare", runs.fulltext, queued) == (
        f"run {runs.fulltext} has k 5 and run {queued} has 4: they cannot be compared"
    )
    assert "there is no run 999" in project.fails("compare", runs.vector, 999)


def test_a_pinned_run_speaks_where_the_last_one_is_silent(project: Project, runs: Runs) -> None:
    said = project.run("baseline", "pin", runs.vector).out
    assert said == f"run {runs.vector} is the baseline of default, vector, k=5, chunks\n"
    (pin,) = project.json_rows("baseline", "list")
    place = (pin["run"], pin["set"], pin["strategy"], pin["k"], pin["level"])
    assert place == (runs.vector, "default", "vector", 5, "chunk")

    (run,) = project.evaluate("vector", code=1)

    assert (run["verdict"], run["compared_to"], run["baseline_run"]) == (
        ("regressed", runs.spoiled, runs.vector)
    )
    assert {change["difference"] for change in run["comparison"]["changes"]} == {0}
    fell = by_metric(run["baseline_comparison"])["recall@5"]
    assert fell == by_metric(project.json("compare", runs.vector, run["id"]))["recall@5"]
    shown = " ".join(project.run("runs", "show", run["id"]).out.split())
    assert "against the baseline: net 40 of 120 questions lost" in shown
    assert f"compared to the baseline, run {runs.vector}: 120 shared" in shown

    project.run("baseline", "unpin", runs.vector)
    assert project.json_rows("baseline", "list") == []
    assert "is not pinned" in project.fails("baseline", "unpin", runs.vector)
