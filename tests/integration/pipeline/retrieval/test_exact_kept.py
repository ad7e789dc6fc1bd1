"""A strategy that is exact itself: its vectors are read once a process, as far as they fit."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pipeline.corpus.table import CorpusTable
from pipeline.retrieval.build import Resources, build
from pipeline.retrieval.exact import FEW, KeepingExactRetriever
from pipeline.retrieval.kept_vectors import KeptVectors
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.tree import StrategyTree
from pipeline.retrieval.vector import VectorRetriever
from pipeline.types import Ranking
from tests.integration.pipeline.retrieval.corpora import (
    clustered,
    fill,
    questions,
    ranked,
    with_vectors,
)

Connection = psycopg.Connection[Any]

ASKED = clustered(40, 16, seed=2)
EXACT = VectorStrategy(exact=True)


class Noting(CorpusSession):
    """Notes what it is asked: a reading of vectors, or a search."""

    def __init__(
        self, conn: Connection, table: CorpusTable, *, name: str = "one", hashed: bool = True
    ) -> None:
        super().__init__(conn, table, fingerprint=name, hashed=hashed)
        self.asked: list[str] = []

    def copy_rows(
        self, statement: sql.Composed, types: Sequence[str], parameters: Mapping[str, object]
    ) -> Generator[tuple[Any, ...], None, None]:
        self.asked.append("read")
        return super().copy_rows(statement, types, parameters)

    def fetch(
        self,
        statement: sql.Composed,
        parameters: Mapping[str, object] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        share: float = 1.0,
    ) -> list[tuple[Any, ...]]:
        self.asked.append("search")
        return super().fetch(statement, parameters, settings=settings, share=share)


def noting(conn: Connection, *, hashed: bool = True) -> Noting:
    table = fill(conn, with_vectors(clustered(500, 16), ["a", "b", None]))
    return Noting(conn, table, hashed=hashed)


def ask(
    session: CorpusSession, kept: KeptVectors, count: int, tenants: Sequence[str | None] = ()
) -> list[Ranking]:
    resources = Resources(session, vectors=kept)
    retriever = build(StrategyTree("exact", EXACT), resources)
    assert isinstance(retriever, KeepingExactRetriever)
    return ranked(retriever.retrieve(questions(vectors=ASKED[:count], tenants=tenants), 7))


def test_vectors_are_read_once_for_all_batches_and_answer_as_the_server_does(
    conn: Connection,
) -> None:
    session, kept = noting(conn), KeptVectors()
    first = ask(session, kept, 40)
    again = ask(session, kept, 40)
    one = ask(session, kept, 1)

    assert session.asked == ["read"]
    assert first == again
    assert one == first[:1]
    there = ranked(VectorRetriever(session, EXACT).retrieve(questions(vectors=ASKED), 7))
    assert [each.keys for each in first] == [each.keys for each in there]


def test_a_tenants_vectors_are_kept_apart(conn: Connection) -> None:
    session, kept = noting(conn), KeptVectors()
    for _ in range(2):
        ask(session, kept, 3, ["a", None, "b"])
    assert session.asked == ["read"] * 3


def test_another_state_of_the_corpus_is_read_anew(conn: Connection) -> None:
    session, kept = noting(conn), KeptVectors()
    ask(session, kept, 2)
    other = Noting(conn, session.table, name="two")
    ask(other, kept, 2)
    assert (session.asked, other.asked) == (["read"], ["read"])


@pytest.mark.parametrize(("count", "asked"), [(FEW, "search"), (FEW + 1, "read")])
def test_vectors_of_no_known_state_are_not_kept(conn: Connection, count: int, asked: str) -> None:
    session, kept = noting(conn, hashed=False), KeptVectors()
    for _ in range(2):
        assert len(ask(session, kept, count)) == count
    assert session.asked == [asked] * 2


def test_more_vectors_than_there_is_room_for_are_not_kept(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{KeepingExactRetriever.__module__}._MEGABYTE", 100)
    session, kept = noting(conn), KeptVectors()
    first = ask(session, kept, FEW)
    many = ask(session, kept, FEW + 1)
    ask(session, kept, FEW + 1)
    assert session.asked == ["search", "read", "read"]
    assert [each.keys for each in many[:FEW]] == [each.keys for each in first]
