"""Exact shards: after all others, for the same questions each time, and never a run's downfall."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db import exact, exact_figures, results, run_states, runs, shards
from db.exact import ExactRow, Served
from db.models import GoldenVersion
from db.pairing import pair_up
from db.session import Database
from db.shards import Claim
from pipeline.golden.fingerprint import content_hash
from pipeline.types import Kind, Question, ShardKind
from pipeline.verdict.compare import ExactComparison
from tests.integration.db.building import (
    ATTEMPTS,
    MEASURES,
    batch_of,
    claim,
    claimed,
    end_run,
    execute,
    expire,
    failed,
    fetch,
    import_set,
    ineligible,
    items_of,
    on_a_database,
    questions,
    run_of,
    scored,
    shard_of,
    snapshot,
    start_run,
    store_all,
)
from tests.integration.db.changing import retry, states

NUMBERS = (2, 3)
"""The exact shards of the run that most tests share."""


def plan(db: Database, run_id: int, n: int, n_shards: int) -> None:
    with db.begin() as session:
        exact.plan(session, run_id, n, n_shards)


def store_exact(
    db: Database,
    hold: Claim,
    rows: Sequence[ExactRow],
    seconds: float = 0.5,
    ef_search: dict[str, Any] | None = None,
) -> bool | None:
    with db.begin() as session:
        return exact.store(
            session, hold, rows, stats={"exact_seconds": seconds}, ef_search=ef_search
        )


def served(db: Database, hold: Claim) -> list[Served]:
    with db.begin() as session:
        version = runs.get(session, hold.run_id).version
        return exact.served(session, version.id, hold)


def summary(db: Database, run_id: int) -> dict[str, Any]:
    with db.begin() as session:
        found = exact_figures.summary(session, runs.get(session, run_id).run)
    assert found is not None
    return found


def give_up(db: Database, run_id: int, reason: str = "no key") -> bool:
    with db.begin() as session:
        return exact.give_up(session, run_id, reason)


def hopeless(db: Database) -> list[tuple[int, str]]:
    with db.begin() as session:
        return exact.hopeless(session, attempts=ATTEMPTS)


def due(db: Database) -> list[tuple[int, int]]:
    with db.begin() as session:
        return shards.due(session, quiet=0, limit=100)


@pytest.fixture
def run(db: Database) -> int:
    """Start a run of four questions in two shards, with two exact shards for three of them."""
    import_set(db, questions(4))
    run_id = start_run(db, shard_size=2)
    plan(db, run_id, 3, 2)
    return run_id


@pytest.fixture
def measured(db: Database, run: int) -> int:
    """Give the same run, all that is served measured."""
    store_all(db, run, [scored(position) for position in range(4)])
    return run


def test_exact_shards_come_behind_the_others_and_share_the_ranks_evenly(
    db: Database, run: int
) -> None:
    slices = fetch(
        db,
        "SELECT number, kind, first_position, last_position FROM recallwatch.shard"
        " WHERE run_id = :run ORDER BY number",
        {"run": run},
    )

    assert slices == [
        (0, "served", 0, 1),
        (1, "served", 2, 3),
        (2, "exact", 0, 0),
        (3, "exact", 1, 2),
    ]


@on_a_database
@given(n=st.integers(1, 5000), n_shards=st.integers(1, 20))
def test_each_rank_is_in_one_exact_shard(db: Database, n: int, n_shards: int) -> None:
    import_set(db, questions(1))
    run_id = start_run(db)

    plan(db, run_id, n, min(n, n_shards))

    slices = fetch(
        db,
        "SELECT first_position, last_position FROM recallwatch.shard"
        " WHERE run_id = :run AND kind = 'exact' ORDER BY number",
        {"run": run_id},
    )
    assert [rank for first, last in slices for rank in range(first, last + 1)] == list(range(n))
    sizes = [last - first for first, last in slices]
    assert max(sizes) - min(sizes) <= 1


def test_an_exact_shard_is_not_to_be_had_nor_due_while_what_is_served_is_not_measured(
    db: Database, run: int
) -> None:
    store_all(db, run, [scored(0), scored(1)])
    claimed(db, run, 1)

    assert [claim(db, run, number) for number in NUMBERS] == [None, None]
    assert due(db) == []
    expire(db, run, 1)
    assert due(db) == [(run, 1)]


def test_exact_shards_are_due_and_to_be_had_when_all_others_are_done(
    db: Database, measured: int
) -> None:
    assert due(db) == [(measured, 2), (measured, 3)]
    assert claimed(db, measured, 3) == Claim(measured, 3, 1, 1, 1, 2, ShardKind.EXACT)


def test_the_close_of_the_last_served_shard_names_the_exact_ones_once(
    db: Database, run: int
) -> None:
    said = []
    for number in (1, 0):
        hold = claimed(db, run, number)
        rows = [scored(position) for position in range(hold.first, hold.last + 1)]
        with db.begin() as session:
            last = results.store(session, hold, rows, stats={})
            said.append((last, shards.ring_exact(session, run)))

    assert said == [(False, []), (False, [2, 3])]
    with db.begin() as session:
        assert shards.due(session, quiet=5, limit=9) == [], "they were just rung"


def test_exact_shards_are_never_embedded_ahead(db: Database, measured: int) -> None:
    batch = batch_of(db, measured)
    with db.begin() as session:
        assert shards.hold_for_embedding(session, batch, 2, lease=60) is None


def test_progress_counts_what_is_served_and_not_what_is_asked_again(
    db: Database, measured: int
) -> None:
    hold = claimed(db, measured, 2)
    store_exact(db, hold, [])

    with db.begin() as session:
        [progress] = runs.progress(session, [measured])
    assert (progress.done, progress.size) == (4, 4)


def test_a_run_can_be_reduced_when_its_last_exact_shard_is_closed(
    db: Database, measured: int
) -> None:
    first, second = (claimed(db, measured, number) for number in NUMBERS)

    assert store_exact(db, first, []) is False
    with db.begin() as session:
        assert run_states.reducible(session, attempts=5) == []
    assert store_exact(db, second, []) is True
    with db.begin() as session:
        assert run_states.reducible(session, attempts=5) == [measured]


def ranked(db: Database) -> list[int]:
    """Return the positions of the set's answerable questions by rank."""
    items = [item for item in items_of(db, snapshot(db)) if item.kind == Kind.ANSWERABLE]
    return [item.position for item in sorted(items, key=lambda item: item.content_hash)]


