"""Keys that are still there but stand for other texts: the trap of re-chunking."""

from dataclasses import replace

import pytest

from pipeline.errors import CorpusError
from pipeline.settings import EvalSettings
from pipeline.types import Kind, Question
from pipeline.verdict.settings import GateRules, GateSettings
from tests.integration.db.building import execute, fetch, import_set
from tests.integration.workers.conftest import TEXTS, Opener
from tests.integration.workers.rechunking import (
    evidence_of,
    joined,
    rewrite,
    set_text,
    shifted,
    stale_of,
)
from tests.integration.workers.working import (
    Bell,
    finish_runs,
    run_of,
    start_runs,
)
from workers import calibrating
from workers.context import Context
from workers.enqueue import Request, start

WAITING = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""

FULLTEXT = Request(["fulltext"])


@pytest.mark.usefixtures("bell")
def test_after_rechunking_with_the_same_ids_nothing_starts(ctx: Context) -> None:
    start_runs(ctx, "fulltext")
    rewrite(ctx, shifted())

    with pytest.raises(CorpusError) as caught:
        start_runs(ctx, "fulltext")

    assert str(caught.value) == (
        "7 of 7 questions have no usable expected key (100.0%; [gate] max_ineligible is 50.0%):"
        " 3 of 9 expected keys are not in the corpus, as 'gone:0'; 6 of 9 expected keys stand for"
        " another text than was judged, as 'battery:0', and are not scored. Was the corpus"
        " re-chunked? See: recallwatch golden check, then recallwatch golden remap, or evaluate"
        " documents: recallwatch eval --level document"
    )
    assert fetch(ctx.database, "SELECT count(*) FROM recallwatch.batch") == [1]


@pytest.mark.usefixtures("bell")
def test_at_document_level_texts_do_not_matter(ctx: Context) -> None:
    start_runs(ctx, "fulltext")
    rewrite(ctx, shifted())

    started = start(ctx, replace(FULLTEXT, level="document"))

    assert (started.keys.stale, started.keys.ineligible) == ((), 1)


@pytest.mark.usefixtures("bell")
def test_documents_are_not_offered_where_they_are_gone(ctx: Context) -> None:
    renamed = {f"new-{key}": text for key, text in TEXTS.items()}
    rewrite(ctx, renamed | {"reset:0": TEXTS["reset:0"]})

    with pytest.raises(CorpusError, match="5 of 7 questions have no usable") as caught:
        start_runs(ctx, "fulltext")

    assert "--level document" not in str(caught.value)
    assert evidence_of(ctx) == {}


@pytest.mark.parametrize(
    ("change", "offered"),
    [
        ("UPDATE recallwatch_corpus.chunks SET chunk_index = chunk_index + 100", True),
        ("UPDATE recallwatch_corpus.chunks SET document_id = 'new/' || document_id", False),
    ],
)
def test_without_a_single_key_documents_are_offered_where_they_are_there(
    ctx: Context, bell: Bell, change: str, offered: bool
) -> None:
    execute(ctx.database, change)

    with pytest.raises(CorpusError, match="none of the 9 expected keys") as caught:
        start_runs(ctx, "fulltext")

    assert "see: recallwatch golden check" in str(caught.value)
    assert ("recallwatch eval --level document" in str(caught.value)) is offered
    assert bell.messages == []


@pytest.mark.parametrize(("most", "starts"), [(0.14, False), (1 / 7, True), (0.2, True)])
def test_the_gate_says_how_many_questions_may_lack_a_key(
    open_context: Opener, bell: Bell, most: float, starts: bool
) -> None:
    ctx = open_context(gate=GateSettings(max_ineligible=most))

    if starts:
        start_runs(ctx, "fulltext")
    else:
        with pytest.raises(CorpusError, match="1 of 7 questions have no usable expected key"):
            start_runs(ctx, "fulltext")
    assert bool(bell.messages) is starts


@pytest.mark.usefixtures("bell")
def test_a_batch_starts_where_one_of_its_strategies_may_be_measured(open_context: Opener) -> None:
    gate = GateSettings(max_ineligible=0, strategies={"hybrid": GateRules(max_ineligible=0.5)})
    ctx = open_context(gate=gate)

    assert len(start_runs(ctx, "fulltext", "hybrid").run_ids) == 2
    with pytest.raises(CorpusError):
        start_runs(ctx, "fulltext")


@pytest.mark.usefixtures("bell")
def test_a_key_that_is_only_there_for_a_low_grade_does_not_make_a_question_usable(
    open_context: Opener,
) -> None:
    ctx = open_context(
        eval=EvalSettings(k=3, shard_size=3, relevance_threshold=2),
        gate=GateSettings(max_ineligible=0.5),
    )
    some = [Question(f"q{n}", {"reset:0": 2}) for n in range(3)]
    import_set(ctx.database, [*some, Question("q", {"gone:0": 2, "reset:1": 1})], replace=True)

    started = start_runs(ctx, "fulltext")

    assert (started.keys.ineligible, started.keys.answerable) == (1, 4)


@pytest.mark.usefixtures("bell")
def test_unanswerable_questions_are_not_counted(open_context: Opener) -> None:
    ctx = open_context(gate=GateSettings(max_ineligible=0.5))
    asked = [Question(f"Who is number {n}?", {}, kind=Kind.UNANSWERABLE) for n in range(9)]
    import_set(
        ctx.database,
        [*asked, Question("a", {"reset:0": 1}), Question("b", {"gone:0": 1})],
        replace=True,
    )

    assert start_runs(ctx, "fulltext").keys.ineligible == 1


def test_nobody_waits_for_a_schedule_so_its_runs_end_unmeasured(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "fulltext")
    rewrite(ctx, shifted())

    started = start(ctx, replace(FULLTEXT, trigger="schedule"))
    bell.work(ctx)

    run = run_of(ctx, started.run_ids[0])
    assert (run.status, run.verdict, run.n_scored) == ("completed", "unmeasured", 0)
    assert run.reasons is not None
    assert "recallwatch golden check" in run.reasons[0]
    assert evidence_of(ctx)["reset:0"] == TEXTS["reset:0"]


@pytest.mark.usefixtures("bell")
def test_where_chunks_were_joined_those_that_hold_the_text_still_are_scored(ctx: Context) -> None:
    start_runs(ctx, "fulltext")
    rewrite(ctx, joined())

    started = start(ctx, replace(FULLTEXT, trigger="reindex"))

    assert started.keys.gone == 5
    assert stale_of(started) == []


def test_a_calibration_is_refused_and_measured_by_the_same_keys(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "fulltext")
    set_text(ctx, "reset:1", "Bicycles are rented by the hour at the northern gate of the park.")
    choice = calibrating.choose(ctx.settings, FULLTEXT, reindex=False)
    plan = calibrating.plan(ctx, choice, pairs=1)

    assert [(each.position, each.key) for each in plan.keys.stale] == [(0, "reset:1")]
    assert len(calibrating.measure_rounds(ctx, plan, lambda _: None)) == 1
    rewrite(ctx, shifted())
    with pytest.raises(CorpusError, match="no usable expected key"):
        calibrating.plan(ctx, choice, pairs=1)
