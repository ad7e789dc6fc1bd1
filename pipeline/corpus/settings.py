"""The [corpus] table: where the chunks live, and what each column holds."""

from typing import Any

from pydantic import Field, model_validator

from pipeline.settings_types import Identifier, Section, Visible

MANAGED_TABLE = "recallwatch_corpus.chunks"
"""The chunks table that `recallwatch corpus load` owns."""


class CorpusSettings(Section):
    """Where the chunks live. The defaults describe the table that `corpus load` writes."""

    table: Visible = Field(MANAGED_TABLE, description="chunks table, as schema.table or table")
    document_id: Identifier = Field("document_id", description="column: document id")
    chunk_index: Identifier = Field(
        "chunk_index", description="column: number of the chunk in its document"
    )
    content: Identifier = Field("content", description="column: the chunk's text")
    embedding: Identifier = Field("embedding", description="column: vector(n)")
    tenant: Identifier | None = Field(None, description="column: tenant, where there is one")
    language: Identifier | None = Field(None, description="column: language, where there is one")
    text_search: Identifier | None = Field(
        None, description="column: tsvector; without it texts are parsed at each search (slow)"
    )
    text_config: Visible | None = Field(
        None,
        description="text search configuration for questions without a language; "
        "unset: the one most chunks have, else simple",
        examples=["english"],
    )

    staging: bool = Field(
        default=False,
        description="true: recallwatch calibrate --reindex may rebuild the vector index",
    )

    @model_validator(mode="before")
    @classmethod
    def _describe_managed_table(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic's signature
        if isinstance(values, dict) and values.get("table", MANAGED_TABLE) == MANAGED_TABLE:
            managed = {"tenant": "tenant", "language": "language", "text_search": "text_search"}
            return managed | values
        return values

    @property
    def is_managed(self) -> bool:
        """True when the table is the one that `recallwatch corpus load` writes."""
        return self.table == MANAGED_TABLE
