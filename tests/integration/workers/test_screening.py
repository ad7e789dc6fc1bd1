import json
from dataclasses import replace

import pytest

from db.session import Database
from pipeline.corpus.reading import Chunk, read_chunks
from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.local import LocalEmbedder
from pipeline.generation.base import Ask, SourceChunk
from pipeline.generation.settings import GenerationSettings
from pipeline.types import Kind, Question
from tests.integration.db.building import execute, fetch, import_set
from tests.integration.db.generating import answered, create, plan, status
from tests.integration.workers.conftest import TENANTS, TEXTS
from tests.integration.workers.screened import (
    BATTERY,
    PARCEL,
    RETURN,
    add,
    drafted,
    facts_of,
    outcomes,
    searched,
    synthetic,
)
from tests.integration.workers.working import DIMENSIONS
from tests.shared import collection, needs_shared
from workers.context import Context
from workers.screening import screen


def test_a_sound_question_is_proposed_with_its_evidence_and_its_round_trip(
    ctx: Context, db: Database
) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY)])

    assert screen(ctx, generation_id)

    [question] = synthetic(db)
    assert (question["text"], question["status"], question["kind"]) == (
        BATTERY, "proposed", "answerable",
    )  # fmt: skip
    evidence = """SELECT e.text FROM recallwatch.judgment j
        JOIN recallwatch.evidence e ON e.hash = j.evidence_hash
        WHERE j.question_id = :id AND j.key = 'battery:0'"""
    assert fetch(db, evidence, {"id": question["id"]}) == [TEXTS["battery:0"]]
    facts = question["provenance"]["facts"]
    assert set(facts["ranks"]) == {"vector", "fulltext", "hybrid"}
    assert 1 <= facts["ranks"]["vector"]["battery:0"] <= len(TEXTS)
    assert facts == facts_of(db, generation_id)
    assert status(db, generation_id) == "completed"


@pytest.mark.parametrize(
    ("text", "rejection"),
    [
        ("???", "empty"),
        ("For what period does a cell \x1b[2Jkeep it alive?", "control_characters"),
        ("For what period does a \u202ecell keep it alive?", "control_characters"),
        ("battery " * 41, "too_long"),
        ("How does it work?", "too_generic"),
        ("According to the passage, does it last long?", "refers_to_text"),
        ("Wie lange hält eine frische Zelle in dem Gerät?", "wrong_language"),
        ("Is it so that the battery of the remote control lasts long?", "shared_run"),
        ("Which remote, a control, has two batteries lasting years?", "overlap"),
        ("which CELLS does the remote control take", "duplicate"),
    ],
)
def test_each_filter_refuses_under_its_name_and_says_what_it_saw(
    ctx: Context, db: Database, text: str, rejection: str
) -> None:
    generation_id = drafted(db, [("battery:0", text)])

    assert screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", rejection)]
    assert fetch(db, "SELECT detail FROM recallwatch.candidate", {}) != [None]
    assert synthetic(db) == []


def test_a_forbidden_term_is_refused_in_any_form(ctx: Context, db: Database) -> None:
    question = ("battery:0", "Do the batteries keep for ages?")
    generation_id = drafted(db, [question], asks={"forbidden": ["battery"]})

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", "forbidden_term")]


def test_nearly_the_same_question_is_refused_by_its_meaning(ctx: Context, db: Database) -> None:
    settings = GenerationSettings(near_duplicate=0.8, max_overlap=1)
    question = ("battery:0", "How long does a battery of the remote last?")
    generation_id = drafted(db, [question], plans={"generation": settings})

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", "near_duplicate")]
    nearest = facts_of(db, generation_id)["nearest_question"]
    assert nearest["text"] == "How long does the battery of the remote last?"
    assert nearest["cosine"] >= 0.8


def test_of_two_candidates_that_ask_the_same_the_first_is_kept(ctx: Context, db: Database) -> None:
    drafts = [("battery:0", BATTERY), ("battery:1", PARCEL), ("battery:1", BATTERY.upper())]
    generation_id = drafted(db, drafts)

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [
        ("kept", None), ("kept", None), ("rejected", "duplicate"),
    ]  # fmt: skip


@pytest.mark.parametrize("state", ["rejected", "retired", "proposed"])
def test_what_a_set_has_is_not_proposed_again_whatever_became_of_it(
    ctx: Context, db: Database, state: str
) -> None:
    import_set(db, [Question(BATTERY, {"battery:1": 1}, external_id="mine")])
    becomes = "UPDATE recallwatch.question SET status = :state WHERE external_id = 'mine'"
    execute(db, becomes, {"state": state})
    generation_id = drafted(db, [("battery:0", BATTERY)])

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", "duplicate")]


