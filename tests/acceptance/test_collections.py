"""Five real collections, from their files to scores: loaded, imported, evaluated, exported."""

import gzip
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wordllama

from cli.embedded.stack import Servers
from pipeline.embedding.local import MAX_CHARACTERS
from pipeline.scoring import Measure
from pipeline.types import document_of
from tests.acceptance.command import Project, Record
from tests.acceptance.conftest import standing_project
from tests.shared import COLLECTIONS, Collection, collection, needs_shared
from tests.unit.pipeline.scoring.oracle import SHARED_NAMES, trec_eval

pytestmark = needs_shared

STRATEGIES = {"vector", "fulltext", "hybrid"}
K = 10
CUTOFFS = (1, 3, 5, 10)

COUNTS = {
    "anthropic-docs-en": {"chunks": 232, "scored": 100, "ineligible": 0, "repeated": 0},
    "cranfield-en": {"chunks": 1400, "scored": 225, "ineligible": 0, "repeated": 0},
    "eshop-en": {"chunks": 101, "scored": 10, "ineligible": 0, "repeated": 0},
    "faquad-pt": {"chunks": 249, "scored": 898, "ineligible": 0, "repeated": 2},
    "mtrag-un-en": {"chunks": 1152, "scored": 332, "ineligible": 171, "repeated": 4},
}
"""From each SOURCE.md: mtrag's 175 questions without an expected chunk hold 4 repeats."""


@dataclass(frozen=True)
class Evaluated:
    """A collection, loaded, imported and evaluated, and the export of each run."""

    name: str
    files: Collection
    project: Project
    loaded: Record
    imported: Record
    runs: list[Record]
    exports: list[list[Record]]


@pytest.fixture(scope="module", params=COLLECTIONS)
def evaluated(request: pytest.FixtureRequest, servers: Servers) -> Iterator[Evaluated]:
    files = collection(request.param)
    with standing_project(servers) as project:
        project.write_settings('[strategies.vector-exact]\nkind = "vector"\nexact = true\n')
        loaded = project.json("corpus", "load", files.chunks)
        imported = project.json("golden", "import", files.golden)
        runs = project.json("eval", "--k", K)["runs"]
        exports = [project.export(run["id"]) for run in runs]
        yield Evaluated(request.param, files, project, loaded, imported, runs, exports)


def test_each_question_has_the_metrics_that_trec_eval_gives_its_ranking(
    evaluated: Evaluated,
) -> None:
    assert {run["strategy"] for run in evaluated.runs} == STRATEGIES
    for export in evaluated.exports:
        assert_as_trec_eval(export)


def test_a_runs_means_are_the_means_of_its_questions(evaluated: Evaluated) -> None:
    for run, export in zip(evaluated.runs, evaluated.exports, strict=True):
        assert_means(run, export)


def test_as_many_questions_are_scored_as_the_source_says(evaluated: Evaluated) -> None:
    counts = COUNTS[evaluated.name]
    assert evaluated.loaded["total"] == counts["chunks"]
    assert evaluated.imported["repeated"] == counts["repeated"]
    for run, export in zip(evaluated.runs, evaluated.exports, strict=True):
        outcomes = Counter(row["outcome"] for row in export)
        for outcome in ("scored", "failed", "ineligible"):
            assert outcomes[outcome] == run[outcome] == counts.get(outcome, 0)
        assert run["questions"] == len(export)
        assert run["verdict"] == "baseline"


def test_a_run_is_scored_against_the_files_judgments(evaluated: Evaluated) -> None:
    in_file = Counter({_judgments(line): 1 for line in read_lines(evaluated.files.golden)})
    for export in evaluated.exports:
        assert Counter(_judgments(row) for row in export) == in_file
        assert not any(row["missing"] for row in export)


def test_a_ranking_holds_distinct_chunks_with_falling_scores(evaluated: Evaluated) -> None:
    known = {_key(chunk) for chunk in read_lines(evaluated.files.chunks)}
    for export in evaluated.exports:
        for row in export:
            assert len(set(row["retrieved"])) == len(row["retrieved"]) <= K
            assert known.issuperset(row["retrieved"])
            assert row["scores"] == sorted(row["scores"], reverse=True)