def test_the_questions_of_a_sample_are_the_first_by_hash_of_those_with_an_answer(
    db: Database,
) -> None:
    odd = Question("?", {}, kind=Kind.UNANSWERABLE)
    import_set(db, [odd, *questions(40)])
    run_id = start_run(db)
    store_all(db, run_id, [scored(position) for position in range(41)])
    plan(db, run_id, 12, 2)

    asked = [one.item for number in (1, 2) for one in served(db, claimed(db, run_id, number))]

    assert [item.position for item in asked] == ranked(db)[:12]
    hashes = sorted(content_hash(question) for question in questions(40))
    assert [item.content_hash for item in asked] == hashes[:12]
    # SHA-256 spreads them: a sample is not the beginning of the set.
    assert sorted(item.position for item in asked) != list(range(1, 13))


def test_two_sets_with_questions_in_common_sample_them_alike(db: Database) -> None:
    some = questions(30)
    texts = []
    for name, members in (("all", some), ("most", [some[0], *reversed(some[3:])])):
        import_set(db, members, name)
        run_id = start_run(db, set_name=name)
        store_all(db, run_id, [scored(position) for position in range(len(members))])
        plan(db, run_id, 10, 1)
        texts.append([one.item.text for one in served(db, claimed(db, run_id, 1))])

    both = [text for text in texts[0] if text not in {some[1].text, some[2].text}]
    assert texts[1][: len(both)] == both


def test_only_scored_questions_are_asked_with_what_was_dead_and_measured(
    db: Database, run: int
) -> None:
    rows = [
        scored(0, 1, 0.5, 0.25, missing=["gone:0"]),
        failed(1),
        ineligible(2),
        scored(3, 0, 0, 0),
    ]
    store_all(db, run, rows)
    execute(
        db, "UPDATE recallwatch.shard SET first_position = 0, last_position = 3 WHERE number = 3"
    )

    found = {
        one.item.position: (one.missing, one.measured) for one in served(db, claimed(db, run, 3))
    }

    assert found == {0: (["gone:0"], [1.0, 0.5, 0.25]), 3: ([], [0.0, 0.0, 0.0])}


