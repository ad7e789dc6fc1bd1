"""The settings of vector search."""

from typing import Literal, Self

from pydantic import Field, model_validator

from pipeline.corpus.distances import Cast, Distance
from pipeline.retrieval.strategies.filters import Filters

MAX_EF_SEARCH = 1000
"""The largest hnsw.ef_search that pgvector takes."""

MAX_PROBES = 32_768
"""The largest ivfflat.probes that pgvector takes."""


class VectorStrategy(Filters):
    """Nearest neighbours by a distance of pgvector's, through the index or exactly."""

    kind: Literal["vector"] = Field("vector", description="nearest neighbours, by pgvector")
    distance: Distance = Field(
        "cosine",
        description="cosine, inner_product, l2 or l1; between bits hamming or jaccard",
    )
    cast: Cast | None = Field(
        None,
        description="search an expression of the column, as an index of yours has it: vector or"
        " halfvec: (embedding::halfvec(n)); bit: (binary_quantize(embedding)::bit(n))",
        examples=["halfvec"],
    )
    ef_search: int = Field(
        40, ge=1, le=MAX_EF_SEARCH, description="hnsw.ef_search; raised to k where it is lower"
    )
    raise_ef_search: bool = Field(
        default=True,
        description="false: an ef_search below k stays as it is: with iterative_scan off the index"
        " returns no more",
    )
    iterative_scan: Literal["off", "strict_order", "relaxed_order"] = Field(
        "strict_order",
        description="hnsw.iterative_scan within a tenant or where: off, strict_order or"
        " relaxed_order; ivfflat.iterative_scan has no strict_order and gets relaxed_order",
    )
    max_scan_tuples: int | None = Field(
        None,
        ge=1,
        le=2**31 - 1,
        description="hnsw.max_scan_tuples; unset: the server's",
        examples=[40_000],
    )
    scan_mem_multiplier: float | None = Field(
        None,
        ge=1,
        le=1000,
        description="hnsw.scan_mem_multiplier; unset: the server's",
        examples=[2.0],
    )
    probes: int | None = Field(
        None, ge=1, le=MAX_PROBES, description="ivfflat.probes; unset: the server's", examples=[10]
    )
    max_probes: int | None = Field(
        None,
        ge=1,
        le=MAX_PROBES,
        description="ivfflat.max_probes; unset: the server's",
        examples=[100],
    )
    exact: bool = Field(default=False, description="true: compare all vectors, without the index")
    exact_below: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description="tenants with fewer chunks are searched exactly, if your search does so too",
    )
    exact_memory: int = Field(
        256,
        ge=0,
        le=100_000,
        description="with exact: megabytes of vectors that a worker process keeps; more are read"
        " again for each shard",
    )
    questions_per_statement: int = Field(
        100, ge=1, le=1000, description="questions that one SQL statement searches for"
    )

    @property
    def needs_vectors(self) -> bool:
        """Always."""
        return True

    def width(self, limit: int) -> int:
        """Return the hnsw.ef_search of a search for so many rows."""
        wanted = max(self.ef_search, limit) if self.raise_ef_search else self.ef_search
        return min(wanted, MAX_EF_SEARCH)

    @model_validator(mode="after")
    def _check_distance(self) -> Self:
        of_bits = self.distance in {"hamming", "jaccard"}
        if self.cast == "bit" and not of_bits:
            raise ValueError('cast = "bit" needs the distance hamming or jaccard')
        if self.cast in {"vector", "halfvec"} and of_bits:
            raise ValueError(f'distance {self.distance} compares bits: use cast = "bit"')
        return self
