"""A golden set in numbers, against counts made in Python, and what is warned of."""

from collections import Counter
from dataclasses import replace

import pytest
from pydantic import SecretStr

from db import golden_stats
from db.golden_stats import SetStats
from db.session import Database
from pipeline.types import Kind, Question, Source
from tests.integration.db.building import SET, execute, import_set
from tests.integration.workers.conftest import GOLDEN, Opener
from workers import set_stats
from workers.context import Context
from workers.set_stats import NearDuplicates, near_duplicates_of, visible, warnings


def stats_of(db: Database, set_name: str = SET) -> SetStats:
    with db.begin() as session:
        found = golden_stats.of_set(session, set_name)
    assert found is not None
    return found


def near_of(ctx: Context) -> NearDuplicates | str:
    with ctx.database.begin() as session:
        found = golden_stats.of_set(session, SET)
        assert found is not None
        return near_duplicates_of(ctx, session, found)


def make_the_same(ctx: Context, one: str, other: str) -> None:
    """Give a chunk the vector of another one of the same tenant."""
    documents = [key.partition(":") for key in (one, other)]
    execute(
        ctx.database,
        "UPDATE recallwatch_corpus.chunks c SET embedding = o.embedding"
        " FROM recallwatch_corpus.chunks o"
        " WHERE (c.document_id, c.chunk_index) = (:d1, :c1)"
        " AND (o.document_id, o.chunk_index) = (:d2, :c2)",
        {"d1": documents[0][0], "c1": int(documents[0][2]),
         "d2": documents[1][0], "c2": int(documents[1][2])},
    )  # fmt: skip


def test_a_set_is_counted_as_it_is(ctx: Context) -> None:
    stats = stats_of(ctx.database)
    assert stats.by_status == {"active": len(GOLDEN)}
    assert stats.active == len(GOLDEN)
    for column in ("category", "tenant", "language"):
        assert stats.groups[column] == Counter(getattr(each, column) for each in GOLDEN)
    assert stats.groups["source"] == {"manual": len(GOLDEN)}
    assert stats.answerable == sum(each.kind is Kind.ANSWERABLE for each in GOLDEN)
    assert stats.one_key == sum(len(each.expected) == 1 for each in GOLDEN)
    grades = [grade for each in GOLDEN for grade in each.expected.values()]
    assert stats.judgments.count == len(grades)
    assert stats.judgments.graded == sum(grade not in {0, 1} for grade in grades)


def test_only_active_questions_are_counted_but_for_the_statuses(ctx: Context) -> None:
    execute(ctx.database, "UPDATE recallwatch.question SET status = 'proposed'"
                          " WHERE category = 'fact'")  # fmt: skip
    stats = stats_of(ctx.database)
    facts = sum(each.category == "fact" for each in GOLDEN)
    assert stats.by_status == {"active": len(GOLDEN) - facts, "proposed": facts}
    assert "fact" not in stats.groups["category"]
    assert sum(stats.groups["source"].values()) == len(GOLDEN) - facts


def test_the_age_of_judgments_is_counted(ctx: Context) -> None:
    execute(ctx.database, "UPDATE recallwatch.judgment SET judged_at = now() - interval '100 days'"
                          " WHERE key = 'reset:0'")  # fmt: skip
    execute(ctx.database, "UPDATE recallwatch.judgment SET judged_at = now() - interval '400 days'"
                          " WHERE key = 'gone:1'")  # fmt: skip
    judged = stats_of(ctx.database).judgments
    assert judged.older_than == {90: 3, 180: 1, 365: 1}
    assert judged.oldest is not None
    assert judged.newest is not None
    assert round((judged.newest - judged.oldest).total_seconds() / 86_400) == 400


def test_a_set_that_is_not_there_is_none(ctx: Context) -> None:
    with ctx.database.begin() as session:
        assert golden_stats.of_set(session, "none") is None


def test_a_set_without_active_questions_shows_nothing(ctx: Context) -> None:
    execute(ctx.database, "UPDATE recallwatch.question SET status = 'retired'")
    stats = stats_of(ctx.database)
    with ctx.database.begin() as session:
        assert [each.points for each in visible(ctx, session, stats)] == [None, None]
    assert (stats.active, stats.judgments.count, stats.judgments.oldest) == (0, 0, None)
    assert warnings(stats, None)[0].startswith("0 answerable questions are active: under 50")


def test_a_near_duplicate_that_a_question_of_one_key_does_not_expect_is_found(
    ctx: Context,
) -> None:
    assert near_of(ctx) == NearDuplicates(0, 4, 4, {})
    make_the_same(ctx, "battery:0", "battery:1")
    found = near_of(ctx)
    assert isinstance(found, NearDuplicates)
    assert (found.found, sorted(found.examples.values())) == (2, ["battery:0", "battery:1"])
    [said] = [each for each in warnings(stats_of(ctx.database), found) if "near-dup" in each]
    assert said.startswith("2 questions of one key have a near-duplicate of their chunk")


def test_a_chunk_of_another_tenant_that_has_the_same_key_is_none_of_a_questions_own(
    ctx: Context,
) -> None:
    make_the_same(ctx, "battery:0", "battery:1")
    execute(ctx.database, "UPDATE recallwatch.question SET tenant = 'acme'")
    assert near_of(ctx) == NearDuplicates(0, 4, 4, {})


def test_a_sample_is_not_taken_for_the_whole_set(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_stats, "MOST_LOOKED_AT", 2)
    make_the_same(ctx, "battery:0", "battery:1")

    found = near_of(ctx)

    assert isinstance(found, NearDuplicates)
    assert (found.looked_at, found.of) == (2, 4)
    [said] = [each for each in warnings(stats_of(ctx.database), found) if "near-dup" in each]
    assert said.startswith(f"{found.found} of 2 questions of one key that were looked at have")


def test_a_near_duplicate_that_was_judged_is_no_surprise(ctx: Context) -> None:
    make_the_same(ctx, "weight:0", "battery:0")
    asked = replace(GOLDEN[3], expected={"weight:0": 1, "battery:0": 0})
    import_set(ctx.database, [asked], replace=True)
    assert near_of(ctx) == NearDuplicates(0, 1, 1, {})


def test_a_corpus_that_is_not_there_is_said(open_context: Opener) -> None:
    ctx = open_context(corpus_url=SecretStr("postgresql://nobody@127.0.0.1:1/none"))
    found = near_of(ctx)
    assert isinstance(found, str)
    assert any(found in each for each in warnings(stats_of(ctx.database), found))


def many(n: int, source: Source = Source.MANUAL, category: str = "how") -> list[Question]:
    return [
        Question(f"question {category} {i}", {f"d{i}:0": 1}, source=source, category=category)
        for i in range(n)
    ]


@pytest.mark.parametrize(("questions", "said"), [
    (many(50), []),
    (many(49), ["49 answerable questions are active: under 50"]),
    (many(50) + many(4, category="why"), ["under 5 questions in categories why (4)"]),
    (many(50) + many(5, category="why"), []),
    (many(50) + many(5, Source.SYNTHETIC, "why"), [
        "5 active synthetic questions were reviewed by nobody",
    ]),
    (many(60, Source.SYNTHETIC), [
        "all active questions are synthetic", "60 active synthetic questions were reviewed by",
    ]),
])  # fmt: skip
def test_what_weakens_a_set_is_warned_of(
    ctx: Context, questions: list[Question], said: list[str]
) -> None:
    import_set(ctx.database, questions, replace=True)
    warned = warnings(stats_of(ctx.database), None)
    assert len(warned) == len(said)
    assert all(each.startswith(due) for each, due in zip(warned, said, strict=True))
