"""A/A pairs on a real index: quiet when it is asked again, noisy when it is rebuilt."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from cli.embedded.stack import Servers
from db import calibrations
from db.models import GoldenItem, Run
from db.results import ResultRow
from db.session import Database
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.local import LocalEmbedder
from pipeline.errors import CorpusError, PermanentError, TransientError, UnmeasuredError, UsageError
from pipeline.retrieval.strategies import FulltextStrategy, HybridStrategy, VectorStrategy
from pipeline.settings import EvalSettings
from pipeline.types import Outcome, Question
from tests.conftest import at_database
from tests.integration.conftest import copy_of
from tests.integration.db.building import execute, fetch, import_set
from tests.integration.workers.conftest import Opener
from tests.integration.workers.templates import filled
from tests.integration.workers.working import DIMENSIONS
from tests.loopback.openai_server import OpenAIServer, refuse
from workers import calibrating
from workers.calibrating import Measured, Plan, choose, measure_rounds, plan, stale, store
from workers.context import Context
from workers.enqueue import Request
from workers.measuring import measure
from workers.shard_questions import Stats

CHUNKS, QUESTIONS = 2000, 40
TEXTS = [f"What is written about the matter number {i}?" for i in range(QUESTIONS)]
STRATEGIES = {
    # Few candidates: what the index finds is largely chance.
    "vector": VectorStrategy(ef_search=3),
    "fulltext": FulltextStrategy(),
    "hybrid": HybridStrategy(depth=3),
}


@pytest.fixture(scope="module")
def noisy_template(servers: Servers, migrated_template: str) -> Iterator[str]:
    """Give a database whose questions expect the three chunks that exact search finds."""
    vectors = np.random.default_rng(5).normal(size=(CHUNKS, DIMENSIONS)).astype(np.float32)
    chunks = [Chunk("d", i, f"chunk {i}", embedding=each) for i, each in enumerate(vectors)]
    asked = LocalEmbedder(DIMENSIONS).embed(TEXTS)
    nearest = np.argsort(-asked @ (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T)
    golden = [
        Question(text, {f"d:{number}": 1 for number in best[:3]})
        for text, best in zip(TEXTS, nearest.tolist(), strict=True)
    ]
    with filled(servers, migrated_template, chunks, golden) as name:
        yield name


@pytest.fixture
def url(servers: Servers, noisy_template: str) -> Iterator[str]:
    assert servers.database_url is not None
    with copy_of(servers, noisy_template) as name:
        yield at_database(servers.database_url, name)


@pytest.fixture
def ctx(open_context: Opener) -> Context:
    return open_context(strategies=STRATEGIES, eval=EvalSettings(k=3, shard_size=15))


@dataclass
class Steps:
    """What a progress bar would have been told."""

    told: list[int] = field(default_factory=list)

    def __call__(self, questions: int) -> None:
        self.told.append(questions)


def planned(ctx: Context, *strategies: str, reindex: bool = False, pairs: int = 4) -> Plan:
    choice = choose(ctx.settings, Request(strategies=strategies or None), reindex=reindex)
    return plan(ctx, choice, pairs=pairs)


def calibrated(
    ctx: Context, *strategies: str, reindex: bool = False, pairs: int = 4
) -> list[Measured]:
    return measure_rounds(ctx, planned(ctx, *strategies, reindex=reindex, pairs=pairs), Steps())


def test_the_same_index_asked_again_never_flips(ctx: Context) -> None:
    found = calibrated(ctx)

    assert [each.run.strategy for each in found] == ["vector", "fulltext", "hybrid"]
    for each in found:
        figures = each.figures
        assert (figures.n, figures.pairs, each.failed) == (QUESTIONS, 4, 0)
        assert (figures.flips, figures.largest_net) == (0, 0)
        assert {*figures.differences} == {
            "hit@3", "recall@3", "precision@3", "mrr@3", "map@3", "ndcg@3",
        }  # fmt: skip
        assert {*map(tuple, figures.differences.values())} == {((0.0, 4 * QUESTIONS),)}


Rounds = dict[str, list[dict[int, float]]]


def spied(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    """Note hit@3 of each question by strategy and round, as it was measured."""
    seen: Rounds = {}

    def note(ctx: Context, run: Run, items: Sequence[GoldenItem]) -> tuple[list[ResultRow], Stats]:
        rows, stats = measure(ctx, run, items)
        rounds = seen.setdefault(run.strategy, [])
        for row in rows:
            if row.position == 0:
                rounds.append({})
            assert row.measured is not None
            rounds[-1][row.position] = row.measured[0]
        return rows, stats

    monkeypatch.setattr(calibrating, "measure", note)
    return seen


def test_rebuilding_the_index_flips_questions_which_are_counted(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = spied(monkeypatch)
    wanted = planned(ctx, reindex=True)
    assert wanted.index is not None
    assert [run.strategy for run in wanted.runs] == ["vector", "hybrid"]

    found = measure_rounds(ctx, wanted, Steps())

    vector = found[0].figures
    assert vector.flips > 0, "an index with three candidates is not that steady"
    for each in found:
        hits = [
            [round_[position] for position in range(QUESTIONS)]
            for round_ in seen[each.run.strategy]
        ]
        assert len(hits) == 5
        flips = sum(
            was != now
            for before, after in itertools.pairwise(hits)
            for was, now in zip(before, after, strict=True)
        )
        nets = [abs(sum(a) - sum(b)) for a, b in itertools.combinations(hits, 2)]
        assert (each.figures.flips, each.figures.largest_net) == (flips, max(nets))
    after = planned(ctx, reindex=True)
    assert after.index is not None
    assert after.index.file != wanted.index.file


def test_the_index_is_rebuilt_once_between_rounds_for_all_strategies(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt: list[str] = []
    monkeypatch.setattr(calibrating, "rebuild", lambda *_: rebuilt.append("rebuilt"))

    calibrated(ctx, reindex=True, pairs=5)

    assert len(rebuilt) == 5


def test_progress_counts_every_question_of_every_round(ctx: Context) -> None:
    steps, wanted = Steps(), planned(ctx, "fulltext", "vector")

    measure_rounds(ctx, wanted, steps)

    assert sum(steps.told) == wanted.total == 5 * 2 * QUESTIONS
    assert max(steps.told) == 15, "[eval] shard_size"


def test_what_is_stored_is_what_a_later_run_finds(ctx: Context, db: Database) -> None:
    wanted = planned(ctx, "vector")
    measured = measure_rounds(ctx, wanted, Steps())

    (stored,) = store(ctx, wanted, measured)

    assert fetch(db, "SELECT count(*) FROM recallwatch.calibration") == [1]
    assert fetch(
        db,
        "SELECT 1 FROM recallwatch.batch UNION ALL SELECT 2 FROM recallwatch.run"
        " UNION ALL SELECT 3 FROM recallwatch.shard UNION ALL SELECT 4 FROM recallwatch.result",
    ) == []  # fmt: skip
    assert calibrations.figures(stored) == measured[0].figures
    assert (stored.set_name, stored.strategy, stored.k, stored.level) == (
        ("default", "vector", 3, "chunk")
    )
    assert not stored.reindexed
    assert stale(ctx, [stored]) == [[]]


def fail_sometimes(
    monkeypatch: pytest.MonkeyPatch, fails: Callable[[int, ResultRow], bool]
) -> None:
    """Let questions fail by the number of the round and their row."""
    rounds = itertools.count(-1)
    number = -1

    def spoil(ctx: Context, run: Run, items: Sequence[GoldenItem]) -> tuple[list[ResultRow], Stats]:
        nonlocal number
        if items[0].position == 0:
            number = next(rounds) + 1
        rows, stats = measure(ctx, run, items)
        return [_failed(row) if fails(number, row) else row for row in rows], stats

    monkeypatch.setattr(calibrating, "measure", spoil)


def _failed(row: ResultRow) -> ResultRow:
    return ResultRow(row.position, Outcome.FAILED, [], [], None, None, [], "no answer")


def test_a_question_that_fails_in_one_round_is_left_out_of_all(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_sometimes(monkeypatch, lambda number, row: row.position in {(number, 7), 20 + number})

    (found,) = calibrated(ctx, "fulltext")

    assert found.failed == 5
    assert found.figures.n == QUESTIONS - 5
    assert found.figures.differences["hit@3"] == [(0.0, 4 * (QUESTIONS - 5))]


def test_where_no_question_is_scored_in_all_rounds_nothing_was_measured(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_sometimes(monkeypatch, lambda number, row: row.position % 5 == number)

    with pytest.raises(
        UnmeasuredError,
        match=r"^fulltext: no question was scored in every round \(40 failed, first error: no ans",
    ):
        calibrated(ctx, "fulltext")


def test_an_error_of_a_server_ends_it(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(*_: object) -> None:
        raise TransientError("the server is gone")

    wanted = planned(ctx, "fulltext", "vector")
    monkeypatch.setattr(calibrating, "measure", spoil)

    with pytest.raises(TransientError, match="the server is gone"):
        measure_rounds(ctx, wanted, Steps())


def test_a_role_that_may_not_rebuild_is_told_so(ctx: Context, db: Database) -> None:
    wanted = planned(ctx, "vector", reindex=True)
    execute(
        db,
        "CREATE ROLE calibration_reader; GRANT USAGE ON SCHEMA recallwatch_corpus TO"
        " calibration_reader; GRANT SELECT ON recallwatch_corpus.chunks TO calibration_reader",
    )
    try:
        ctx.corpus().execute("SET ROLE calibration_reader")
        with pytest.raises(CorpusError, match="could not rebuild the vector index"):
            measure_rounds(ctx, wanted, Steps())
    finally:
        ctx.corpus().execute("RESET ROLE")
        execute(db, "DROP OWNED BY calibration_reader; DROP ROLE calibration_reader")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE recallwatch_corpus.chunks SET content = 'x' WHERE chunk_index = 1", "chunk texts"),
        ("DELETE FROM recallwatch_corpus.chunks WHERE chunk_index = 1", "chunks 2,000 -> 1,999"),
        ("REINDEX INDEX recallwatch_corpus.chunks_embedding", "index rebuilt"),
    ],
)
def test_a_corpus_that_changed_meanwhile_was_not_the_same_thing(
    ctx: Context, db: Database, change: str, said: str
) -> None:
    wanted = planned(ctx, "fulltext")
    execute(db, change)

    with pytest.raises(CorpusError, match=f"changed while it was measured .*{said}"):
        measure_rounds(ctx, wanted, Steps())


def test_without_an_index_there_is_nothing_to_rebuild(ctx: Context, db: Database) -> None:
    execute(db, "DROP INDEX recallwatch_corpus.chunks_embedding")

    with pytest.raises(
        UsageError, match=r"no index that serves strategy vector.*needs no calibration"
    ):
        planned(ctx, "vector", reindex=True)
    assert planned(ctx, "vector").index is None


def test_a_staging_copy_of_ones_own_table_is_rebuilt(open_context: Opener, db: Database) -> None:
    execute(db, 'CREATE SCHEMA "My copy"')
    execute(db, 'ALTER TABLE recallwatch_corpus.chunks SET SCHEMA "My copy"')
    execute(db, 'ALTER INDEX "My copy".chunks_embedding RENAME TO "The index"')
    ctx = open_context(
        strategies=STRATEGIES,
        eval=EvalSettings(k=3),
        corpus=CorpusSettings(table="My copy.chunks", staging=True),
    )
    wanted = planned(ctx, "vector", reindex=True)

    (found,) = measure_rounds(ctx, wanted, Steps())

    assert wanted.index is not None
    assert wanted.index.name == "The index"
    assert found.figures.flips > 0


def test_questions_are_embedded_once(remote: Context, provider: OpenAIServer) -> None:
    (found,) = calibrated(remote, "vector")

    assert sum(len(request.texts) for request in provider.requests) == QUESTIONS
    assert found.figures.flips == 0


def test_a_provider_that_refuses_ends_it(remote: Context, provider: OpenAIServer) -> None:
    wanted = planned(remote, "vector")
    provider.default = refuse(401, "Incorrect API key", code="invalid_api_key")

    with pytest.raises(PermanentError, match="OPENAI_API_KEY is not accepted"):
        measure_rounds(remote, wanted, Steps())


def test_what_changed_since_makes_a_calibration_stale(
    ctx: Context, open_context: Opener, db: Database
) -> None:
    wanted = planned(ctx, "vector", "fulltext")
    stored = store(ctx, wanted, measure_rounds(ctx, wanted, Steps()))
    execute(db, "DELETE FROM recallwatch_corpus.chunks WHERE chunk_index >= 1500")
    import_set(db, [Question("one more", {"d:1": 1})])
    shared = ["corpus had 2,000 chunks, now 1,500", "golden set changed"]

    assert stale(ctx, stored) == [shared, shared]

    wider = STRATEGIES | {"vector": VectorStrategy(ef_search=200)}
    other = open_context(strategies=wider, eval=EvalSettings(k=3))
    assert stale(other, stored) == [["other strategy settings", *shared], shared]
    execute(db, "DROP INDEX recallwatch_corpus.chunks_embedding")
    assert stale(ctx, stored) == [["other index options", *shared], shared]
    gone = open_context(strategies={"fulltext": FulltextStrategy()})
    assert stale(gone, stored)[0] == ["strategy is not in the settings"]
