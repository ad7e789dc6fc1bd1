"""The settings of a second stage: another strategy's candidates, put into another order."""

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.retrieval.strategies.http import Requests
from pipeline.retrieval.strategies.python import OwnCode
from pipeline.settings_types import MAX_K, Section, StrategyName, Visible

TEI_DOCUMENTS = 32
"""What text-embeddings-inference takes by default (its option max-client-batch-size)."""


class HttpReranker(Requests):
    """A reranker that is asked over HTTP."""

    kind: Literal["http"] = Field("http", description="a reranker that is asked over HTTP")
    shape: Literal["cohere", "jina", "voyage", "tei"] = Field(
        description="whose request and reply it speaks: cohere, jina, voyage or tei"
    )
    model: Visible | None = Field(None, description="its model; tei has one and needs no name")
    max_documents: int | None = Field(
        None,
        ge=1,
        le=MAX_K,
        description="documents a request may hold, more are asked about in several;"
        " left out: 32 with tei, its own default, else all",
    )

    @property
    def documents_at_once(self) -> int:
        """How many documents a request may hold."""
        return self.max_documents or (TEI_DOCUMENTS if self.shape == "tei" else MAX_K)

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if self.shape != "tei" and self.model is None:
            raise ValueError(f"model is required with shape {self.shape}")
        return self


class PythonReranker(OwnCode):
    """A reranker of the owner's own Python."""

    kind: Literal["python"] = Field("python", description="your own Python function or class")


Reranker = Annotated[HttpReranker | PythonReranker, Field(discriminator="kind")]


class RerankStrategy(Section):
    """Another strategy's results, put into the order of a reranker."""

    kind: Literal["rerank"] = Field("rerank", description="another strategy's results, reranked")
    candidates: StrategyName = Field(
        description="the strategy whose results are reranked", examples=["hybrid"]
    )
    depth: int = Field(50, ge=1, le=MAX_K, description="candidates asked for; at least k")
    reranker: Reranker = Field(description="what puts them into order: kind http or python")

    @property
    def needs_vectors(self) -> bool:
        """Never by itself: its candidates may."""
        return False

    @property
    def parts(self) -> Iterable[str]:
        """The name of the strategy that it asks."""
        return (self.candidates,)