@pytest.mark.parametrize("evaluated", ["mtrag-un-en"], indirect=True)
def test_a_question_finds_chunks_of_its_own_tenant_only(evaluated: Evaluated) -> None:
    tenant_of = {_key(chunk): chunk["tenant"] for chunk in read_lines(evaluated.files.chunks)}
    for run, export in zip(evaluated.runs, evaluated.exports, strict=True):
        assert {row["tenant"] for row in export} == {"clapnq", "cloud", "fiqa", "govt"}
        for row in export:
            assert {tenant_of[key] for key in row["retrieved"]} <= {row["tenant"]}
        by_tenant = run["by_tenant"].values()
        assert sum(group["scored"] for group in by_tenant) == run["scored"]


@pytest.mark.parametrize("evaluated", ["mtrag-un-en"], indirect=True)
def test_a_tenants_search_fills_k_wherever_the_tenant_has_as_many_chunks(
    evaluated: Evaluated,
) -> None:
    vector = next(run for run in evaluated.runs if run["strategy"] == "vector")
    assert vector["facts"]["underfilled"] == []
    export = evaluated.exports[evaluated.runs.index(vector)]
    assert {len(row["retrieved"]) for row in export} == {K}


@pytest.mark.parametrize("evaluated", ["anthropic-docs-en"], indirect=True)
def test_at_document_level_sections_count_as_their_page(evaluated: Evaluated) -> None:
    runs = evaluated.project.json("eval", "--k", K, "--level", "document")["runs"]
    assert {run["verdict"] for run in runs} == {"baseline"}, "chunk-level runs are not comparable"
    pages = {str(chunk["document_id"]) for chunk in read_lines(evaluated.files.chunks)}
    expected = {
        line["question"]: {document_of(key): 1 for key in line["expected"]}
        for line in read_lines(evaluated.files.golden)
    }
    for run in runs:
        export = evaluated.project.export(run["id"])
        assert {row["question"]: row["expected"] for row in export} == expected
        assert all(pages.issuperset(row["retrieved"]) for row in export)
        assert all(len(set(row["retrieved"])) == len(row["retrieved"]) for row in export)
        assert_as_trec_eval(export)
        assert_means(run, export)


@pytest.mark.parametrize("evaluated", ["anthropic-docs-en"], indirect=True)
def test_exact_vector_search_ranks_as_numpy_does(evaluated: Evaluated) -> None:
    run = evaluated.project.json("eval", "--k", K, "--strategy", "vector-exact")["runs"][0]
    chunks = read_lines(evaluated.files.chunks)
    vectors = _unit_vectors([chunk["content"] for chunk in chunks])
    for row in evaluated.project.export(run["id"]):
        (question,) = _unit_vectors([row["question"]])
        similarity = dict(zip(map(_key, chunks), vectors @ question, strict=True))
        best = sorted(similarity.values(), reverse=True)[:K]
        assert row["scores"] == pytest.approx(best, abs=1e-5)
        assert row["scores"] == pytest.approx(
            [similarity[key] for key in row["retrieved"]], abs=1e-5
        )


def assert_as_trec_eval(export: list[Record]) -> None:
    """Compare every metric at every cutoff with trec_eval's on the exported rankings."""
    scored = [row for row in export if row["outcome"] == "scored"]
    assert scored
    for row in export:
        assert (row["outcome"] == "scored") == all(v is not None for v in row["metrics"].values())
    expected = [row["expected"] for row in scored]
    rankings = [row["retrieved"] for row in scored]
    for measure in (Measure(name, cutoff) for name in SHARED_NAMES for cutoff in CUTOFFS):
        ours = [row["metrics"][str(measure)] for row in scored]
        assert ours == pytest.approx(trec_eval(measure, expected, rankings), abs=1e-9), measure


def assert_means(run: Record, export: list[Record]) -> None:
    scored = [row["metrics"] for row in export if row["outcome"] == "scored"]
    means = {name: math.fsum(row[name] for row in scored) / len(scored) for name in scored[0]}
    assert run["metrics"] == pytest.approx(means, abs=1e-12)


def read_lines(path: Path) -> list[Record]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _judgments(record: Record) -> tuple[str, str | None, frozenset[tuple[str, int]]]:
    """Return what makes a golden line a question of its own, from the file or from an export."""
    return record["question"], record.get("tenant"), frozenset(record["expected"].items())


def _key(chunk: Record) -> str:
    return f"{chunk['document_id']}:{chunk['chunk_index']}"


def _unit_vectors(texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Embed with the library itself, nothing of ours between; one text is longer than is read."""
    model = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )
    vectors = np.stack([model.embed([text[:MAX_CHARACTERS]])[0] for text in texts])
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