def test_a_worker_that_lost_its_exact_shard_stores_nothing(db: Database, measured: int) -> None:
    lost = claimed(db, measured, 2)
    expire(db, measured, 2)
    held = claimed(db, measured, 2)

    assert store_exact(db, lost, [ExactRow(0, ["late:0"], [1, 1, 1])]) is None
    assert fetch(db, "SELECT * FROM recallwatch.exact_result") == []
    assert store_exact(db, held, [ExactRow(0, ["d:0"], [1, 1, 1])]) is False
    assert store_exact(db, held, [ExactRow(0, ["again:0"], [1, 1, 1])]) is None
    assert fetch(db, "SELECT retrieved FROM recallwatch.exact_result") == [["d:0"]]


def test_a_result_is_stored_as_it_was_found(db: Database, measured: int) -> None:
    hold = claimed(db, measured, 2)
    row = ExactRow(0, ['d"é\\:0', "{}:1", ""], [1 / 3, 1e-17, 0.1 + 0.2])
    store_exact(db, hold, [row], ef_search={"suggested": 80})

    assert fetch(db, "SELECT position, retrieved, measured FROM recallwatch.exact_result") == [
        (row.position, row.retrieved, row.measured)
    ]
    assert shard_of(db, measured, 2).ef_search == {"suggested": 80}
    with db.begin() as session:
        details = list(results.details(session, measured))
    assert (details[0].exact_retrieved, details[0].exact_measured) == (row.retrieved, row.measured)
    assert (details[1].exact_retrieved, details[1].exact_measured) == (None, None)


def test_giving_up_ends_the_open_exact_shards_and_keeps_the_run(
    db: Database, measured: int
) -> None:
    held = claimed(db, measured, 2)
    store_exact(db, held, [ExactRow(0, [], [0, 0, 0])])
    lost = claimed(db, measured, 3)

    assert give_up(db, measured, "no key") is True

    assert store_exact(db, lost, [ExactRow(1, [], [0, 0, 0])]) is None
    assert [shard_of(db, measured, n).error for n in NUMBERS] == [None, "no key"]
    assert {shard_of(db, measured, n).state for n in range(4)} == {"done"}
    assert run_of(db, measured).verdict is None
    assert summary(db, measured)["error"] == "no key"
    assert summary(db, measured)["n"] == 1


def test_giving_up_before_what_is_served_was_measured_leaves_that_to_be_done(
    db: Database, run: int
) -> None:
    assert give_up(db, run) is False
    assert [number for _, number in due(db)] == [0, 1]


def test_an_exact_shard_out_of_attempts_ends_the_exact_search_and_not_the_run(
    db: Database, measured: int
) -> None:
    for _ in range(ATTEMPTS):
        hold = claimed(db, measured, 2)
        with db.begin() as session:
            assert shards.release(session, hold, error="503", wait=0)

    with db.begin() as session:
        assert shards.exhausted(session, attempts=ATTEMPTS) == []
    assert hopeless(db) == [(measured, f"tried {ATTEMPTS} times: 503")]
    give_up(db, measured, "tried")
    assert hopeless(db) == []


def test_an_exact_shard_whose_workers_were_lost_is_hopeless_once_its_lease_is_over(
    db: Database, measured: int
) -> None:
    execute(db, "UPDATE recallwatch.shard SET attempts = :n - 1 WHERE number = 3", {"n": ATTEMPTS})
    claimed(db, measured, 3)
    assert hopeless(db) == []

    expire(db, measured, 3)

    assert hopeless(db) == [(measured, f"tried {ATTEMPTS} times: its worker was lost each time")]


def test_a_deadline_that_passes_during_exact_search_ends_that_and_not_the_run(
    db: Database, measured: int
) -> None:
    claimed(db, measured, 2)
    execute(db, "UPDATE recallwatch.run SET deadline_at = now() - interval '1 second'")

    [(run_id, reason)] = hopeless(db)
    assert (run_id, "deadline" in reason) == (measured, True)
    assert give_up(db, measured, reason) is True
    with db.begin() as session:
        assert run_states.overdue(session) == []
        assert run_states.reducible(session, attempts=5) == [measured]


def test_a_run_that_is_late_with_what_is_served_is_overdue(db: Database, run: int) -> None:
    execute(db, "UPDATE recallwatch.run SET deadline_at = now() - interval '1 second'")

    assert hopeless(db) == []
    with db.begin() as session:
        assert run_states.overdue(session) == [run]


def test_a_run_that_nobody_reduces_is_overdue_in_the_end(db: Database, measured: int) -> None:
    give_up(db, measured)
    execute(db, "UPDATE recallwatch.run SET deadline_at = now() - interval '11 minutes'")

    with db.begin() as session:
        assert run_states.overdue(session) == [measured]


