"""Many vectors at once in PostgreSQL's binary format, in both directions.

The pgvector adapters send a list of vectors as text, which takes longer than the searches
themselves. Here numpy writes all of it at once, in the layout of PostgreSQL's `array_recv`: a
header, then per element its length in bytes and what pgvector's `vector_recv` reads (dimensions,
an unused field, the values), everything big-endian. `vector_send` writes what `vector_recv` reads.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo

from pipeline.errors import CorpusError
from pipeline.types import FloatMatrix

_HEADER = struct.Struct(">iiIii")
"""Number of array dimensions, whether there are NULLs, element type, length, lower bound."""


_SPARSE = struct.Struct(">iii")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class VectorArray:
    """Wraps a float32 matrix, one vector a row, to be passed as a `%b` parameter."""

    matrix: FloatMatrix


def _sent(dimensions: int, element: str = ">f4") -> list[Any]:
    """Return the fields of one vector (or halfvec: >f2) as pgvector sends and receives it."""
    return [("dimensions", ">i2"), ("unused", ">i2"), ("values", element, (dimensions,))]


def parse_vectors(sent: Sequence[bytes], dimensions: int, kind: str = "vector") -> FloatMatrix:
    """Return vectors as the `..._send` of their type wrote them, shape (n, dimensions).

    `kind`: vector, halfvec, sparsevec or bit; a bit is 0 or 1. Raises CorpusError where one has
    another length.
    """
    if kind == "sparsevec":
        return _dense(sent, dimensions)
    if kind == "bit":
        return _bits(sent, dimensions)
    element = np.dtype(_sent(dimensions, ">f2" if kind == "halfvec" else ">f4"))
    for one in sent:
        if len(one) != element.itemsize:
            width = element["values"].base.itemsize
            raise _other_length(dimensions, (len(one) - 4) // width)
    return np.frombuffer(b"".join(sent), element)["values"].astype(np.float32)


def _dense(sent: Sequence[bytes], dimensions: int) -> FloatMatrix:
    """Write out sparse vectors: dimensions, how many are not zero, unused, places, values."""
    matrix = np.zeros((len(sent), dimensions), dtype=np.float32)
    for row, one in enumerate(sent):
        length, filled, _ = _SPARSE.unpack_from(one)
        if length != dimensions:
            raise _other_length(dimensions, length)
        places = np.frombuffer(one, ">i4", filled, _SPARSE.size)
        matrix[row, places] = np.frombuffer(one, ">f4", filled, _SPARSE.size + 4 * filled)
    return matrix


def _bits(sent: Sequence[bytes], dimensions: int) -> FloatMatrix:
    """Write out bits: how many, then eight a byte, the first the highest."""
    for one in sent:
        (length,) = _LENGTH.unpack_from(one)
        if length != dimensions:
            raise _other_length(dimensions, length)
    element = np.dtype([("length", ">i4"), ("bits", np.uint8, ((dimensions + 7) // 8,))])
    packed = np.frombuffer(b"".join(sent), element)["bits"]
    return np.unpackbits(packed, axis=1, count=dimensions).astype(np.float32)


def _other_length(expected: int, found: int) -> CorpusError:
    return CorpusError(
        f"chunks have vectors of several lengths (expected {expected} dimensions, not {found}); "
        f"embed them with one model"
    )


def sparse_texts(vectors: FloatMatrix) -> list[str]:
    """Return vectors as PostgreSQL reads a sparsevec: {1:0.5,3:2}/5; places count from 1."""
    texts = []
    for vector in vectors:
        places = np.flatnonzero(vector)
        pairs = zip((places + 1).tolist(), vector[places].tolist(), strict=True)
        texts.append(f"{{{','.join(f'{at}:{value!r}' for at, value in pairs)}}}/{len(vector)}")
    return texts


def register_vector_array(conn: psycopg.Connection[Any]) -> None:
    """Let a connection send `VectorArray` parameters; twice does no harm.

    Raises CorpusError where the type `vector` is not on the connection's search path.
    """
    info = TypeInfo.fetch(conn, "vector")
    if info is None:
        raise CorpusError(
            f"database {conn.info.dbname} has no type vector on its search path; "
            f"run `CREATE EXTENSION vector` there"
        )
    dumper = type("VectorArrayDumper", (_Dumper,), {"oid": info.array_oid, "item_oid": info.oid})
    conn.adapters.register_dumper(VectorArray, dumper)


class _Dumper(Dumper):
    """Writes the array; the type's numbers differ between databases, so a subclass holds them."""

    format = Format.BINARY
    item_oid: int

    def dump(self, obj: VectorArray) -> Buffer:
        count, dimensions = obj.matrix.shape
        if count == 0:
            return struct.pack(">iiI", 0, 0, self.item_oid)
        element = np.dtype([("length", ">i4"), *_sent(dimensions)])
        buffer = np.empty(_HEADER.size + count * element.itemsize, dtype=np.uint8)
        _HEADER.pack_into(buffer.data, 0, 1, 0, self.item_oid, count, 1)
        elements = buffer[_HEADER.size :].view(element)
        elements["length"] = element.itemsize - 4
        elements["dimensions"] = dimensions
        elements["unused"] = 0
        elements["values"] = obj.matrix
        return buffer.data
