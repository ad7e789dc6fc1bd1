import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db import comparisons, runs
from db.models import GoldenItem
from db.results import ResultRow
from db.session import Database
from pipeline.golden.fingerprint import content_hash
from pipeline.types import Kind, Question, Source
from pipeline.verdict.compare import CategoryChange, Comparison, Pairing
from pipeline.verdict.resampling import Differences, bootstrap_interval, seed_of
from tests.integration.db.building import (
    failed,
    import_set,
    ineligible,
    items_of,
    on_a_database,
    questions,
    scored,
    snapshot,
    start_run,
    store_all,
)
from tests.integration.db.naive_pairing import (
    Asked,
    means_of,
    pairing_of,
    pairs_of,
    shared_of,
)

EXPECTED = st.sampled_from([{"d:0": 1}, {"d:0": 1, "d:1": 2}, {"d:0": 0}])
MEASURES = st.permutations(["hit@5", "recall@5", "ndcg@5", "mrr@5"]).map(lambda names: names[:3])
VALUES = st.sampled_from([0.0, 1 / 3, 0.5, 1.0])


@st.composite
def drawn_questions(draw: st.DrawFn) -> Question:
    """Draw one of few questions: two sets of them have much in common, and hold some twice."""
    expected = draw(EXPECTED)
    relevant = any(grade >= 1 for grade in expected.values())
    return Question(
        text=draw(st.sampled_from(["a?", "b?"])),
        expected=expected,
        kind=Kind.ANSWERABLE if relevant else Kind.UNANSWERABLE,
        category=draw(st.none() | st.just("labelled anew")),
        tenant=draw(st.sampled_from([None, None, "acme"])),
        external_id=draw(st.sampled_from([None, None, "1", "2", "3"])),
    )


def each_once(drawn: list[Question]) -> list[Question]:
    return list({q.external_id or content_hash(q): q for q in drawn}.values())


GOLDEN_SETS = st.lists(drawn_questions(), min_size=3, max_size=8).map(each_once)


@st.composite
def outcomes(draw: st.DrawFn, item: GoldenItem) -> ResultRow:
    """Draw what became of a question; three of four are scored, with all keys live."""
    if item.kind == Kind.UNANSWERABLE:
        return ineligible(item.position)
    match draw(st.integers(0, 7)):
        case 0:
            return failed(item.position)
        case 1:
            return ineligible(item.position, sorted(item.expected))
        case kind:
            missing = sorted(item.expected)[:1] if kind == 2 else []
            return scored(item.position, draw(VALUES), draw(VALUES), draw(VALUES), missing=missing)


@dataclass(frozen=True)
class Drawn:
    """A finished run, and each of its answerable questions for the oracle."""

    run_id: int
    measures: Sequence[str]
    asked: list[Asked]


def evaluate(db: Database, set_name: str, measures: Sequence[str], data: st.DataObject) -> Drawn:
    """Start a run of the present set and store a drawn result for each question."""
    run_id = start_run(db, {"measures": measures}, set_name=set_name)
    items = items_of(db, snapshot(db, set_name))
    rows = [data.draw(outcomes(item)) for item in items]
    store_all(db, run_id, rows)
    asked = [
        Asked(
            question_id=item.question_id,
            content_hash=item.content_hash,
            text=item.text,
            tenant=item.tenant,
            outcome=row.outcome,
            missing=tuple(row.missing),
            measured=dict(zip(measures, row.measured or (), strict=False)),
        )
        for item, row in zip(items, rows, strict=True)
        if item.kind == Kind.ANSWERABLE
    ]
    return Drawn(run_id, measures, asked)


def compare(db: Database, current: int, reference: int) -> Comparison:
    with db.begin() as session:
        run, before = (runs.get(session, run_id).run for run_id in (current, reference))
        return comparisons.compare(session, run, before)


def lost(db: Database, current: int, reference: int, *, limit: int = 100) -> list[int]:
    """Return the positions of the lost questions, as listed."""
    with db.begin() as session:
        run, before = (runs.get(session, run_id).run for run_id in (current, reference))
        return [row.position for row in comparisons.lost(session, run, before, limit=limit)]