def test_a_refused_exact_search_says_why_and_waits_for_nobody(db: Database) -> None:
    import_set(db, questions(2))
    run_id = start_run(db)
    with db.begin() as session:
        exact.refuse(session, run_id, "too large")
    store_all(db, run_id, [scored(0), scored(1)])

    with db.begin() as session:
        assert shards.all_done(session, run_id)
    found = summary(db, run_id)
    assert (found["error"], found["n"], found["of"]) == ("too large", 0, 2)
    assert (found["metrics"], found["served"], found["index_loss"]) == ({}, {}, None)


def test_a_refusal_stays_one_when_questions_are_asked_again(db: Database) -> None:
    import_set(db, questions(2))
    given_up, refused = start_run(db), start_run(db)
    plan(db, given_up, 1, 1)
    give_up(db, given_up)
    with db.begin() as session:
        exact.refuse(session, refused, "too large")
    for run_id in (given_up, refused):
        store_all(db, run_id, [scored(0), failed(1)])
        end_run(db, run_id)
        assert retry(db, run_id)

    assert states(db, given_up) == ["pending", "pending"]
    assert states(db, refused) == ["pending", "done"]
    assert shard_of(db, refused, 1).error == "too large"


def test_a_run_without_exact_shards_has_nothing_to_say(db: Database) -> None:
    import_set(db, questions(1))
    run_id = start_run(db)
    store_all(db, run_id, [scored(0)])

    with db.begin() as session:
        assert exact_figures.summary(session, runs.get(session, run_id).run) is None


def test_deleting_a_run_deletes_what_exact_search_found(db: Database, measured: int) -> None:
    store_exact(db, claimed(db, measured, 2), [ExactRow(0, [], [0, 0, 0])])
    execute(db, "DELETE FROM recallwatch.run")
    assert fetch(db, "SELECT count(*) FROM recallwatch.exact_result") == [0]


VALUES = st.sampled_from([0.0, 1 / 3, 0.5, 1.0])
Values = tuple[float, float, float]
MEASURED: st.SearchStrategy[Values] = st.tuples(st.sampled_from([0.0, 1.0]), VALUES, VALUES)
Both = tuple[Values, Values | None]
ASKED: st.SearchStrategy[Both] = st.tuples(MEASURED, st.none() | MEASURED)


def finished(db: Database, asked: Sequence[Both | None], names: Sequence[str] = MEASURES) -> int:
    """Finish a run of the set: of each question its served and exact values, or None: failed."""
    run_id = start_run(db, {"measures": names})
    plan(db, run_id, len(asked), 1)
    rows = [
        failed(position) if values is None else scored(position, *values[0])
        for position, values in enumerate(asked)
    ]
    store_all(db, run_id, rows)
    found = [
        ExactRow(position, ["d:0"], list(values[1]))
        for position, values in enumerate(asked)
        if values is not None and values[1] is not None
    ]
    store_exact(db, claimed(db, run_id, 1), found, seconds=1.5)
    return run_id


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@on_a_database
@given(asked=st.lists(st.none() | ASKED, min_size=1, max_size=8))
def test_a_summary_says_what_a_naive_loop_counts(db: Database, asked: list[Both | None]) -> None:
    import_set(db, questions(len(asked)), replace=True)
    run_id = finished(db, asked)
    with db.begin() as session:
        found = exact_figures.summary(session, runs.get(session, run_id).run)

    scored_ones = [values for values in asked if values is not None]
    pairs = [(was, now) for was, now in scored_ones if now is not None]
    if not pairs:
        assert found is None
        return
    assert found is not None
    assert (found["n"], found["of"]) == (len(pairs), len(scored_ones))
    assert (found["sampled"], found["error"], found["seconds"]) == (False, None, 1.5)
    for column, name in enumerate(MEASURES):
        assert found["served"][name] == pytest.approx(mean([was[column] for was, _ in pairs]))
        assert found["metrics"][name] == pytest.approx(mean([now[column] for _, now in pairs]))
    losses = [now[1] - was[1] for was, now in pairs]
    assert found["index_loss"] == pytest.approx(mean(losses))
    assert found["missed"] == sum(now[0] > was[0] for was, now in pairs)
    assert found["found_more"] == sum(was[0] > now[0] for was, now in pairs)


