"""The settings of full text search."""

from typing import Literal

from pydantic import Field

from pipeline.settings_types import Section, Share


class FulltextStrategy(Section):
    """PostgreSQL full text search."""

    kind: Literal["fulltext"] = Field("fulltext", description="PostgreSQL full text search")
    match: Literal["any", "all"] = Field(
        "any", description="any: one shared term is enough; all: every term must occur"
    )
    rank: Literal["ts_rank", "ts_rank_cd"] = Field(
        "ts_rank", description="ranking function: ts_rank or ts_rank_cd"
    )
    normalization: int = Field(0, ge=0, le=63, description="the ranking function's third argument")
    max_document_frequency: Share = Field(
        0.01, description="with any: leave out terms that more than this share of chunks hold ..."
    )
    min_frequent: int = Field(
        1000, ge=0, description="... and more than this many chunks; 0: the share alone decides"
    )
    questions_per_statement: int = Field(
        100, ge=1, le=1000, description="questions that one SQL statement searches for"
    )

    @property
    def needs_vectors(self) -> bool:
        """Never: it compares words."""
        return False