@on_a_database
@given(before=GOLDEN_SETS, after=GOLDEN_SETS, data=st.data())
def test_two_runs_compare_as_a_naive_loop_compares_them(
    db: Database, before: list[Question], after: list[Question], data: st.DataObject
) -> None:
    name = uuid4().hex
    others = data.draw(MEASURES.filter(lambda names: "hit@5" in names))
    import_set(db, before, name)
    reference = evaluate(db, name, others, data)
    import_set(db, after, name, replace=True)
    current = evaluate(db, name, ["recall@5", "hit@5", "ndcg@5"], data)

    found = compare(db, current.run_id, reference.run_id)

    shared = shared_of(pairs_of(current.asked, reference.asked))
    assert found.pairing == pairing_of(current.asked, reference.asked)
    assert found.reference == reference.run_id
    both = [name for name in current.measures if name in others] if shared else []
    assert [change.metric for change in found.changes] == both
    for change in found.changes:
        means = means_of(shared, change.metric)
        assert (change.current, change.previous) == pytest.approx(means, abs=1e-12)
        drops = [now.measured[change.metric] - was.measured[change.metric] for now, was in shared]
        assert change.p == pytest.approx(counted_p(drops))
        assert change.interval == pytest.approx(
            bootstrap_interval(
                Differences.from_raw(drops),
                seed=seed_of(current.run_id, reference.run_id, change.metric),
            )
        )
    assert compare(db, current.run_id, reference.run_id) == found
    hits = [(now.measured["hit@5"], was.measured["hit@5"]) for now, was in shared]
    assert found.lost == sum(now < was for now, was in hits)
    assert found.won == sum(now > was for now, was in hits)
    assert len(lost(db, current.run_id, reference.run_id)) == found.lost


def counted_p(differences: Sequence[float]) -> float:
    """Count over all signs how often the sum is at least as far from zero."""
    observed = abs(sum(differences)) - 1e-9
    signs = list(itertools.product((-1, 1), repeat=len(differences)))
    sums = [abs(sum(map(operator.mul, differences, each))) for each in signs]
    return float(np.mean(np.array(sums) >= observed))


def run_with(db: Database, rows: Sequence[ResultRow]) -> int:
    run_id = start_run(db)
    store_all(db, run_id, rows)
    return run_id


def test_a_run_compared_with_its_like_shares_every_scored_question(db: Database) -> None:
    import_set(db, questions(4))
    rows = [scored(0, 1, 0.5, 0.5), scored(1, 0, 0, 0), failed(2), ineligible(3)]
    one, other = run_with(db, rows), run_with(db, rows)

    found = compare(db, other, one)

    assert found.pairing == Pairing(shared=2, new=0, changed=0, gone=0, relived=0, unscored=2)
    assert [change.difference for change in found.changes] == [0, 0, 0]
    assert (found.lost, found.won) == (0, 0)


def test_a_label_changed_between_two_runs_changes_no_pair(db: Database) -> None:
    import_set(db, questions(3))
    before = run_with(db, [scored(p) for p in range(3)])
    import_set(db, [replace(q, category="new", must_pass=True) for q in questions(3)])
    after = run_with(db, [scored(p) for p in range(3)])

    assert compare(db, after, before).pairing.shared == 3


def test_a_changed_answer_is_no_change_of_retrieval(db: Database) -> None:
    import_set(db, questions(2))
    before = run_with(db, [scored(0), scored(1)])
    import_set(db, [replace(questions(1)[0], expected={"other:0": 1})])
    # The corrected question has a higher id, so it stands behind the other one.
    after = run_with(db, [scored(0), scored(1, 0, 0, 0)])

    found = compare(db, after, before)

    assert found.pairing == Pairing(shared=1, new=0, changed=1, gone=0, relived=0, unscored=0)
    assert found.change("recall@5").difference == 0
    assert found.lost == 0


def test_a_question_whose_live_keys_changed_is_left_out(db: Database) -> None:
    import_set(db, [Question(text="a?", expected={"d:0": 1, "d:1": 1}), *questions(1)])
    before = run_with(db, [scored(0), scored(1)])
    after = run_with(db, [scored(0, 0, 0, 0, missing=["d:1"]), scored(1)])

    found = compare(db, after, before)

    assert found.pairing == Pairing(shared=1, new=0, changed=0, gone=0, relived=1, unscored=0)
    assert found.lost == 0


def test_new_and_gone_questions_are_counted_as_such(db: Database) -> None:
    import_set(db, questions(3))
    before = run_with(db, [scored(p) for p in range(3)])
    import_set(db, [*questions(2), Question(text="new?", expected={"d:0": 1})], replace=True)
    after = run_with(db, [scored(p) for p in range(3)])

    assert compare(db, after, before).pairing == Pairing(
        shared=2, new=1, changed=0, gone=1, relived=0, unscored=0
    )


def test_equal_questions_under_two_ids_are_paired_one_to_one(db: Database) -> None:
    twins = [replace(questions(1)[0], external_id=name) for name in ("a", "b")]
    import_set(db, twins)
    before = run_with(db, [scored(0, 1, 1, 1), scored(1, 0, 0, 0)])
    after = run_with(db, [scored(0, 1, 1, 1), scored(1, 0, 0, 0)])

    found = compare(db, after, before)

    assert found.pairing.shared == 2
    assert (found.lost, found.won) == (0, 0)


def test_unanswerable_questions_are_not_compared(db: Database) -> None:
    import_set(db, [*questions(1), Question(text="?", expected={}, kind=Kind.UNANSWERABLE)])
    before = run_with(db, [scored(0), ineligible(1)])
    after = run_with(db, [scored(0), ineligible(1)])

    assert compare(db, after, before).pairing.share == 1.0


