"""The settings of search by similar spelling."""

from typing import Literal

from pydantic import Field

from pipeline.retrieval.strategies.filters import Filters
from pipeline.settings_types import Share

Similarity = Literal["similarity", "word_similarity", "strict_word_similarity"]


class TrigramStrategy(Filters):
    """Similar spelling, by the trigrams of the extension pg_trgm."""

    kind: Literal["trigram"] = Field("trigram", description="similar spelling, by pg_trgm")
    similarity: Similarity = Field(
        "word_similarity",
        description="similarity: of question and whole chunk; word_similarity: of the question and"
        " the part of the chunk most like it; strict_word_similarity: of a part of whole words",
    )
    threshold: Share | None = Field(
        None,
        description="pg_trgm's threshold: less similar chunks are not looked at; unset: the"
        " server's, which is 0.3, 0.6 or 0.5 by default, in the order of the three",
    )
    questions_per_statement: int = Field(
        100, ge=1, le=1000, description="questions that one SQL statement searches for"
    )

    @property
    def needs_vectors(self) -> bool:
        """Never: it compares spellings."""
        return False
