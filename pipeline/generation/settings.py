"""The [generation] table: which model writes questions, and what they must be like."""

from datetime import date

from pydantic import Field

from pipeline.settings_types import HttpUrl, Section, Share


class PriceSettings(Section):
    """What a model costs."""

    input: float = Field(ge=0, description="US dollars for a million tokens of a prompt")
    output: float = Field(ge=0, description="US dollars for a million tokens of an answer")
    batch_input: float | None = Field(
        None, ge=0, description="the same of a prompt in a message batch; unset: as input"
    )
    batch_output: float | None = Field(
        None, ge=0, description="the same of an answer in a message batch; unset: as output"
    )
    as_of: date | None = Field(
        None, strict=False, description="the day that the price is of", examples=["2026-11-30"]
    )


class GenerationSettings(Section):
    """How `recallwatch golden generate` has questions written."""

    model: str = Field(
        "claude-haiku-4-5", min_length=1, description="model of Anthropic's Messages API"
    )
    base_url: HttpUrl | None = Field(
        None, description="another server of the same API", examples=["http://localhost:8080"]
    )
    production_model: str | None = Field(
        None,
        description="the model that answers your users: a warning when it is the one above",
        examples=["claude-sonnet-5"],
    )
    prices: dict[str, PriceSettings] = Field(
        {}, description="model -> price, beside the list prices that are known"
    )
    max_cost: float | None = Field(
        None, ge=0, description="US dollars that a generation may cost; unset: no cap",
        examples=[2.0],
    )  # fmt: skip
    timeout: float = Field(120.0, gt=0, le=600, description="seconds a request may take")
    attempts: int = Field(5, ge=1, le=10, description="tries a request gets, the first included")
    min_characters: int = Field(
        300, ge=1, description="chunks shorter than this are not written from"
    )
    max_overlap: Share = Field(
        0.8, description="largest share of a question's content words that its chunk may hold"
    )
    max_shared_run: int = Field(
        6, ge=1, description="longest run of words that a question may share with its chunk"
    )
    max_words: int = Field(40, ge=1, description="longest question, in words")
    near_duplicate: Share = Field(
        0.95, description="cosine from which two questions, or two chunks, say the same"
    )
