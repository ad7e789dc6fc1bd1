"""Keys that follow their texts, as one edit that can be taken back."""

from dataclasses import replace

import pytest

from db import edits, golden_history
from db.golden_history import QuestionDiff
from pipeline.errors import InputError
from pipeline.types import KeyState, Question
from tests.integration.db.building import execute, fetch, import_set, snapshot
from tests.integration.workers.conftest import TEXTS
from tests.integration.workers.rechunking import joined, rewrite, shifted
from tests.integration.workers.working import Bell, start_runs
from workers import locating
from workers.context import Context
from workers.remapping import Checked, Remapped, check, remap


@pytest.fixture
def judged(ctx: Context, bell: Bell) -> Context:
    """Give a context on a set whose judged texts were kept."""
    assert start_runs(ctx, "fulltext").size == 8
    bell.take()
    return ctx


def states(ctx: Context) -> dict[str, str]:
    return {each.key: each.found.state for each in check(ctx, "default")}


def write(ctx: Context, checked: list[Checked] | None = None, *include: KeyState) -> Remapped:
    found = check(ctx, "default") if checked is None else checked
    return remap(ctx, "default", found, include=include, by="me")


def expected(ctx: Context) -> dict[str, dict[str, int]]:
    """Return question -> key -> grade."""
    return dict(fetch(
        ctx.database,
        "SELECT q.text, jsonb_object_agg(j.key, j.grade) FROM recallwatch.question q"
        " JOIN recallwatch.judgment j ON j.question_id = q.id GROUP BY q.id",
    ))  # fmt: skip


def judgments(ctx: Context) -> list[tuple[object, ...]]:
    return fetch(ctx.database, "SELECT * FROM recallwatch.judgment ORDER BY question_id, key")


RESET = "How do I reset the router?"


def test_where_nothing_changed_keys_are_live_or_were_never_there(judged: Context) -> None:
    found = states(judged)

    assert {key for key, state in found.items() if state != "live"} == {
        "gone:0",
        "gone:1",
        "gone:2",
    }
    assert {found[key] for key in ("gone:0", "gone:1", "gone:2")} == {"lost"}
    assert write(judged) == Remapped(None, [], [], [])


