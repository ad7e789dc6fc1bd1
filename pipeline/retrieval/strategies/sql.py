"""The settings of a search by a statement of the owner's own."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.retrieval.named_parameters import NamedParameters, outside_quotes
from pipeline.settings_types import Section, Visible

PARAMETERS = {
    "question": "text",
    "vector": "vector",
    "k": "bigint",
    "tenant": "text",
    "language": "text",
}
"""What a statement may ask for, and the type that it gets."""

_NUMBERED = re.compile(r"(?<![\w$])\$\d+")

_NOT_FREE = {
    "statement_timeout": "is set by timeout",
    "transaction_read_only": "is always on: a search only reads",
}


def _check_free(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse PostgreSQL's settings that would lift what holds for every search."""
    for name in settings:
        if why := _NOT_FREE.get(name.casefold()):
            raise ValueError(f"may not have {name}, which {why}")
    return settings


class SqlStrategy(Section):
    """A statement of your own, run once a question."""

    kind: Literal["sql"] = Field("sql", description="a statement of your own")
    statement: str = Field(
        min_length=1,
        description="SQL that returns key and score (or document_id, chunk_index and score), best"
        " first; parameters :question, :vector, :k, :tenant, :language",
        examples=["SELECT key, score FROM search(:question, :k)"],
    )
    tenant: Literal["question", "ignore"] = Field(
        "question",
        description="question: a question with a tenant needs :tenant in the statement; ignore:"
        " tenants do not matter",
    )
    settings: Annotated[dict[Visible, str], AfterValidator(_check_free)] = Field(
        {},
        description="PostgreSQL settings for the statement alone, by SET LOCAL",
    )
    timeout: float = Field(5.0, gt=0, le=300, description="seconds that one question may take")

    @property
    def parameters(self) -> NamedParameters:
        """The statement, with its parameters found."""
        return NamedParameters.of(self.statement)

    @property
    def needs_vectors(self) -> bool:
        """Whether it asks for the question's vector."""
        return "vector" in self.parameters.names

    @model_validator(mode="after")
    def _check_parameters(self) -> Self:
        known = ", ".join(f":{name}" for name in PARAMETERS)
        if numbered := _NUMBERED.search(outside_quotes(self.statement)):
            raise ValueError(f"statement has {numbered[0]}: its parameters are {known}")
        for name in self.parameters.names:
            if name not in PARAMETERS:
                raise ValueError(f"statement has no use for :{name}; its parameters are {known}")
        if not {"question", "vector"} & set(self.parameters.names):
            raise ValueError("statement asks for neither :question nor :vector")
        return self
