"""How stored vectors are compared: pgvector's distances, on its types and on casts of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql

from pipeline.corpus.distances import Cast, Distance
from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError


@dataclass(frozen=True, slots=True)
class _Operator:
    """`score`: of a row `found`, from its distance; higher is nearer."""

    symbol: str
    short: str
    score: str
    of_bits: bool = False


# psycopg takes a % for a parameter's place, unless it is doubled.
_OPERATORS: Mapping[Distance, _Operator] = {
    "cosine": _Operator("<=>", "cosine", "1 - found.distance"),
    "inner_product": _Operator("<#>", "ip", "-found.distance"),
    "l2": _Operator("<->", "l2", "-found.distance"),
    "l1": _Operator("<+>", "l1", "-found.distance"),
    "hamming": _Operator("<~>", "hamming", "-found.distance", of_bits=True),
    "jaccard": _Operator("<%%>", "jaccard", "1 - found.distance", of_bits=True),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A distance between questions' vectors and the table's, as they are or cast.

    Raises CorpusError where the column's type has no such distance or cast.
    """

    table: CorpusTable
    distance: Distance = "cosine"
    cast: Cast | None = None

    def __post_init__(self) -> None:
        """Refuse what pgvector has no operator for."""
        stored = self.table.types["embedding"]
        column = f"column {self.table}.{self.table.columns['embedding']} is {stored}"
        if self.cast is not None and stored not in {"vector", "halfvec"}:
            raise CorpusError(f"{column}, which cannot be cast to {self.cast}: leave cast out")
        if _OPERATORS[self.distance].of_bits != (self.type == "bit"):
            advice = 'cast = "bit"' if stored != "bit" else "distance = hamming or jaccard"
            raise CorpusError(f"{column}, which has no distance {self.distance}: set {advice}")

    @property
    def type(self) -> str:
        """The type that is compared: of the column, or that it is cast to."""
        return self.cast or self.table.types["embedding"]

    @property
    def operator(self) -> sql.SQL:
        """The operator, for a statement with parameters."""
        return sql.SQL(_OPERATORS[self.distance].symbol)

    @property
    def score(self) -> sql.SQL:
        """The expression of a score over a row `found` with a `distance`: higher is nearer."""
        return sql.SQL(_OPERATORS[self.distance].score)

    @property
    def operator_class(self) -> str:
        """The operator class of the indexes that serve it."""
        return f"{self.type}_{_OPERATORS[self.distance].short}_ops"

    def expression(self, alias: str | None = None) -> sql.Composable:
        """Return what is compared: the column behind an alias, or its cast."""
        column = self.table.column("embedding", alias)
        return column if self.cast is None else self._cast(column, sql.SQL("({}::{}({}))"))

    def index_key(self) -> sql.Composable:
        """Return what `pg_get_indexdef` writes for an index of the expression."""
        column = self.table.column("embedding")
        return column if self.cast is None else self._cast(column, sql.SQL("(({})::{}({}))"))

    def _cast(self, column: sql.Composable, written: sql.SQL) -> sql.Composable:
        inner = sql.SQL("binary_quantize({})" if self.cast == "bit" else "{}").format(column)
        size = sql.Literal(self.table.dimensions)
        return written.format(inner, sql.SQL(self.cast or ""), size)


def cosine_distance(table: CorpusTable, one: sql.Composable, other: sql.Composable) -> sql.Composed:
    """Return the cosine distance of two of the table's vectors; of bits that of 1 and -1."""
    if table.types["embedding"] != "bit":
        return sql.SQL("({} <=> {})").format(one, other)
    return sql.SQL("(2 * ({} <~> {}) / length({}))").format(one, other, one)


def as_numbers(table: CorpusTable, vector: sql.Composable) -> sql.Composed:
    """Return one of the table's vectors as real[]."""
    written = {
        "sparsevec": "{}::vector::real[]",
        "bit": "string_to_array({}::text, NULL)::real[]",
    }.get(table.types["embedding"], "{}::real[]")
    return sql.SQL(written).format(vector)


def of_numbers(table: CorpusTable, numbers: sql.Composable) -> sql.Composed:
    """Return a real[] as a vector of the table's type; a bit is 1 for what is above 0."""
    kind, dimensions = table.types["embedding"], sql.Literal(table.dimensions)
    if kind == "bit":
        return sql.SQL("binary_quantize({}::vector)::bit({})").format(numbers, dimensions)
    return sql.SQL("{}::vector::{}").format(numbers, sql.SQL(kind))


def usual(table: CorpusTable) -> Comparison:
    """Return the comparison by cosine, or of bits by Hamming distance."""
    return Comparison(table, "hamming" if table.types["embedding"] == "bit" else "cosine")
