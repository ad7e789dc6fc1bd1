"""A whole vector[] parameter, there and back."""

from typing import Any

import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector

from pipeline.errors import CorpusError
from pipeline.retrieval.vector_arrays import VectorArray, register_vector_array

Connection = psycopg.Connection[Any]


@pytest.mark.parametrize(("count", "dimensions"), [(1, 1), (1, 3), (2, 1536), (300, 256)])
def test_the_server_reads_the_very_values(conn: Connection, count: int, dimensions: int) -> None:
    register_vector(conn)
    register_vector_array(conn)
    matrix = np.random.default_rng(1).standard_normal((count, dimensions), dtype=np.float32)
    rows = conn.cursor(binary=True).execute(
        "SELECT v, n FROM unnest(%b::vector[]) WITH ORDINALITY AS t(v, n)", [VectorArray(matrix)]
    )
    returned = rows.fetchall()
    assert [number for _, number in returned] == list(range(1, count + 1))
    np.testing.assert_array_equal(np.stack([v.to_numpy() for v, _ in returned]), matrix)


def test_no_vectors_are_an_empty_array(conn: Connection) -> None:
    register_vector_array(conn)
    nothing = VectorArray(np.empty((0, 3), dtype=np.float32))
    assert conn.execute("SELECT cardinality(%b::vector[])", [nothing]).fetchone() == (0,)


def test_the_server_refuses_what_is_no_vector(conn: Connection) -> None:
    register_vector_array(conn)
    with pytest.raises(psycopg.DataError, match="NaN not allowed"):
        conn.execute("SELECT %b::vector[]", [VectorArray(np.full((2, 3), np.nan, np.float32))])


def test_registering_twice_does_no_harm(conn: Connection) -> None:
    register_vector_array(conn)
    register_vector_array(conn)
    one = VectorArray(np.ones((1, 3), dtype=np.float32))
    assert conn.execute("SELECT (%b::vector[])[1]::text", [one]).fetchone() == ("[1,1,1]",)


def test_a_database_without_pgvector_is_named(database: str) -> None:
    with (
        psycopg.connect(database, autocommit=True) as plain,
        pytest.raises(CorpusError, match=r"database t_.* has no type vector .*CREATE EXTENSION"),
    ):
        register_vector_array(plain)
