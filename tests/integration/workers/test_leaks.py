"""Another tenant's chunks among the results: counted, told, and never passed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from db import baselines, results, runs
from db.models import Run
from db.session import Database
from pipeline.errors import UsageError
from pipeline.retrieval.strategies import (
    BUILT_IN,
    HybridStrategy,
    RerankStrategy,
    SqlStrategy,
    Strategy,
)
from pipeline.types import Question
from tests.integration.db.building import execute, import_set
from tests.integration.workers.conftest import GOLDEN, Opener
from tests.integration.workers.working import Bell, finish_runs, rows_of
from workers.context import Context

EVERYTHING = """SELECT document_id, chunk_index FROM recallwatch_corpus.chunks
WHERE :question <> '' AND (:tenant IS NULL OR true) ORDER BY 1, 2 LIMIT :k"""

ACME = Question("Within how many days can I return goods?", {"return:0": 1}, tenant="acme")


def with_strategies(open_context: Opener, **named: Strategy) -> Context:
    return open_context(strategies={**BUILT_IN, **named})


def own(tenants: dict[str, str], db: Database) -> None:
    """Give documents to tenants."""
    for document, tenant in tenants.items():
        execute(
            db,
            "UPDATE recallwatch_corpus.chunks SET tenant = :tenant WHERE document_id = :document",
            {"tenant": tenant, "document": document},
        )


@pytest.fixture
def shared(db: Database) -> None:
    """Give most documents to one tenant, and ask for another."""
    own({"battery": "globex", "reset": "globex"}, db)
    import_set(db, [ACME, *(q for q in GOLDEN if q.tenant is None)], replace=True)


def leaked(ctx: Context, run: Run) -> list[list[str]]:
    with ctx.database.begin() as session:
        return [row.leaked for row in results.details(session, run.id)]


def findings(run: Run) -> list[tuple[Any, Any]]:
    return [(each["rule"], each["verdict"]) for each in run.findings or ()]


@pytest.mark.usefixtures("shared")
def test_results_of_another_tenant_are_counted_and_fail_the_run(
    open_context: Opener, bell: Bell
) -> None:
    ctx = with_strategies(open_context, leaky=SqlStrategy(statement=EVERYTHING))
    [run] = finish_runs(ctx, bell, "leaky")

    assert (run.status, run.verdict) == ("completed", "regressed")
    assert findings(run)[0] == ("leak", "regressed")
    assert run.facts is not None
    assert run.facts["leaks"] == {
        "results": 3, "questions": 1, "key": "battery:0", "question": ACME.text, "tenant": "acme",
    }  # fmt: skip
    assert run.reasons is not None
    assert run.reasons[0] == (
        "another tenant's chunks came back for 1 question (3 in all): battery:0 for tenant acme,"
        " asked 'Within how many days can I return goods?'"
    )
    assert sorted(map(len, leaked(ctx, run))) == [0] * 7 + [3]


@pytest.mark.usefixtures("shared")
def test_an_arm_that_leaks_makes_its_hybrid_leak(open_context: Opener, bell: Bell) -> None:
    ctx = with_strategies(
        open_context,
        leaky=SqlStrategy(statement=EVERYTHING),
        both=HybridStrategy(arms={"leaky": 1.0, "vector": 1.0}),
    )
    [run] = finish_runs(ctx, bell, "both")
    assert findings(run)[0] == ("leak", "regressed")


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("strategy", ["vector", "fulltext", "hybrid"])
def test_our_own_searches_leak_nothing(ctx: Context, bell: Bell, strategy: str) -> None:
    [run] = finish_runs(ctx, bell, strategy)
    assert run.verdict == "baseline"
    assert not any(leaked(ctx, run))


@pytest.mark.usefixtures("shared")
def test_a_strategy_that_ignores_tenants_leaks_nothing_as_it_says_so(
    open_context: Opener, bell: Bell
) -> None:
    ctx = with_strategies(open_context, all=SqlStrategy(statement=EVERYTHING, tenant="ignore"))
    [run] = finish_runs(ctx, bell, "all")
    assert run.verdict == "baseline"


def test_a_chunk_of_nobody_is_no_leak(open_context: Opener, bell: Bell, db: Database) -> None:
    execute(db, "UPDATE recallwatch_corpus.chunks SET tenant = NULL")
    ctx = with_strategies(open_context, open=SqlStrategy(statement=EVERYTHING))
    [run] = finish_runs(ctx, bell, "open")
    assert run.verdict == "baseline"


@pytest.mark.usefixtures("shared")
def test_a_run_that_leaks_and_cannot_be_measured_is_told_for_its_leaks(
    open_context: Opener, bell: Bell
) -> None:
    statement = EVERYTHING.replace("true)", "true) AND 1 / (:question NOT LIKE 'How%')::int > 0")
    leaky = {**BUILT_IN, "leaky": SqlStrategy(statement=statement)}
    gate = open_context().settings.gate.model_copy(update={"max_failed": 0.01})
    [run] = finish_runs(open_context(strategies=leaky, gate=gate), bell, "leaky")
    assert run.verdict == "regressed"
    assert findings(run) == [("leak", "regressed"), ("max_failed", "unmeasured")]


def test_results_that_the_corpus_does_not_know_are_counted(
    open_context: Opener, bell: Bell
) -> None:
    strange = SqlStrategy(
        statement="SELECT k AS key FROM unnest(ARRAY['reset:0', 'reset-0', '7']) AS k"
        " WHERE :question <> '' LIMIT :k",
        tenant="ignore",
    )
    ctx = with_strategies(open_context, strange=strange)
    run, ours = finish_runs(ctx, bell, "strange", "fulltext")
    assert run.facts is not None
    assert run.facts["unknown_keys"] == 2 * len(rows_of(ctx, run.id))
    assert ours.facts is not None
    assert ours.facts["unknown_keys"] == 0


def test_a_reranker_hides_no_leak_of_its_candidates(
    open_context: Opener, bell: Bell, db: Database, tmp_path: Path
) -> None:
    own({"battery": "globex", "reset": "globex"}, db)
    import_set(db, [ACME, *(q for q in GOLDEN if q.tenant is None)], replace=True)
    (tmp_path / "own_order.py").write_text(
        "def last_first(question, documents):\n    return range(len(documents))\n"
    )
    second = RerankStrategy.model_validate({
        "candidates": "leaky",
        "reranker": {"kind": "python", "path": "own_order:last_first"},
    })  # fmt: skip
    ctx = open_context(
        strategies={**BUILT_IN, "leaky": SqlStrategy(statement=EVERYTHING), "second": second},
        python_folder=tmp_path,
    )
    [run] = finish_runs(ctx, bell, "second")
    assert findings(run)[0] == ("leak", "regressed")


def test_a_strategy_beside_one_that_ignores_tenants_is_looked_at(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    own({"battery": "globex", "reset": "globex"}, db)
    import_set(db, [ACME, *(q for q in GOLDEN if q.tenant is None)], replace=True)
    ctx = with_strategies(
        open_context,
        leaky=SqlStrategy(statement=EVERYTHING),
        all=SqlStrategy(statement=EVERYTHING, tenant="ignore"),
        both=HybridStrategy(arms={"leaky": 1.0, "all": 1.0}),
    )
    [run] = finish_runs(ctx, bell, "both")
    assert findings(run)[0] == ("leak", "regressed")


def test_a_run_that_leaked_is_no_reference_and_cannot_be_pinned(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    own({"battery": "globex", "reset": "globex"}, db)
    import_set(db, [ACME, *(q for q in GOLDEN if q.tenant is None)], replace=True)
    good = SqlStrategy(statement=EVERYTHING.replace("OR true", "OR tenant = :tenant"))
    first, leaky, fixed = (
        finish_runs(with_strategies(open_context, mine=each), bell, "mine")[0]
        for each in (good, SqlStrategy(statement=EVERYTHING), good)
    )
    assert [run.verdict for run in (first, leaky, fixed)] == ["baseline", "regressed", "ok"]
    assert fixed.compared_to == first.id
    with (
        db.begin() as session,
        pytest.raises(UsageError, match="returned another tenant's chunks: nothing to hold runs"),
    ):
        baselines.pin(session, runs.get(session, leaky.id), by=None)


@pytest.mark.parametrize(("kind", "stored", "asked"), [
    ("integer", "7", "07"),
    ("uuid", "6f1c0a52-9f5e-4c9b-8a41-0d9d5a3c1b77", "6F1C0A52-9F5E-4C9B-8A41-0D9D5A3C1B77"),
    ("char(10)", "acme", "acme  "),
])  # fmt: skip
def test_a_tenant_is_the_same_in_another_spelling_of_its_type(
    ctx: Context, bell: Bell, db: Database, kind: str, stored: str, asked: str
) -> None:
    execute(db, "UPDATE recallwatch_corpus.chunks SET tenant = :tenant", {"tenant": stored})
    execute(db, "ALTER TABLE recallwatch_corpus.chunks ALTER COLUMN tenant"
                f" TYPE {kind} USING tenant::{kind}")  # fmt: skip
    import_set(db, [replace(each, tenant=asked) for each in GOLDEN[:4]], replace=True)
    [run] = finish_runs(ctx, bell, "vector")
    assert (run.verdict, run.facts and run.facts["leaks"]) == ("baseline", None)
    assert run.facts is not None
    assert run.facts["underfilled"] == []
