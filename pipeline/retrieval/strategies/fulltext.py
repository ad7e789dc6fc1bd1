"""The settings of full text search."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.retrieval.strategies.filters import Filters
from pipeline.settings_types import Share, Visible

Match = Literal["any", "all", "websearch", "phrase"]

RankWeights = Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=4, max_length=4)]
"""What lexemes of the weights D, C, B and A count, in this order."""


class FulltextStrategy(Filters):
    """PostgreSQL full text search."""

    kind: Literal["fulltext"] = Field("fulltext", description="PostgreSQL full text search")
    config: Visible = Field(
        "question",
        min_length=1,
        description="text search configuration; question: that of the question's language; row:"
        " each chunk's own, or that of its language; or the name of one for all",
    )
    unaccent: Literal["auto"] | bool = Field(
        "auto",
        description="whether accents are taken off; auto: off questions where the generated"
        " text_search column has them off; true: also off chunks that are parsed at each search",
    )
    match: Match = Field(
        "any",
        description="any: one shared term is enough; all: every term must occur; phrase: side by"
        ' side; websearch: as "quoted", or and - say',
    )
    rank: Literal["ts_rank", "ts_rank_cd"] = Field(
        "ts_rank", description="ranking function: ts_rank or ts_rank_cd"
    )
    rank_weights: RankWeights | None = Field(
        None,
        description="the ranking function's weights of D, C, B and A; unset: PostgreSQL's",
        examples=[[0.1, 0.2, 0.4, 1.0]],
    )
    normalization: int = Field(0, ge=0, le=63, description="the ranking function's last argument")
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
