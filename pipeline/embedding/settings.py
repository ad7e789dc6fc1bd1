"""The [embedding] table: which model, where it is, and what may be asked of it."""

from typing import Literal, Self

from pydantic import Field, model_validator

from pipeline.settings_types import HttpUrl, Section


class EmbeddingSettings(Section):
    """How questions (and loaded chunks) become vectors."""

    provider: Literal["local", "openai"] = Field(
        "local", description="local: a small model in this process; openai: any compatible API"
    )
    model: str = Field("", description="openai: model name; local: leave unset")
    dimensions: int | None = Field(
        None,
        ge=1,
        le=16000,
        description="vector length to ask for; unset: the model's own",
        examples=[256],
    )
    base_url: HttpUrl | None = Field(
        None,
        description="openai: another server of the same API",
        examples=["http://localhost:8080/v1"],
    )
    max_inputs: int = Field(2048, ge=1, le=2048, description="texts a request, at most")
    max_tokens: int = Field(300_000, ge=1, le=300_000, description="tokens a request, at most")
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
        description="US dollars for a million tokens; unset: OpenAI's list price, else unknown",
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
        if self.provider == "openai" and not self.model:
            raise ValueError('model is required with provider "openai", as text-embedding-3-small')
        if self.provider == "local" and self.model:
            raise ValueError('model must be unset with provider "local": it has one model')
        return self
