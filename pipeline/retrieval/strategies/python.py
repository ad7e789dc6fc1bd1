"""The settings of a search by the owner's own Python."""

from typing import Annotated, Any, Literal

from pydantic import Field

from pipeline.settings_types import Section

DottedPath = Annotated[
    str, Field(pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$", max_length=500)
]
"""A module and a name in it, as `shop.search:Retriever`."""


class OwnCode(Section):
    """A class or function of the owner's, and what it is made with."""

    path: DottedPath = Field(
        description="module:name of your function, or of a class with a method search",
        examples=["shop.search:Retriever"],
    )
    settings: dict[str, Any] = Field(
        {},
        description="keyword arguments that your class is made with; they are stored: no secrets",
    )


class PythonStrategy(OwnCode):
    """Your own Python, called for each question or for all of them."""

    kind: Literal["python"] = Field("python", description="your own Python function or class")
    vectors: bool = Field(
        default=False, description="true: it takes vector (or vectors), by [embedding]"
    )
    concurrency: int = Field(
        8, ge=1, le=256, description="calls under way at once, where it is a coroutine function"
    )
    timeout: float = Field(
        30.0, gt=0, le=300, description="seconds a call may take, where it is a coroutine function"
    )
    tenant: Literal["question", "ignore"] = Field(
        "question",
        description="question: for a question with a tenant it must take tenant (or tenants);"
        " ignore: tenants do not matter",
    )

    @property
    def needs_vectors(self) -> bool:
        """Whether it asks for the question's vector."""
        return self.vectors
