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


@dataclass(frozen=True, slots=True)
class VectorArray:
    """Wraps a float32 matrix, one vector a row, to be passed as a `%b` parameter."""

    matrix: FloatMatrix


def _sent(dimensions: int) -> list[tuple[str, str] | tuple[str, str, tuple[int]]]:
    """Return the fields of one vector as pgvector sends and receives it."""
    return [("dimensions", ">i2"), ("unused", ">i2"), ("values", ">f4", (dimensions,))]


def parse_vectors(sent: Sequence[bytes], dimensions: int) -> FloatMatrix:
    """Return vectors as `vector_send` wrote them, shape (n, dimensions).

    Raises CorpusError where one has another length.
    """
    element = np.dtype(_sent(dimensions))
    for one in sent:
        if len(one) != element.itemsize:
            raise CorpusError(
                f"chunks have vectors of several lengths (expected {dimensions} dimensions, not "
                f"{len(one) // 4 - 1}); embed them with one model"
            )
    return np.frombuffer(b"".join(sent), element)["values"].astype(np.float32)


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
