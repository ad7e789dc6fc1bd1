"""What is asked of a generator of questions, what it answers, and the states of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pipeline.errors import PermanentError, RecallwatchError
from pipeline.types import Kind

MOST_ASKS = 1_000
"""Asks that go into one message batch: the provider takes 100,000, but 256 MB at most."""


class UnknownOutcomeError(RecallwatchError):
    """A request went out and its answer never came: it may have been billed.

    Sending it again may pay twice, which only a person decides. Count it as its `size` at most.
    """


class BatchGoneError(PermanentError):
    """A provider has no such message batch, or its answers no more: nobody will get them."""


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
    """The tokens that a request was billed for.

    `input_tokens` are those that no prompt cache was concerned with. What was written to one, for
    5 minutes or an hour, and what was read from one have prices of their own.
    """

    input_tokens: int
    output_tokens: int
    cache_write_tokens: int = 0
    cache_hour_write_tokens: int = 0
    cache_read_tokens: int = 0

    @property
    def all_input_tokens(self) -> int:
        """The whole prompt's tokens, whatever they cost."""
        written = self.cache_write_tokens + self.cache_hour_write_tokens
        return self.input_tokens + written + self.cache_read_tokens


@dataclass(frozen=True, slots=True)
class NotBilled:
    """Why an ask of a message batch has no answer; nothing was billed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for an ask, with what was paid for it.

    `refusal` says why there are no drafts: the model would not, was cut short, found nothing to ask
    or broke the form; or the provider did not take this ask, which as no other did: too long, say.
    Nothing was billed then, and `usage` is zero.
    """

    drafts: Sequence[Draft]
    usage: Usage
    refusal: str | None = None


BatchResult = Answer | NotBilled | UnknownOutcomeError
"""What a message batch says of an ask."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens, in and out.

    What a prompt cache takes and gives costs a multiple of `input`: 1.25 when written for 5
    minutes, 2 for an hour, 0.1 when read (Anthropic's pricing page, "Prompt caching").
    """

    input: float
    output: float

    def of(self, usage: Usage) -> float:
        """Return what these tokens cost, in US dollars."""
        tokens_in = (
            usage.input_tokens
            + 1.25 * usage.cache_write_tokens
            + 2 * usage.cache_hour_write_tokens
            + 0.1 * usage.cache_read_tokens
        )
        return (tokens_in * self.input + usage.output_tokens * self.output) / 1_000_000


class Generator(Protocol):
    """Asks a model for questions, one request at a time."""

    def ask(self, ask: Ask) -> Answer:
        """Send one request, once.

        Raises TransientError (nothing was billed: try again, after its `retry_after` where it has
        one), UnknownOutcomeError (it may have been billed), PermanentError (every ask would fail).
        """


class BatchGenerator(Protocol):
    """Asks for many at once, at half the price, and looks later whether they are done."""

    def submit(self, asks: Mapping[str, Ask]) -> str:
        """Send at most MOST_ASKS asks, each under an id, and return the batch's id.

        An id is of 1 to 64 letters, digits, `_` and `-`. Raises what `Generator.ask` raises.
        """

    def poll(self, batch_id: str, asks: Mapping[str, Ask]) -> Mapping[str, BatchResult] | None:
        """Return what became of each ask, by id; None: the batch is still at work.

        `asks` are those of the batch: an answer is checked against its ask. Raises TransientError
        (look again later), BatchGoneError, and PermanentError (it cannot be looked at like this).
        """

    def cancel(self, batch_id: str) -> None:
        """Have the batch end soon; what is done by then is billed, and `poll` returns it.

        Raises what `poll` raises, and nothing for a batch that is over.
        """
