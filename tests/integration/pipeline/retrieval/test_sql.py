"""A statement of the owner's own: bound, prepared, read-only, each question by itself."""

from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.errors import CorpusError, RecallwatchError, TransientError
from pipeline.retrieval.build import Resources, build
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.sql import SqlRetriever
from pipeline.retrieval.strategies import HybridStrategy, SqlStrategy, Strategy, VectorStrategy
from pipeline.retrieval.tree import tree_of
from pipeline.retrieval.vector import VectorRetriever
from pipeline.types import Failure, Ranking
from tests.integration.pipeline.retrieval.corpora import (
    Passage,
    clustered,
    fill,
    questions,
    ranked,
    with_vectors,
)

Connection = psycopg.Connection[Any]

WORDS = """
SELECT doc || ':' || "Part" AS key, ts_rank("order", query) AS score
FROM "Passages", plainto_tsquery('english', :question) AS query
WHERE "order" @@ query AND (:tenant IS NULL OR customer = :tenant)
ORDER BY score DESC, key LIMIT :k
"""

NEAR = """
SELECT doc AS document_id, "Part" AS chunk_index, 1 - (vec <=> :vector) AS score
FROM "Passages" WHERE :tenant IS NULL OR customer = :tenant
ORDER BY vec <=> :vector LIMIT :k
"""


def retriever(session: CorpusSession, statement: str, **given: object) -> SqlRetriever:
    return SqlRetriever(
        "mine", session, SqlStrategy.model_validate({"statement": statement} | given)
    )


@pytest.fixture
def session(conn: Connection) -> CorpusSession:
    bodies = ["blue whales sing", "red whales", "blue moons", "100% blue 'quoted' whales"]
    passages = [
        Passage("d", n, body, ("a", "b")[n % 2], np.eye(4)[n]) for n, body in enumerate(bodies)
    ]
    return CorpusSession(conn, fill(conn, passages))


def test_keys_and_scores_are_those_of_the_statement(
    session: CorpusSession, conn: Connection
) -> None:
    asked = ["whales", "blue whales", "nothing here", "it's % :k \\ $1"]
    found = ranked(retriever(session, WORDS).retrieve(questions(texts=asked), 3))
    for text, ranking in zip(asked, found, strict=True):
        rows = conn.execute(
            """SELECT doc || ':' || "Part",
                   ts_rank("order", plainto_tsquery('english', %(q)s))::float8
               FROM "Passages" WHERE "order" @@ plainto_tsquery('english', %(q)s)
               ORDER BY 2 DESC, 1 LIMIT 3""",
            {"q": text},
        ).fetchall()
        assert list(zip(ranking.keys, ranking.scores, strict=True)) == rows
    assert [len(each.keys) for each in found] == [3, 2, 0, 0]


