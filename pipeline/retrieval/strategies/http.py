"""The settings of a search that a server of the owner's answers."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.retrieval.expressions import Expression, drops, mentions, picks
from pipeline.settings_types import HttpUrl, Section, Visible


def _check_header(name: str) -> str:
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise ValueError(f"{name!r} is no name of a header")
    return name


Header = Annotated[Visible, AfterValidator(_check_header)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
"""The name of an environment variable: a value would be stored with every run."""


_SPARSE = {"question": "?", "k": 1, "tenant": None, "language": None, "vector": [1.0]}
"""A question that has only what each has."""


class Requests(Section):
    """How a server is asked: what all kinds that ask one have in common."""

    url: HttpUrl = Field(
        description="where to POST to", examples=["http://localhost:9200/docs/_search"]
    )
    params: dict[Visible, Visible] = Field(
        {},
        description="query parameters of the URL; no secrets, as they are stored with every run",
        examples=[{"api-version": "2024-07-01"}],
    )
    headers: dict[Header, Variable] = Field(
        {}, description="header -> the environment variable that holds its value"
    )
    key_env: Variable | None = Field(
        None,
        description="environment variable with a key, sent as Authorization: Bearer",
        examples=["SEARCH_API_KEY"],
    )
    concurrency: int = Field(8, ge=1, le=64, description="requests a worker has under way")
    timeout: float = Field(10.0, gt=0, le=120, description="seconds a request may take")
    attempts: int = Field(3, ge=1, le=10, description="tries a request, the first included")
    max_wait: float = Field(
        20.0, ge=0, le=120, description="longest Retry-After, in seconds, waited for inside a task"
    )
    max_reply: int = Field(
        8_000_000, ge=1000, le=500_000_000, description="bytes that a reply may have"
    )

    @property
    def variables(self) -> list[str]:
        """The environment variables that hold secrets of it."""
        return [*self.headers.values(), *([self.key_env] if self.key_env else [])]


class HttpStrategy(Requests):
    """A server of yours, asked over HTTP with JSON."""

    kind: Literal["http"] = Field("http", description="a server of yours, asked over HTTP")
    request: Expression | None = Field(
        None,
        description="JMESPath over question, k, tenant, language and vector that makes the body"
        " (with batch above 1: over k and questions, a list of those)",
        examples=["{query: {match: {content: question}}, size: k}"],
    )
    batch: int = Field(1, ge=1, le=1000, description="questions a request")
    results: Expression = Field(
        "results",
        description="JMESPath over the reply: the list of results, best first"
        " (with batch above 1: a list of such lists, in the order of the questions)",
        examples=["hits.hits"],
    )
    key: Expression = Field(
        "key", description="JMESPath over a result: the chunk key", examples=["_id"]
    )
    score: Expression = Field(
        "score", description="JMESPath over a result: its score", examples=["_score"]
    )
    tenant: Literal["question", "ignore"] = Field(
        "question",
        description="question: a question with a tenant needs tenant in the request; ignore:"
        " tenants do not matter",
    )

    @property
    def body(self) -> str:
        """The expression that makes the body of a request."""
        if self.request is not None:
            return self.request
        each = "{query: question, tenant: tenant}"
        if self.batch > 1:
            return f"{{queries: questions[*].{each}, k: k}}"
        return "{query: question, k: k, tenant: tenant}"

    @property
    def needs_vectors(self) -> bool:
        """Whether the request asks for the question's vector."""
        return mentions(self.body, "vector")

    @model_validator(mode="after")
    def _check_request(self) -> Self:
        if not (mentions(self.body, "question") or mentions(self.body, "vector")):
            raise ValueError("request reads neither question nor vector")
        if self.batch > 1 and not mentions(self.body, "questions"):
            raise ValueError("request must read questions where batch is above 1")
        if self.batch > 1:
            self._check_each()
        return self

    def _check_each(self) -> None:
        """Refuse what would ask for one question with what is another's."""
        if picks(self.body, "questions"):
            raise ValueError("request reads one of the questions for all: use questions[*]")
        if drops(self.body, "questions", _SPARSE):
            raise ValueError(
                "request leaves out questions without a tenant or a language, so that those of"
                " others take their place: use questions[*].{query: question, tenant: tenant}"
            )
