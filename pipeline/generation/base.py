"""What is asked of a generator of questions, what it answers, and the states of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pipeline.types import Kind


class GenerationStatus(StrEnum):
    """The states of a generation; docs/state_machine.md draws them.

    `SCREENING`: every request is over, and candidates are filtered.
    """

    QUEUED = "queued"
    RUNNING = "running"
    SCREENING = "screening"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RequestState(StrEnum):
    """The states of a request to the model.

    `ASKED`: it went out, or is about to. `REFUSED`: the model would not, or its answer is of no
    use; it was paid for. `UNKNOWN`: it may have been paid for, and the answer never came.
    """

    PENDING = "pending"
    LEASED = "leased"
    ASKED = "asked"
    ANSWERED = "answered"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


class CandidateState(StrEnum):
    """What became of a question that the model wrote."""

    DRAFTED = "drafted"
    KEPT = "kept"
    REJECTED = "rejected"


class Category(StrEnum):
    """What a question asks for; `--category-mix` weighs them."""

    FACTUAL = "factual"
    COMPARISON = "comparison"
    PROCEDURAL = "procedural"
    EXPLANATION = "explanation"
    TROUBLESHOOTING = "troubleshooting"


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A chunk that questions are to be written from."""

    key: str
    content: str
    tenant: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: questions of these `categories`, one each, in this order, from the chunks.

    With several chunks each question needs all of them. `kind` unanswerable: questions that the
    chunks' readers would ask, and that the chunks do not answer. `forbidden`: distinctive terms
    of the chunks that no question may use.
    """

    chunks: Sequence[SourceChunk]
    categories: Sequence[str]
    kind: Kind = Kind.ANSWERABLE
    language: str | None = None
    forbidden: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A question as the model wrote it; `chunk_numbers` (from 1) are those it needs, by its word.

    Empty for an unanswerable one.
    """

    text: str
    category: str
    chunk_numbers: Sequence[int]


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens that a request was billed for."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for an ask that was paid for.

    `refusal` says why there are no drafts: the model would not, was cut short, or broke the form.
    """

    drafts: Sequence[Draft]
    usage: Usage
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens, in and out."""

    input: float
    output: float

    def of(self, usage: Usage) -> float:
        """Return what these tokens cost, in US dollars."""
        millions = usage.input_tokens * self.input + usage.output_tokens * self.output
        return millions / 1_000_000


class Generator(Protocol):
    """Asks a model for questions, one request at a time."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def prompt_version(self) -> str:
        """The version of the prompt, stored with each question."""

    def size(self, ask: Ask) -> tuple[Usage, Usage]:
        """Return the tokens that an ask will take, by experience, and at most."""

    def ask(self, ask: Ask) -> Answer:
        """Send one request.

        Raises TransientError (nothing was billed: try again), UnknownOutcomeError (it may have
        been billed), PermanentError (it would fail for every ask).
        """


class BatchGenerator(Protocol):
    """Asks for many at once, at half the price, and looks later whether they are done."""

    def submit(self, asks: Mapping[str, Ask]) -> str:
        """Send the asks, each under an id, and return the batch's id."""

    def poll(self, batch_id: str) -> Mapping[str, Answer | str] | None:
        """Return the answers by id, or why there is none; None: it is still at work."""