def test_another_tenants_question_is_no_duplicate(ctx: Context, db: Database) -> None:
    import_set(
        db,
        [Question(RETURN, {"return:1": 1}), Question(RETURN, {"warranty:0": 1}, tenant="globex")],
    )
    generation_id = drafted(db, [("return:0", RETURN)])

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("kept", None)]
    assert synthetic(db)[0]["tenant"] == "acme"


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ("UPDATE {} SET content = 'It lasts a day.' WHERE document_id = 'battery'", "another text"),
        ("DELETE FROM {} WHERE document_id = 'battery'", "not in the corpus any more"),
    ],
)
def test_a_question_whose_chunk_changed_meanwhile_is_refused(
    ctx: Context, db: Database, change: str, detail: str
) -> None:
    execute(db, change.format(ctx.corpus_table()))
    generation_id = drafted(db, [("battery:0", BATTERY), ("weight:0", PARCEL)])

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", "source_changed"), ("kept", None)]
    [said] = fetch(db, "SELECT detail FROM recallwatch.candidate WHERE number = 1", {})
    assert detail in said


def test_near_duplicates_of_the_source_are_proposed_as_further_keys(
    ctx: Context, db: Database
) -> None:
    copied = TEXTS["battery:0"]
    [vector] = LocalEmbedder(DIMENSIONS).embed([copied])
    add(ctx, Chunk("manual", 7, copied, None, "en", vector))
    generation_id = drafted(db, [("battery:0", BATTERY)])

    screen(ctx, generation_id)

    proposed = fetch(db, "SELECT to_jsonb(p) FROM recallwatch.proposed_key p", {})
    [copy] = [each for each in proposed if each["key"] == "manual:7"]
    assert copy["reason"] == "near-duplicate of battery:0"
    assert copy["similarity"] == pytest.approx(1)


def test_a_question_of_several_chunks_has_a_rank_for_each(ctx: Context, db: Database) -> None:
    chunks = [SourceChunk(key, TEXTS[key], None, "en") for key in ("reset:0", "battery:1")]
    question = "May I swap cells while wiping my gadget clean?"
    generation_id = create(db, [Ask(chunks, ["comparison"])], settings=plan(**searched()))
    answered(db, generation_id, 1, question)
    execute(
        db,
        """UPDATE recallwatch.candidate SET expected = '{"reset:0": 1, "battery:1": 1}'""",
        {},
    )

    screen(ctx, generation_id)

    assert set(facts_of(db, generation_id)["ranks"]["vector"]) == {"reset:0", "battery:1"}


def test_a_question_of_several_chunks_that_needs_only_one_is_refused(
    ctx: Context, db: Database
) -> None:
    chunks = [SourceChunk(key, TEXTS[key], None, "en") for key in ("reset:0", "battery:1")]
    generation_id = create(db, [Ask(chunks, ["comparison"])], settings=plan(**searched()))
    answered(db, generation_id, 1, "May I wipe my gadget clean while it hangs?")

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", "chunk_not_needed")]
    [said] = fetch(db, "SELECT detail FROM recallwatch.candidate", {})
    assert said == "it was to need 2 chunks, and does not need battery:1"


def test_a_question_of_another_category_than_asked_for_is_kept_and_says_so(
    ctx: Context, db: Database
) -> None:
    ask = Ask([SourceChunk("battery:0", TEXTS["battery:0"], None, "en")], ["factual", "procedural"])
    generation_id = create(db, [ask], settings=plan(**searched()))
    answered(db, generation_id, 1, BATTERY, "Who has to swap dead cells, me or a shop?")

    screen(ctx, generation_id)

    assert [each["category"] for each in synthetic(db)] == ["factual", "factual"]
    stored = fetch(db, "SELECT facts FROM recallwatch.candidate ORDER BY ordinal", {})
    assert [facts.get("instead_of") for facts in stored] == [None, "procedural"]