def test_a_summary_says_whether_the_questions_were_sampled(db: Database) -> None:
    import_set(db, [*questions(3), Question("?", {}, kind=Kind.UNANSWERABLE)])
    sampled = []
    for n in (2, 3):
        run_id = start_run(db)
        plan(db, run_id, n, 1)
        store_all(db, run_id, [*map(scored, range(3)), ineligible(3)])
        store_exact(db, claimed(db, run_id, 1), [ExactRow(ranked(db)[0], [], [1, 1, 1])])
        sampled.append(summary(db, run_id)["sampled"])

    assert sampled == [True, False]


def compare(db: Database, current: int, reference: int) -> ExactComparison | None:
    with db.begin() as session:
        run, before = (runs.get(session, run_id).run for run_id in (current, reference))
        pair_up(session, run, before)
        return exact_figures.compare(session, run, before)


OTHER = ("ndcg@5", "hit@5", "recall@5")
"""The measures in another order."""


@on_a_database
@given(
    before=st.lists(st.none() | ASKED, min_size=1, max_size=6),
    after=st.lists(st.none() | ASKED, min_size=1, max_size=6),
)
def test_two_runs_compare_as_a_naive_loop_compares_them(
    db: Database, before: list[Both | None], after: list[Both | None]
) -> None:
    import_set(db, questions(len(before)), replace=True)
    reference = finished(db, before)
    import_set(db, questions(len(after)), replace=True)
    current = finished(db, after)

    found = compare(db, current, reference)

    texts = [
        {items.text: asked[items.position] for items in items_of(db, version_of(db, run_id))}
        for run_id, asked in ((reference, before), (current, after))
    ]
    pairs = [
        (was, now)
        for text, now in texts[1].items()
        if now and now[1] and (was := texts[0].get(text)) and was[1]
    ]
    if not pairs:
        assert found is None
        return
    assert found is not None
    assert found.shared == len(pairs)
    then, today = ([side[1] for side in sides] for sides in zip(*pairs, strict=True))
    then_served, today_served = ([side[0] for side in sides] for sides in zip(*pairs, strict=True))
    for column, change in enumerate(found.changes):
        assert change.metric == MEASURES[column]
        assert change.current == pytest.approx(mean([values[column] for values in today]))
        assert change.previous == pytest.approx(mean([values[column] for values in then]))
        assert change.p is not None
    pairs_now = list(zip(then, today, strict=True))
    assert found.lost == sum(was[0] > now[0] for was, now in pairs_now)
    assert found.won == sum(now[0] > was[0] for was, now in pairs_now)
    assert found.loss_now == pytest.approx(loss(today, today_served))
    assert found.loss_before == pytest.approx(loss(then, then_served))
    assert found.missed_now == missed(today, today_served)
    assert found.missed_before == missed(then, then_served)


def version_of(db: Database, run_id: int) -> GoldenVersion:
    with db.begin() as session:
        return runs.get(session, run_id).version


def loss(found: Sequence[Any], as_served: Sequence[Any]) -> float:
    return mean([values[1] - other[1] for values, other in zip(found, as_served, strict=True)])


def missed(found: Sequence[Any], as_served: Sequence[Any]) -> int:
    return sum(values[0] > other[0] for values, other in zip(found, as_served, strict=True))


def test_measures_are_found_by_name_in_both_runs(db: Database) -> None:
    import_set(db, questions(1))
    reference = finished(db, [((1.0, 0.5, 0.1), (1.0, 1.0, 0.2))])
    reordered = start_run(db, {"measures": OTHER})
    plan(db, reordered, 1, 1)
    store_all(db, reordered, [scored(0, 0.1, 0.0, 0.25)])
    store_exact(db, claimed(db, reordered, 1), [ExactRow(0, [], [0.3, 1.0, 0.75])])

    found = compare(db, reordered, reference)

    assert found is not None
    assert {c.metric: (c.current, c.previous) for c in found.changes} == {
        "ndcg@5": (0.3, 0.2), "hit@5": (1.0, 1.0), "recall@5": (0.75, 1.0)
    }  # fmt: skip
    assert (found.loss_now, found.loss_before) == (0.5, 0.5)
    assert (found.missed_now, found.missed_before) == (1, 0)


def test_a_run_without_exact_results_is_not_compared(db: Database) -> None:
    import_set(db, questions(1))
    with_exact = finished(db, [((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))])
    without = start_run(db)
    store_all(db, without, [scored(0)])

    assert compare(db, with_exact, without) is None
    assert compare(db, without, with_exact) is None
    assert compare(db, with_exact, with_exact) is not None