def test_the_corpus_is_not_read_where_every_text_is_as_judged(
    judged: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(locating, "each_row")

    assert states(judged)["reset:0"] == "live"


def test_moved_keys_follow_and_bring_their_evidence(judged: Context) -> None:
    rewrite(judged, shifted())

    done = write(judged)

    assert len(done.questions) == 6
    assert expected(judged)[RESET] == {"reset:1": 2, "reset:2": 1}
    assert {key: state for key, state in states(judged).items() if state != "live"} == {
        "gone:0": "lost", "gone:1": "lost", "gone:2": "lost",
    }  # fmt: skip
    assert start_runs(judged, "fulltext").keys.stale == ()


def test_a_remap_shows_in_the_diff_of_versions_and_can_be_taken_back(judged: Context) -> None:
    before, first = judgments(judged), snapshot(judged.database).id
    rewrite(judged, shifted())
    done = write(judged)
    second = snapshot(judged.database).id

    with judged.database.begin() as session:
        found = {each.text: each for each in golden_history.diff(session, first, second)}
        assert edits.recent(session, "default", limit=1)[0].edited_by == "me"
    assert len(found) == 6
    assert found[RESET] == QuestionDiff(
        found[RESET].question_id, "changed", RESET, {},
        {"reset:0": (2, None), "reset:1": (1, 2), "reset:2": (None, 1)},
    )  # fmt: skip

    assert done.edit_id is not None
    with judged.database.begin() as session:
        assert edits.undo(session, done.edit_id, by="me") == 6
    assert judgments(judged) == before
    assert snapshot(judged.database).id == first


def test_keys_that_meet_in_a_larger_chunk_become_one_with_the_higher_grade(
    judged: Context,
) -> None:
    rewrite(judged, joined())

    write(judged)

    assert expected(judged)[RESET] == {"reset:0": 2}
    assert start_runs(judged, "fulltext").keys.stale == ()


def test_a_split_is_only_written_when_asked_for(judged: Context) -> None:
    text = TEXTS["reset:0"]
    halves = {"reset:0": text[:40], "reset:1": text[40:], "reset:2": TEXTS["reset:1"]}
    rewrite(judged, TEXTS | halves)
    checked = check(judged, "default")
    [split] = [each for each in checked if each.found.state is KeyState.SPLIT][:1]

    assert split.key == "reset:0"
    assert [place.key for place in split.found.places] == ["reset:0", "reset:1"]
    assert sum(place.share for place in split.found.places) == pytest.approx(1, abs=0.05)
    assert write(judged, checked).questions == [split.judgment.question_id]
    assert expected(judged)[RESET] == {"reset:0": 2, "reset:2": 1}
    write(judged, None, KeyState.SPLIT)
    assert expected(judged)[RESET] == {"reset:0": 2, "reset:1": 2, "reset:2": 1}


def test_an_edited_text_that_was_looked_at_becomes_the_evidence(judged: Context) -> None:
    edited = TEXTS["weight:0"].replace("four", "five")
    rewrite(judged, TEXTS | {"weight:0": edited})

    assert states(judged)["weight:0"] == "changed"
    assert write(judged).edit_id is None
    assert write(judged, None, KeyState.CHANGED).edit_id is not None
    assert states(judged)["weight:0"] == "live"


def test_a_question_that_would_be_another_one_stays_as_it_is(judged: Context) -> None:
    some = [Question("What of the reset?", {"reset:0": 1}),
            Question("What of the reset?", {"reset:1": 1})]  # fmt: skip
    import_set(judged.database, some, replace=True)
    start_runs(judged, "fulltext")
    rewrite(judged, joined())

    done = write(judged)

    assert (len(done.questions), len(done.twins)) == (1, 1)
    assert fetch(
        judged.database,
        "SELECT key FROM recallwatch.judgment WHERE question_id IN (SELECT id FROM"
        " recallwatch.question WHERE text = 'What of the reset?') ORDER BY key",
    ) == ["reset:0", "reset:1"]
    assert states(judged)["reset:1"] == "merged"


def test_a_key_that_stays_is_not_overwritten_by_one_that_moves_onto_it(judged: Context) -> None:
    first, second = TEXTS["reset:0"], TEXTS["reset:1"]
    rewrite(judged, TEXTS | {"reset:0": "A new introduction.", "reset:1": first,
                             "reset:2": second[:24], "reset:3": second[24:]})  # fmt: skip
    before = expected(judged)[RESET]

    done = write(judged)

    assert (before, len(done.blocked)) == ({"reset:0": 2, "reset:1": 1}, 1)
    assert expected(judged)[RESET] == before
    assert write(judged, None, KeyState.SPLIT).blocked == []
    assert expected(judged)[RESET] == {"reset:1": 2, "reset:2": 1, "reset:3": 1}


def test_a_key_whose_text_nobody_kept_is_not_overwritten(judged: Context) -> None:
    execute(
        judged.database,
        "UPDATE recallwatch.judgment SET evidence_hash = NULL WHERE key = 'reset:1'",
    )
    rewrite(judged, TEXTS | {"reset:0": "A new introduction.", "reset:1": TEXTS["reset:0"]})

    assert len(write(judged).blocked) == 1
    assert expected(judged)[RESET] == {"reset:0": 2, "reset:1": 1}


@pytest.mark.parametrize("grades", [(1, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize("step", [1, -1], ids=["onwards", "backwards"])
def test_keys_that_move_on_to_each_others_names_all_follow(
    judged: Context, grades: tuple[int, int], step: int
) -> None:
    keys = [f"reset:{number + 5}" for number in range(3)]
    texts = [TEXTS["reset:0"], TEXTS["reset:1"], TEXTS["weight:0"]]
    rewrite(judged, TEXTS | dict(zip(keys, texts, strict=True)))
    some = [Question("And the chain?", dict(zip(keys[:2], grades, strict=True)))]
    import_set(judged.database, some, replace=True)
    start_runs(judged, "fulltext")
    apart = {key: text for key, text in TEXTS.items() if not key.startswith("reset")}
    moved = {f"reset:{number + 5 + step}": texts[number] for number in range(2)}
    rewrite(judged, apart | moved)

    done = write(judged)

    assert done.blocked == []
    assert expected(judged)["And the chain?"] == dict(zip(moved, grades, strict=True))


def test_questions_that_exchange_their_keys_are_no_twins(judged: Context) -> None:
    some = [Question("What of the battery?", {"battery:0": 1}),
            Question("What of the battery?", {"battery:1": 1})]  # fmt: skip
    import_set(judged.database, some, replace=True)
    start_runs(judged, "fulltext")
    rewrite(judged, TEXTS | {"battery:0": TEXTS["battery:1"], "battery:1": TEXTS["battery:0"]})

    done = write(judged)

    assert (len(done.questions), done.twins) == (2, [])


def test_a_judgment_that_was_changed_since_it_was_checked_is_left(judged: Context) -> None:
    rewrite(judged, shifted())
    checked = check(judged, "default")
    execute(
        judged.database,
        "UPDATE recallwatch.judgment SET evidence_hash = NULL WHERE key = 'weight:0'",
    )

    done = write(judged, checked)

    assert len(done.questions) == 5
    assert {"weight:0": 1} in expected(judged).values()


def test_many_texts_are_looked_for_in_more_than_one_pass(
    judged: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(judged, shifted())
    whole = states(judged)
    monkeypatch.setattr(locating, "TEXTS_PER_PASS", 2)
    monkeypatch.setattr(locating, "QUESTIONS_PER_READ", 2)

    assert states(judged) == whole


def test_a_key_does_not_move_to_another_tenants_copy(judged: Context) -> None:
    text = TEXTS["return:0"]
    apart = {key: each for key, each in TEXTS.items() if key != "return:0"}
    rewrite(judged, apart | {"terms:0": text, "globex-terms:0": text})
    question = "Within how many days can I return goods?"

    assert write(judged).edit_id is None
    execute(
        judged.database,
        "UPDATE recallwatch_corpus.chunks SET tenant = CASE WHEN document_id = 'globex-terms'"
        " THEN 'globex' ELSE 'acme' END WHERE document_id LIKE '%terms'",
    )
    assert write(judged).edit_id is not None
    assert expected(judged)[question] == {"terms:0": 1}


def test_what_only_another_tenant_has_is_lost(judged: Context) -> None:
    text = TEXTS["return:0"]
    rewrite(judged, {"return:5": text, "reset:0": TEXTS["reset:0"]})
    execute(judged.database, "UPDATE recallwatch_corpus.chunks SET tenant = 'globex'")

    found = states(judged)

    assert (found["return:0"], found["reset:0"]) == ("lost", "live")


def test_proposed_questions_are_checked_and_rejected_ones_are_not(judged: Context) -> None:
    for key, status in (("weight:0", "proposed"), ("battery:0", "rejected")):
        execute(
            judged.database,
            "UPDATE recallwatch.question SET status = :status WHERE id IN"
            " (SELECT question_id FROM recallwatch.judgment WHERE key = :key)",
            {"key": key, "status": status},
        )

    found = states(judged)

    assert found["weight:0"] == "live"
    assert "battery:0" not in found


def test_keys_without_evidence_are_live_or_lost_by_whether_they_are_there(ctx: Context) -> None:
    rewrite(ctx, shifted())

    found = states(ctx)

    assert (found["reset:0"], found["gone:0"]) == ("live", "lost")
    assert set(found.values()) == {"live", "lost"}


def test_a_set_without_judgments_says_where_to_look(ctx: Context) -> None:
    with pytest.raises(InputError, match="no active or proposed question") as caught:
        check(ctx, "nobody's")
    assert "recallwatch golden list --sets" in str(caught.value)


def test_a_diff_names_what_is_new_gone_and_relabelled(ctx: Context) -> None:
    asked = [Question(f"q{n}", {"reset:0": 1}, external_id=str(n)) for n in range(3)]
    import_set(ctx.database, asked, "s")
    first = snapshot(ctx.database, "s").id
    relabelled = replace(asked[1], category="how", expected={"reset:0": 2})
    import_set(ctx.database, [relabelled, asked[2], Question("new", {"reset:1": 1})], "s",
               replace=True)  # fmt: skip

    with ctx.database.begin() as session:
        now = [replace(each, question_id=0) for each in golden_history.diff(session, first, None)]
    second = snapshot(ctx.database, "s").id
    with ctx.database.begin() as session:
        later = [replace(each, question_id=0)
                 for each in golden_history.diff(session, first, second)]  # fmt: skip
        listed = golden_history.versions(session, "s", limit=5)

    assert (
        now
        == later
        == [
            QuestionDiff(0, "removed", "q0", {}, {}),
            QuestionDiff(0, "changed", "q1", {"category": (None, "how")}, {"reset:0": (1, 2)}),
            QuestionDiff(0, "added", "new", {}, {}),
        ]
    )
    assert [(each.id, each.size, each.runs) for each in listed] == [(second, 3, 0), (first, 3, 0)]


def test_versions_of_different_sets_are_not_compared(ctx: Context) -> None:
    import_set(ctx.database, [Question("q", {"reset:0": 1})], "other")
    first, second = snapshot(ctx.database).id, snapshot(ctx.database, "other").id

    with ctx.database.begin() as session, pytest.raises(InputError, match="version 2 of 'other'"):
        list(golden_history.diff(session, first, second))
    with ctx.database.begin() as session, pytest.raises(InputError, match="no golden version 99"):
        list(golden_history.diff(session, 99, None))
