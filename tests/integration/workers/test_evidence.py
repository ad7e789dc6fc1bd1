"""What was judged is kept, and keys that stand for other texts by now are not scored."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Never

import pytest

from db import edits
from pipeline.types import EditAction, Question
from tests.integration.db.building import execute, fetch, import_set
from tests.integration.workers.conftest import GOLDEN, TEXTS, Opener
from tests.integration.workers.rechunking import evidence_of, rewrite, set_text, shifted, stale_of
from tests.integration.workers.working import (
    Bell,
    finish_by_sweeping,
    finish_runs,
    rows_of,
    run_of,
    start_runs,
)
from workers import evidence as evidence_of_workers
from workers import remapping, resuming
from workers.context import Context
from workers.enqueue import Request, start
from workers.reindexing import reindexed

WAITING = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""

FULLTEXT = Request(["fulltext"])


@pytest.mark.usefixtures("bell")
def test_a_start_keeps_the_texts_of_the_keys_that_are_there(ctx: Context) -> None:
    start_runs(ctx, "fulltext")

    expected = {key for question in GOLDEN for key in question.expected}
    assert evidence_of(ctx) == {key: text for key, text in TEXTS.items() if key in expected}
    assert fetch(ctx.database, "SELECT count(*) FROM recallwatch.evidence") == [6]


@pytest.mark.usefixtures("bell")
def test_a_text_that_was_kept_stays_when_the_corpus_changes(ctx: Context) -> None:
    start_runs(ctx, "fulltext")
    set_text(ctx, "weight:0", TEXTS["weight:0"].replace("four", "five"))

    start_runs(ctx, "fulltext")

    assert evidence_of(ctx)["weight:0"] == TEXTS["weight:0"]


@pytest.mark.usefixtures("bell")
def test_an_evaluation_by_documents_takes_no_text_for_what_was_judged(ctx: Context) -> None:
    start(ctx, replace(FULLTEXT, level="document"))

    assert evidence_of(ctx) == {}


def test_a_stale_key_is_no_hit_and_no_miss(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "fulltext")
    # The battery's two chunks have changed places: both keys are there, for the other text.
    set_text(ctx, "battery:0", TEXTS["battery:1"])
    set_text(ctx, "battery:1", TEXTS["battery:0"])

    started = start(ctx, FULLTEXT)
    bell.work(ctx)

    assert stale_of(started) == [
        (1, "battery:0", "moved"), (2, "battery:1", "moved"),
    ]  # fmt: skip
    results = {row[0]: row for row in rows_of(ctx, started.run_ids[0])}
    assert [results[position][1] for position in range(4)] == [
        "scored", "ineligible", "ineligible", "scored",
    ]  # fmt: skip
    assert (results[1][6], results[2][6]) == (["battery:0"], ["battery:1"])
    run = run_of(ctx, started.run_ids[0])
    assert (run.n_scored, run.n_ineligible, run.status) == (4, 4, "completed")
    assert started.warnings[1] == (
        "2 of 9 expected keys stand for another text than was judged, as 'battery:0', and are not"
        " scored; see: recallwatch golden check"
    )


def test_beside_a_stale_key_a_live_one_is_scored_alone(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "fulltext")
    set_text(ctx, "reset:1", "Bicycles are rented by the hour at the northern gate of the park.")

    [run] = finish_runs(ctx, bell, "fulltext")

    row = rows_of(ctx, run.id)[0]
    assert (row[1], row[6]) == ("scored", ["reset:1"])
    recall = run.measures.index("recall@3")
    assert row[4][recall] == 1


def test_an_exact_shard_leaves_stale_keys_out_too(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "vector")
    set_text(ctx, "reset:1", "Bicycles are rented by the hour at the northern gate of the park.")

    [run] = finish_runs(ctx, bell, "vector")

    recall = run.measures.index("recall@3")
    [measured] = fetch(
        ctx.database,
        "SELECT measured FROM recallwatch.exact_result WHERE run_id = :run AND position = 0",
        {"run": run.id},
    )
    assert measured[recall] == 1


@pytest.mark.parametrize(
    "edited",
    [
        "The parcel weighs fuor kilograms without its packaging.",
        "The parcel weighs nine kilograms without its packaging.",
        "The  parcel weighs four kilograms\nwithout its packaging.",
        "The parcel weighs four kilograms without its packaging. Its box weighs two more.",
    ],
)
@pytest.mark.usefixtures("bell")
def test_a_small_edit_is_scored_as_before(ctx: Context, edited: str) -> None:
    start_runs(ctx, "fulltext")
    set_text(ctx, "weight:0", edited)

    started = start_runs(ctx, "fulltext")

    assert stale_of(started) == []
    assert len(started.warnings) == 1


@pytest.mark.usefixtures("bell")
def test_evidence_belongs_to_the_judgment_not_to_the_key(ctx: Context) -> None:
    start_runs(ctx, "fulltext")
    set_text(ctx, "weight:0", "Bicycles are rented by the hour at the northern gate of the park.")
    import_set(ctx.database, [Question("Where are bicycles rented?", {"weight:0": 1})])

    first, second = start_runs(ctx, "fulltext"), start_runs(ctx, "fulltext")

    assert [(key, state) for _, key, state in stale_of(first)] == [("weight:0", "lost")]
    assert stale_of(second) == stale_of(first)
    assert second.keys.ineligible == 2


def missing_of(ctx: Context, run_id: int) -> list[list[str]]:
    return [row[6] for row in rows_of(ctx, run_id)]


@pytest.mark.parametrize("strategy", ["fulltext", "vector"])
def test_a_corpus_that_is_written_after_the_notice_is_not_scored_against_foreign_texts(
    ctx: Context, bell: Bell, strategy: str
) -> None:
    finish_runs(ctx, bell, strategy)
    started = reindexed(ctx, Request([strategy])).started
    rewrite(ctx, shifted())
    execute(ctx.database, "UPDATE recallwatch.batch SET quiet_until = now() - interval '1s'")

    finish_by_sweeping(ctx, bell)

    assert started.keys.stale == ()
    run = run_of(ctx, started.run_ids[0])
    assert (run.status, run.verdict, run.n_scored) == ("completed", "unmeasured", 0)
    assert missing_of(ctx, run.id)[0] == ["reset:0", "reset:1"]


def test_texts_that_are_back_when_the_runs_start_are_scored(ctx: Context, bell: Bell) -> None:
    [before] = finish_runs(ctx, bell, "fulltext")
    rewrite(ctx, shifted())
    started = start(ctx, replace(FULLTEXT, trigger="schedule"))
    rewrite(ctx, TEXTS)

    bell.work(ctx)

    assert len(started.keys.stale) == 7
    assert run_of(ctx, started.run_ids[0]).n_scored == before.n_scored


def test_a_resumed_run_looks_at_the_texts_of_now(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "fulltext")
    [run_id] = start_runs(ctx, "fulltext").run_ids
    resuming.cancel(ctx, [run_id])
    bell.take()
    resuming.resume(ctx, run_id)
    set_text(ctx, "battery:0", TEXTS["battery:1"])

    bell.work(ctx)

    assert missing_of(ctx, run_id)[1] == ["battery:0"]


def test_a_run_of_before_a_remap_does_not_take_old_keys_for_new_texts(
    ctx: Context, bell: Bell
) -> None:
    finish_runs(ctx, bell, "fulltext")
    [run_id] = start_runs(ctx, "fulltext").run_ids
    rewrite(ctx, shifted())
    remapping.remap(ctx, "default", remapping.check(ctx, "default"), by="ann")

    bell.work(ctx)

    assert "reset:0" in missing_of(ctx, run_id)[0]
    assert missing_of(ctx, run_id)[1] == ["battery:0"]


@pytest.mark.usefixtures("bell")
def test_a_text_that_differs_in_blanks_alone_is_looked_at_closer_once(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_runs(ctx, "fulltext")
    spaced = TEXTS["weight:0"].replace(" ", "  ")
    set_text(ctx, "weight:0", spaced)

    start_runs(ctx, "fulltext")

    assert evidence_of(ctx)["weight:0"] == spaced
    monkeypatch.setattr(evidence_of_workers, "_search", _not_to_be_called)
    start_runs(ctx, "fulltext")


def _not_to_be_called(*_arguments: object) -> Never:
    raise AssertionError


@pytest.mark.usefixtures("bell")
def test_blanks_that_changed_undo_no_edit_and_no_review(ctx: Context) -> None:
    start_runs(ctx, "fulltext")
    [question_id] = fetch(ctx.database, "SELECT question_id FROM recallwatch.judgment"
                                        " WHERE key = 'weight:0'")  # fmt: skip
    with ctx.database.begin() as session:
        before = edits.states(session, [question_id])[question_id]
        edit_id = edits.apply(session, "default", EditAction.CHANGE,
                              {question_id: replace(before, category="x")}, by=None)  # fmt: skip
    set_text(ctx, "weight:0", TEXTS["weight:0"].replace(" ", "  "))
    start_runs(ctx, "fulltext")

    assert edit_id is not None
    with ctx.database.begin() as session:
        assert edits.undo(session, edit_id, by=None) == 1


@pytest.mark.usefixtures("bell")
@pytest.mark.parametrize("rows", [("aa", "zz"), ("zz", "aa")])
def test_of_several_rows_of_a_key_always_the_same_is_kept(ctx: Context, rows: list[str]) -> None:
    execute(ctx.database, "ALTER TABLE recallwatch_corpus.chunks DROP CONSTRAINT chunks_pkey")
    execute(ctx.database, "DELETE FROM recallwatch_corpus.chunks WHERE document_id = 'weight'")
    for content in rows:
        execute(
            ctx.database,
            "INSERT INTO recallwatch_corpus.chunks (document_id, chunk_index, content, language,"
            " text_config, content_hash) VALUES ('weight', 0, :content, 'en', 'english', '')",
            {"content": content},
        )

    start_runs(ctx, "fulltext")

    assert evidence_of(ctx)["weight:0"] == "aa"


@pytest.mark.usefixtures("bell")
def test_an_evaluation_and_a_remap_at_once_both_end(
    ctx: Context, open_context: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_runs(ctx, "fulltext")
    moved = {"weight:0": "Intro.", "weight:1": f"Before. {TEXTS['weight:0']}"}
    rewrite(ctx, TEXTS | moved)
    checked = remapping.check(ctx, "default")
    # Its key is that of the new place: both keep the text of that.
    import_set(ctx.database, [Question("Is it new here?", {"weight:1": 1})])
    kept, go_on, twins = threading.Event(), threading.Event(), remapping._twins

    def wait_and_go_on(*arguments: Any) -> set[int]:  # noqa: ANN401 - of another function
        kept.set()
        assert go_on.wait(20)
        return twins(*arguments)

    monkeypatch.setattr(remapping, "_twins", wait_and_go_on)
    with ThreadPoolExecutor(2) as pool:
        remapped = pool.submit(remapping.remap, ctx, "default", checked, by="ann")
        assert kept.wait(20)
        other = open_context()
        started = pool.submit(start_runs, other, "fulltext")
        while not fetch(ctx.database, WAITING) and not started.done():
            time.sleep(0.01)
        go_on.set()
        assert remapped.result(20).edit_id is not None
        assert started.result(20).run_ids
