"""The bytes of many vectors, against pgvector's own adapter for a single one."""

import struct

import numpy as np
import pytest
from pgvector import Vector

from pipeline.errors import CorpusError
from pipeline.retrieval.vector_arrays import VectorArray, _Dumper, parse_vectors
from pipeline.types import FloatMatrix

OID = 16_400


class Dumper(_Dumper):
    item_oid = OID


def written(matrix: FloatMatrix) -> bytes:
    return bytes(Dumper(VectorArray).dump(VectorArray(matrix)))


@pytest.mark.parametrize(("count", "dimensions"), [(1, 1), (1, 1536), (7, 3), (250, 256)])
def test_each_element_is_what_pgvector_writes_behind_its_length(
    count: int, dimensions: int
) -> None:
    matrix = np.random.default_rng(1).standard_normal((count, dimensions), dtype=np.float32)
    elements = [Vector(row).to_binary() for row in matrix]
    header = struct.pack(">iiIii", 1, 0, OID, count, 1)
    assert written(matrix) == header + b"".join(
        struct.pack(">i", len(element)) + element for element in elements
    )


def test_an_empty_array_has_no_dimension() -> None:
    assert written(np.empty((0, 3), dtype=np.float32)) == struct.pack(">iiI", 0, 0, OID)


def test_a_matrix_in_another_layout_is_written_the_same() -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert written(np.asfortranarray(matrix)) == written(matrix)
    assert written(np.repeat(matrix, 2, axis=0)[::2]) == written(matrix)


@pytest.mark.parametrize(("count", "dimensions"), [(1, 1), (250, 256), (3, 2000)])
def test_what_pgvector_sends_is_read_back_bit_by_bit(count: int, dimensions: int) -> None:
    matrix = np.random.default_rng(2).standard_normal((count, dimensions), dtype=np.float32)
    read = parse_vectors([Vector(row).to_binary() for row in matrix], dimensions)
    assert read.dtype == np.float32
    assert read.dtype.isnative
    np.testing.assert_array_equal(read, matrix)


def test_no_vectors_are_read_as_none() -> None:
    assert parse_vectors([], 3).shape == (0, 3)


def test_a_vector_of_another_length_is_refused_with_both_lengths() -> None:
    sent = [Vector([1, 2, 3]).to_binary(), Vector([1, 2]).to_binary()]
    with pytest.raises(CorpusError, match=r"several lengths \(expected 3 dimensions, not 2\)"):
        parse_vectors(sent, 3)