def test_a_question_is_checked_with_the_texts_of_its_own_tenant(ctx: Context, db: Database) -> None:
    execute(db, f"CREATE TABLE shared AS TABLE {ctx.corpus_table()}")
    execute(db, """
        INSERT INTO shared (document_id, chunk_index, content, tenant, embedding)
        SELECT document_id, chunk_index, 'Another text.', owner, embedding
        FROM shared, unnest(ARRAY['a', 'zeta']) owner WHERE document_id = 'return'
    """)  # fmt: skip
    search = searched(corpus=CorpusSettings(table="shared", tenant="tenant", language=None))
    generation_id = drafted(db, [("return:0", RETURN)], plans=search)

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("kept", None)]
    assert set(facts_of(db, generation_id)["ranks"]) == {"vector", "fulltext", "hybrid"}


def test_an_unanswerable_question_is_kept_with_what_comes_back_for_it(
    ctx: Context, db: Database
) -> None:
    question = ("weight:0", "Who designed the colourful stamp on my letter?")
    generation_id = drafted(db, [question], asks={"kind": Kind.UNANSWERABLE})

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("kept", None)]
    [stored] = synthetic(db)
    assert stored["kind"] == "unanswerable"
    returned = stored["provenance"]["facts"]["returned"]
    assert len(returned["vector"]) == 3
    assert "ranks" not in stored["provenance"]["facts"]


def test_an_unanswerable_question_that_a_chunk_answers_is_refused(
    ctx: Context, db: Database
) -> None:
    question = ("weight:0", "Do warranties cover manufacturing faults for three years?")
    generation_id = drafted(db, [question], asks={"kind": Kind.UNANSWERABLE})

    screen(ctx, generation_id)

    assert outcomes(db, generation_id) == [("rejected", "answered")]
    [said] = fetch(db, "SELECT detail FROM recallwatch.candidate", {})
    assert said.startswith("warranty:0 holds")


def test_questions_are_active_where_no_review_was_asked_for(ctx: Context, db: Database) -> None:
    generation_id = drafted(db, [("battery:0", BATTERY)], plans={"activate": True})

    screen(ctx, generation_id)

    assert synthetic(db)[0]["status"] == "active"


def test_how_near_answerable_questions_are_is_learnt_from_the_set(
    ctx: Context, db: Database
) -> None:
    known = [Question(f"{TEXTS[key]} ({n})", {key: 1}) for key in TEXTS for n in range(3)]
    import_set(db, [replace(each, tenant=TENANTS.get(next(iter(each.expected)))) for each in known])
    question = ("weight:0", "Who designed the colourful stamp on my letter?")
    generation_id = drafted(db, [question], asks={"kind": Kind.UNANSWERABLE})

    screen(ctx, generation_id)

    # Questions that repeat their chunk, bar a number, are all but as near to it as can be.
    assert facts_of(db, generation_id)["usual_cosine"] > 0.9
    assert outcomes(db, generation_id) == [("kept", None)]


@needs_shared
def test_real_portuguese_questions_are_only_refused_for_their_words(
    ctx: Context, db: Database
) -> None:
    chunks = {chunk.key: chunk for chunk in read_chunks(collection("faquad-pt").chunks)}
    vectors = LocalEmbedder(DIMENSIONS).embed([chunk.content for chunk in chunks.values()])
    for chunk, vector in zip(chunks.values(), vectors, strict=True):
        chunks[chunk.key] = replace(chunk, embedding=vector)
    add(ctx, *chunks.values())
    with collection("faquad-pt").golden.open(encoding="utf-8") as lines:
        golden = [json.loads(line) for line in list(lines)[::18]]
    asks, drafts = [], []
    for each in golden:
        [key] = each["expected"]
        asks.append(Ask([SourceChunk(key, chunks[key].content, None, "pt")], ["factual"]))
        copied = " ".join(chunks[key].content.split()[:12])
        drafts.append([each["question"], f"É verdade que {copied}?"])
    generation_id = create(db, asks, settings=plan(**searched()))
    for number, texts in enumerate(drafts, start=1):
        answered(db, generation_id, number, *texts)

    assert screen(ctx, generation_id)

    found = outcomes(db, generation_id)
    asked, copied_ones = found[::2], found[1::2]
    refused = {rejection for state, rejection in asked if state == "rejected"}
    assert refused <= {"overlap", "shared_run", "duplicate", "near_duplicate"}
    assert {rejection for _, rejection in copied_ones} == {"shared_run"}
    assert any(state == "kept" for state, _ in asked)
    ranks = [
        facts_of(db, generation_id, number)["ranks"]["fulltext"]
        for number, (state, _) in enumerate(asked, start=1)
        if state == "kept"
    ]
    assert any(rank == 1 for each in ranks for rank in each.values())