def test_by_vector_it_finds_what_our_own_search_finds(conn: Connection) -> None:
    vectors = clustered(400, 12)
    session = CorpusSession(conn, fill(conn, with_vectors(vectors, ("a", "b", None))))
    batch = questions(vectors=clustered(150, 12, seed=5), tenants=["a", None, "b"] * 50)
    found = ranked(retriever(session, NEAR).retrieve(batch, 7))
    expected = ranked(VectorRetriever(session, VectorStrategy(exact=True)).retrieve(batch, 7))
    assert [each.keys for each in found] == [each.keys for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.scores == pytest.approx(other.scores)


def test_a_vector_without_a_direction_fails_alone(session: CorpusSession) -> None:
    vectors = np.array([[1, 0, 0, 0], [0, 0, 0, 0]], np.float32)
    good, bad = retriever(session, NEAR).retrieve(questions(vectors=vectors), 2)
    assert isinstance(bad, Failure)
    assert ranked([good])[0].keys[0] == "d:0"


def test_more_rows_than_asked_for_are_cut_and_without_scores_the_order_stands(
    session: CorpusSession,
) -> None:
    statement = """SELECT "Part" AS key FROM "Passages" WHERE :question <> '' ORDER BY 1 DESC"""
    [found] = ranked(retriever(session, statement).retrieve(questions(texts=["x"]), 3))
    assert (list(found.keys), list(found.scores)) == (["3", "2", "1"], [1, 1 / 2, 1 / 3])


def test_a_question_that_the_statement_cannot_take_fails_alone(session: CorpusSession) -> None:
    statement = "SELECT 'a' AS key, 1 / (:question::int - 1) AS score"
    batch = questions(texts=["3", "1", "word", "2", "a\0b"])
    first, zero, word, last, nul = retriever(session, statement).retrieve(batch, 5)
    assert [each.scores for each in ranked([first, last])] == [[0.0], [1.0]]
    reasons = [each.reason for each in (zero, word, nul) if isinstance(each, Failure)]
    assert len(reasons) == 3
    assert "division by zero" in reasons[0]
    assert "invalid input syntax" in reasons[1]
    assert "characters that PostgreSQL cannot read" in reasons[2]


def test_a_slow_question_runs_into_its_own_time_limit(session: CorpusSession) -> None:
    statement = "SELECT 'a' AS key, 1 AS score FROM pg_sleep(:question::float)"
    batch = questions(texts=["0", "60", "0"])
    first, slow, last = retriever(session, statement, timeout=0.3).retrieve(batch, 5)
    assert slow == Failure("the search ran into its time limit")
    assert [list(each.keys) for each in ranked([first, last])] == [["a"], ["a"]]


def test_settings_hold_for_the_statement_alone(session: CorpusSession, conn: Connection) -> None:
    statement = "SELECT current_setting(:question) AS key"
    own = retriever(session, statement, settings={"work_mem": "7MB", "my.flag": "on"})
    found = ranked(own.retrieve(questions(texts=["work_mem", "my.flag"]), 1))
    assert [list(each.keys) for each in found] == [["7MB"], ["on"]]
    assert conn.execute("SHOW work_mem").fetchone() != ("7MB",)


@pytest.mark.parametrize(("statement", "said"), [
    ("SELECT 1 AS key FROM nowhere WHERE :question = ''", 'relation "nowhere" does not exist'),
    ("SELEKT :question", 'syntax error at or near "SELEKT"'),
    ("SELECT :question AS chunk", "returns chunk: name a column key, or two document_id and"),
    ("SELECT :question AS key FROM generate_series(1, 10001)",
     "returns 10,001 rows for one question, of which 3 are wanted: end it with LIMIT :k"),
    ("""DELETE FROM "Passages" WHERE doc = :question RETURNING doc AS key""",
     "cannot execute DELETE in a read-only transaction"),
    ("SELECT :question AS key; SELECT 2", "cannot insert multiple commands into a prepared"),
    ("SET work_mem = :question", "syntax error"),
])  # fmt: skip
def test_a_statement_that_cannot_serve_stops_the_run_saying_why(
    session: CorpusSession, statement: str, said: str
) -> None:
    with pytest.raises(RecallwatchError) as raised:
        retriever(session, statement).retrieve(questions(texts=["x", "y", "z"]), 3)
    assert said in str(raised.value)
    assert "strategy mine" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert session.conn.execute('SELECT count(*) FROM "Passages"').fetchone() == (4,)


OWN_FUNCTION = """CREATE FUNCTION find(question text) RETURNS text LANGUAGE plpgsql AS
$$ BEGIN
    IF question = 'bad' THEN RAISE EXCEPTION 'no % here', question; END IF;
    RETURN question;
END $$"""


@pytest.mark.parametrize(("statement", "said"), [
    ("SELECT to_tsquery('english', :question) AS key", 'syntax error in tsquery: "bad one"'),
    ("SELECT find(split_part(:question, ' ', 1)) AS key", "no bad here"),
    ("SELECT to_tsvector(:language::regconfig, :question) AS key",
     'text search configuration "xx" does not exist'),
    ("SELECT (SELECT :question FROM generate_series(1, length(:question) / 3)) AS key",
     "more than one row returned"),
    ("SELECT nullif(:question, 'bad one') AS key", "returns a key that is NULL"),
    ("SELECT 'a' AS key, CASE :question WHEN 'bad one' THEN 'NaN' ELSE '1' END AS score",
     "returns a score that is no number"),
    ("SELECT 'a' AS key, CASE :question WHEN 'bad one' THEN 'high' ELSE '1' END AS score",
     "returns a score that is no number"),
])  # fmt: skip
def test_whatever_the_statement_makes_of_one_question_the_others_are_answered(
    session: CorpusSession, conn: Connection, statement: str, said: str
) -> None:
    conn.execute(OWN_FUNCTION)
    batch = questions(texts=["good", "bad one", "fine"], languages=["english", "xx", "english"])
    first, bad, last = retriever(session, statement).retrieve(batch, 3)
    assert [len(each.keys) for each in ranked([first, last])] == [1, 1]
    assert isinstance(bad, Failure)
    assert said in bad.reason


@given(st.lists(st.sampled_from(["1", "0", "word"]), min_size=1, max_size=12), st.integers(1, 5))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_stay_with_their_questions_wherever_some_fail(
    session: CorpusSession, texts: list[str], together: int
) -> None:
    statement = "SELECT :question || ':' || 1 / :question::int AS key"
    batch = questions(texts=["1", *texts])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.retrieval.sql.QUESTIONS_AT_ONCE", together)
        answers = retriever(session, statement).retrieve(batch, 3)
    found = [list(each.keys) if isinstance(each, Ranking) else [] for each in answers]
    assert found == [["1:1"] if text == "1" else [] for text in batch.texts]


def test_a_slow_question_is_waited_for_once_and_too_many_hand_the_batch_back(
    session: CorpusSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.retrieval.refusals.LONGEST_WAIT", 0.25)
    statement = "SELECT 'a' AS key FROM pg_sleep(:question::float)"
    slow = retriever(session, statement, timeout=0.125)
    answers = slow.retrieve(questions(texts=["0"] * 40 + ["60"] + ["0"] * 40 + ["60"]), 1)
    assert [i for i, each in enumerate(answers) if isinstance(each, Failure)] == [40, 81]
    with pytest.raises(TransientError, match=r"ran into their time limit for 0\.375 s"):
        slow.retrieve(questions(texts=["0", "60", "60", "60"]), 1)


def test_a_column_that_got_another_type_meanwhile_fails_no_question(
    session: CorpusSession, conn: Connection
) -> None:
    statement = 'SELECT doc, "Part" AS key FROM "Passages" WHERE doc = :question LIMIT 1'
    own = retriever(session, statement)
    assert len(ranked(own.retrieve(questions(texts=["d"]), 1))) == 1
    with psycopg.connect(conn.info.dsn, autocommit=True) as another:
        another.execute('ALTER TABLE "Passages" ALTER "Part" TYPE bigint')
    assert len(ranked(own.retrieve(questions(texts=["d", "d"]), 1))) == 2


def test_without_tenant_in_the_statement_no_tenants_question_is_asked(
    session: CorpusSession,
) -> None:
    statement = """SELECT doc || ':' || "Part" AS key FROM "Passages" WHERE :question <> ''"""
    batch = questions(texts=["x", "y"], tenants=[None, "a"])
    with pytest.raises(CorpusError, match="has the tenant 'a', but the statement of strategy mine"):
        retriever(session, statement).retrieve(batch, 9)
    everyone = ranked(retriever(session, statement, tenant="ignore").retrieve(batch, 9))
    assert [len(each.keys) for each in everyone] == [4, 4]


def test_a_tenant_is_searched_alone_unless_it_is_ignored(session: CorpusSession) -> None:
    batch = questions(texts=["whales"] * 2, tenants=["b", None])
    own, whole = ranked(retriever(session, WORDS).retrieve(batch, 9))
    assert (sorted(own.keys), sorted(whole.keys)) == (["d:1", "d:3"], ["d:0", "d:1", "d:3"])
    ignoring = ranked(retriever(session, WORDS, tenant="ignore").retrieve(batch, 9))
    assert [len(each.keys) for each in ignoring] == [3, 3]


def test_one_is_an_arm_of_a_hybrid_as_any_other(session: CorpusSession) -> None:
    strategies: dict[str, Strategy] = {
        "mine": SqlStrategy(statement=NEAR),
        "words": SqlStrategy(statement=WORDS),
        "both": HybridStrategy(arms={"mine": 1.0, "words": 1.0}),
    }
    tree = tree_of("both", strategies)
    assert (tree.needs_vectors, tree.is_approximate) == (True, False)
    batch = questions(texts=["red"], vectors=np.eye(4, dtype=np.float32)[:1])
    [found] = ranked(build(tree, Resources(session)).retrieve(batch, 2))
    assert list(found.keys) == ["d:1", "d:0"]


@pytest.mark.parametrize(("statement", "said"), [
    ("SELECT :query", "no use for :query; its parameters are :question, :vector, :k, :tenant"),
    ("SELECT ':question' AS key", "asks for neither :question nor :vector"),
    ("SELECT search($1, :k) AS key, '$2', :question", r"has \$1: its parameters are :question"),
])  # fmt: skip
def test_a_wrong_parameter_is_refused_with_the_settings(statement: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SqlStrategy(statement=statement)


@pytest.mark.parametrize(("name", "said"), [
    ("Transaction_Read_Only", "a search only reads"),
    ("statement_timeout", "is set by timeout"),
])  # fmt: skip
def test_what_holds_for_every_search_is_not_lifted_by_settings(name: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SqlStrategy(statement="SELECT :question AS key", settings={name: "off"})


def test_a_wrong_setting_of_postgresql_is_not_laid_to_the_questions(session: CorpusSession) -> None:
    own = retriever(session, "SELECT :question AS key", settings={"work_mem": "much"})
    with pytest.raises(RecallwatchError, match='invalid value for parameter "work_mem": "much"'):
        own.retrieve(questions(texts=["x"]), 3)
