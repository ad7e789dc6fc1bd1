"""Chunkings over the same documents: what comes back of the judged texts, in any chunks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.chunking.splitting import Chunking
from pipeline.corpus.statistics import fingerprint
from pipeline.errors import InputError, UnmeasuredError
from pipeline.types import Question
from tests.integration.db.building import import_set
from tests.integration.workers.conftest import TEXTS
from workers.comparing.chunking_trial import Plan, Trial, Wanted, plan, run
from workers.comparing.models import one_model
from workers.context import Context

BOOK = {
    "whales.md": "# Whales\n\nBlue whales sing long songs. They migrate in autumn to warm water.",
    "below/seals.txt": "Grey seals sleep on the beach.\n\nThey eat herring and cod every day.",
    "below/.hidden.md": "Nobody reads this.",
    "notes.pdf": "Nor this.",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in BOOK.items():
        (tmp_path / "book" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "book" / name).write_text(text, encoding="utf-8")
    return tmp_path / "book"


def wanted(ctx: Context, *sizes: int, **changes: Any) -> Wanted:  # noqa: ANN401 - fields of Wanted
    return replace(
        Wanted(
            chunkings=[Chunking(size) for size in sizes], model=one_model(ctx.settings, None),
            set_name="default", k=3, budget=200, held=0.8, metric="held", folder=None,
            others=None, seed=1, max_cost=1.0,
        ),
        **changes,
    )  # fmt: skip


def done(ctx: Context, asked: Wanted) -> tuple[Plan, Trial]:
    planned = plan(ctx, asked)
    steps: list[int] = []
    trial = run(ctx, planned, steps.append)
    assert sum(steps) == planned.total
    return planned, trial


def means(trial: Trial) -> dict[str, dict[str, float]]:
    return {row.name: dict(row.means) for row in trial.experiment.rows}


def test_the_present_chunks_are_the_baseline_and_documents_are_put_together(ctx: Context) -> None:
    planned, trial = done(ctx, wanted(ctx, 60, 400))

    present, small, whole = planned.cuts
    assert [cut.name for cut in planned.cuts] == ["present", "60", "400"]
    assert sorted(present.texts) == sorted(TEXTS.values())
    assert f"{TEXTS['reset:0']}\n\n{TEXTS['reset:1']}" in whole.texts
    assert max(map(len, small.texts)) <= 60
    assert trial.experiment.rows[0].name == "present"
    assert trial.experiment.rows[2].facts["chunks"] == planned.documents == 5


def test_within_a_budget_beyond_all_letters_everything_comes_back(ctx: Context) -> None:
    _, trial = done(ctx, wanted(ctx, 60, budget=10_000))

    assert [row.means["held@10000"] for row in trial.experiment.rows] == [1.0, 1.0]


def test_questions_whose_keys_are_gone_are_left_out_and_counted(ctx: Context) -> None:
    planned, trial = done(ctx, wanted(ctx, 60))

    # Seven answerable questions, of which one expects nothing but what is not there.
    assert (trial.experiment.n, planned.unanswered, trial.failed) == (6, 1, 0)


def test_a_whole_chunk_as_judged_text_is_said_to_favour_what_is_there(ctx: Context) -> None:
    assert plan(ctx, wanted(ctx, 60)).favours_present
    import_set(
        ctx.database,
        [Question("Which cells?", {"battery:1": 1}, evidence={"battery:1": "cells of type AAA"})],
        "short",
    )
    assert not plan(ctx, wanted(ctx, 60, set_name="short")).favours_present


def test_a_tenant_s_question_is_answered_by_its_own_documents_alone(ctx: Context) -> None:
    import_set(
        ctx.database,
        [
            Question("Within how many days?", {"return:0": 1}, tenant="acme"),
            Question("Within how many days may I return?", {"return:0": 1}, tenant="globex"),
        ],
        "tenants",
    )
    planned, _ = done(ctx, wanted(ctx, 60, set_name="tenants"))

    assert [each.tenant for each in planned.asked] == ["acme"]
    assert planned.unanswered == 1


def test_production_is_read_and_not_written(ctx: Context) -> None:
    before = fingerprint(ctx.corpus(), ctx.corpus_table())

    done(ctx, wanted(ctx, 60))

    assert fingerprint(ctx.corpus(), ctx.corpus_table()) == before


EVIDENCE = "Blue whales\nsing long songs."


def import_book(ctx: Context) -> None:
    import_set(
        ctx.database,
        [
            Question("What do whales sing?", {"any:0": 1}, evidence={"any:0": EVIDENCE}),
            Question("What do seals eat?", {"x:7": 2, "x:8": 0},
                     evidence={"x:7": "They eat herring and cod every day.", "x:8": "beach"}),
            Question("Who flies?", {"x:9": 1}, evidence={"x:9": "Albatrosses fly for years."}),
        ],
        "book",
    )  # fmt: skip


def test_a_folder_s_files_are_searched_for_the_judged_texts(ctx: Context, folder: Path) -> None:
    import_book(ctx)

    planned, trial = done(ctx, wanted(ctx, 50, 200, folder=folder, set_name="book"))

    assert (planned.documents, planned.unanswered, trial.experiment.n) == (2, 1, 2)
    assert [cut.name for cut in planned.cuts] == ["50", "200"]
    assert set(planned.cuts[1].texts) == {BOOK["whales.md"], BOOK["below/seals.txt"]}
    # Of two documents all comes back; each is the first found for its own question.
    assert means(trial)["200"] == {"held@200": 1.0, "recall@3": 1.0, "mrr@3": 1.0}


def test_a_small_prompt_holds_more_of_a_text_in_small_chunks(ctx: Context, folder: Path) -> None:
    import_book(ctx)

    _, trial = done(ctx, wanted(ctx, 50, 200, folder=folder, set_name="book", budget=30))

    small, large = means(trial)["50"], means(trial)["200"]
    # The large chunks begin with "#Whales" and with all of the seals' beach: 23 of the 24 letters
    # of the whales' text are in the first thirty, and 5 of the 29 of the seals'.
    assert large["held@30"] == pytest.approx((23 / 24 + 5 / 29) / 2)
    assert small["held@30"] > large["held@30"]


def test_documents_without_any_judged_text_are_told(ctx: Context, folder: Path) -> None:
    with pytest.raises(UnmeasuredError, match="no judged text stands in the documents"):
        plan(ctx, wanted(ctx, 50, folder=folder))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"\xff\xfe", "not UTF-8 text"),
        ("a.pdf", b"x", "holds no file that ends in .txt or .md"),
    ],
)
def test_a_folder_that_cannot_be_read_is_told(
    ctx: Context, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / name).write_bytes(content)

    with pytest.raises(InputError, match=said):
        plan(ctx, wanted(ctx, 50, folder=tmp_path / "docs"))


def test_a_folder_that_is_not_there_is_told(ctx: Context, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        plan(ctx, wanted(ctx, 50, folder=tmp_path / "gone"))


def test_a_set_that_is_not_there_is_told(ctx: Context) -> None:
    with pytest.raises(InputError, match="golden set 'none' has no active question"):
        plan(ctx, wanted(ctx, 50, set_name="none"))