def test_nothing_shared_is_compared_without_metrics(db: Database) -> None:
    import_set(db, questions(1))
    before = run_with(db, [scored(0)])
    after = run_with(db, [failed(0)])

    found = compare(db, after, before)

    assert (found.pairing.shared, found.changes) == (0, [])
    assert found.pairing.unscored == 1


def test_lost_questions_are_those_found_nowhere_then_the_deepest(db: Database) -> None:
    import_set(db, questions(5))
    before = run_with(db, [scored(p) for p in range(4)] + [scored(4, 0, 0, 0)])
    deep, deeper = (replace(scored(p, 0, 0, 0), first_rank=rank) for p, rank in ((0, 7), (1, 30)))
    after = run_with(db, [deep, deeper, scored(2), scored(3, 0, 0, 0), scored(4, 0, 0, 0)])

    assert lost(db, after, before) == [3, 1, 0]
    assert lost(db, after, before, limit=2) == [3, 1]
    assert compare(db, after, before).lost == 3


def test_won_questions_are_those_that_had_no_hit_and_have_one(db: Database) -> None:
    import_set(db, questions(4))
    before = run_with(db, [scored(0, 0, 0, 0), scored(1, 0, 0, 0), scored(2), failed(3)])
    after = run_with(db, [replace(scored(0), first_rank=4), *map(scored, (1, 2, 3))])

    with db.begin() as session:
        run, reference = (runs.get(session, run_id).run for run_id in (after, before))
        found = comparisons.won(session, run, reference, limit=10)

    assert [(row.position, row.was_rank, row.first_rank) for row in found] == [
        (0, None, 4), (1, None, 1)
    ]  # fmt: skip
    assert compare(db, after, before).won == 2


def test_by_category_only_shared_questions_with_a_category_count(db: Database) -> None:
    labels = ["a", "a", "b", None, "c"]
    import_set(db, [replace(q, category=c) for q, c in zip(questions(5), labels, strict=True)])
    before = run_with(db, [scored(p) for p in range(5)])
    drops = [scored(0, 0, 0.5, 0), scored(1, 0, 0, 0), scored(2), scored(3, 0, 0, 0), failed(4)]
    after = run_with(db, drops)

    assert compare(db, after, before).categories == [
        CategoryChange("a", "recall@5", -0.75, 2),
        CategoryChange("b", "recall@5", 0.0, 1),
    ]


def test_tenants_and_sources_are_compared_too(db: Database) -> None:
    some = [
        replace(question, tenant=tenant, source=source)
        for question, tenant, source in zip(
            questions(3),
            ["acme", "acme", None],
            [Source.LOG, Source.MANUAL, Source.LOG],
            strict=True,
        )
    ]
    import_set(db, some)
    before = run_with(db, [scored(p) for p in range(3)])
    after = run_with(db, [scored(0, 0, 0, 0), scored(1), scored(2)])

    found = compare(db, after, before)

    assert found.tenants == [CategoryChange("acme", "recall@5", -0.5, 2)]
    assert found.sources == [
        CategoryChange("log", "recall@5", -0.5, 2),
        CategoryChange("manual", "recall@5", 0.0, 1),
    ]


def test_the_settings_that_differ_are_said(db: Database) -> None:
    import_set(db, questions(1))
    runs_of = [
        start_run(db, {"settings": {"strategy": {"ef_search": ef}, "look_depth": ef}})
        for ef in (40, 20)
    ]
    for run_id in runs_of:
        store_all(db, run_id, [scored(0)])

    assert compare(db, runs_of[1], runs_of[0]).setup == ["strategy.ef_search 40 -> 20"]


def test_the_record_says_how_the_corpus_differs(db: Database) -> None:
    import_set(db, questions(1))
    before = run_with(db, [scored(0)])
    corpus = {"chunks": 10, "embedded": 9, "dimension": 4, "texts": "a", "vectors": "c"}
    after = start_run(db, {"corpus_fingerprint": corpus})
    store_all(db, after, [scored(0)])

    assert compare(db, after, before).corpus == [
        "chunks 9 -> 10",
        "chunk texts unchanged",
        "vectors changed",
    ]


def test_a_category_that_is_large_enough_is_kept_beside_many_small_ones(db: Database) -> None:
    small = comparisons.MOST_GROUPS + 1
    labels = [*(f"small {n}" for n in range(small)), *["large"] * 20]
    import_set(
        db, [replace(q, category=c) for q, c in zip(questions(len(labels)), labels, strict=True)]
    )
    before = run_with(db, [scored(p) for p in range(len(labels))])
    after = run_with(
        db, [scored(p, 0, 0, 0) if p <= small else scored(p) for p in range(len(labels))]
    )

    found = compare(db, after, before).categories

    assert len(found) == comparisons.MOST_GROUPS
    assert found[-1] == CategoryChange("large", "recall@5", -0.05, 20)
    assert [c.difference for c in found] == sorted(c.difference for c in found)
