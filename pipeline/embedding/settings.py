"""The [embedding] table: which model, where it is, and what may be asked of it."""

from typing import Literal, Self

from pydantic import Field, model_validator

from pipeline.embedding.shapes import SHAPES
from pipeline.embedding.shapes.base import InputType
from pipeline.settings_types import HttpUrl, Section

_MODELS = {
    "openai": "text-embedding-3-small",
    "tei": "BAAI/bge-m3",
    "voyage": "voyage-3.5",
    "cohere": "embed-v4.0",
}
"""A model of each provider, for messages."""


class EmbeddingSettings(Section):
    """How questions (and loaded chunks) become vectors."""

    provider: Literal["local", "openai", "tei", "voyage", "cohere"] = Field(
        "local",
        description="local: a small model in this process; openai: any compatible API; tei: a"
        " text-embeddings-inference server; voyage, cohere: their APIs",
    )
    model: str = Field("", description="model name; local: leave unset")
    dimensions: int | None = Field(
        None,
        ge=1,
        le=16000,
        description="vector length to ask for; unset: the model's own",
        examples=[256],
    )
    base_url: HttpUrl | None = Field(
        None,
        description="another server of the same API; tei: the server",
        examples=["http://localhost:8080/v1"],
    )
    query_prefix: str = Field(
        "",
        max_length=1000,
        description="text put before each question, for models that are trained with one",
        examples=["query: "],
    )
    document_prefix: str = Field(
        "", max_length=1000, description="text put before each chunk", examples=["passage: "]
    )
    truncate: bool = Field(
        default=True,
        description="tei, voyage, cohere: cut a text that is too long for the model; false: it"
        " gets no vector",
    )
    max_inputs: int | None = Field(
        None,
        ge=1,
        le=2048,
        description="texts a request, at most; unset: what the provider takes",
        examples=[256],
    )
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=300_000,
        description="tokens a request, at most; unset: what the provider takes",
        examples=[100_000],
    )
    concurrency: int = Field(4, ge=1, le=64, description="requests under way at once")
    timeout: float = Field(30.0, gt=0, le=120, description="seconds a request may take")
    attempts: int = Field(5, ge=1, le=10, description="tries a request, the first included")
    max_wait: float = Field(
        20.0, ge=0, le=120, description="longest Retry-After, in seconds, waited for inside a task"
    )
    requests_per_minute: int | None = Field(
        None,
        ge=1,
        description="requests a minute to a provider, all workers together; unset: no limit",
        examples=[3000],
    )
    tokens_per_minute: int | None = Field(
        None,
        ge=1,
        description="tokens a minute to a provider, all workers together; unset: no limit",
        examples=[1_000_000],
    )
    price: float | None = Field(
        None,
        ge=0,
        description="US dollars for a million tokens; unset: the list price, where it is known",
        examples=[0.02],
    )
    max_cost: float | None = Field(
        None,
        ge=0,
        description="US dollars that embedding a batch's questions may cost; unset: no cap",
        examples=[1.0],
    )
    cache_days: int = Field(
        30, ge=0, le=3650, description="days a vector stays cached; 0: for ever"
    )

    @model_validator(mode="after")
    def _name_the_model(self) -> Self:
        if self.provider != "local" and not self.model:
            raise ValueError(
                f'model is required with provider "{self.provider}", as {_MODELS[self.provider]}'
            )
        if self.provider == "local" and self.model:
            raise ValueError('model must be unset with provider "local": it has one model')
        if self.provider == "local" and (self.query_prefix or self.document_prefix):
            raise ValueError('provider "local" was trained without prefixes: leave them unset')
        return self

    @model_validator(mode="after")
    def _have_a_server(self) -> Self:
        if self.provider != "local" and not (self.base_url or SHAPES[self.provider].url):
            example = SHAPES[self.provider].example
            raise ValueError(f'base_url is required with provider "{self.provider}", as {example}')
        return self

    @property
    def most_texts(self) -> int:
        """How many texts a request to the provider may hold."""
        return self.max_inputs or SHAPES[self.provider].most_texts

    @property
    def most_tokens(self) -> int:
        """How many tokens a request to the provider may hold."""
        return self.max_tokens or SHAPES[self.provider].most_tokens

    def prefix_of(self, input_type: InputType) -> str:
        """Return what is put before each text of this type."""
        return self.query_prefix if input_type is InputType.QUERY else self.document_prefix
