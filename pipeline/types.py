"""The nouns that every layer shares: questions, queries, rankings, outcomes.

Plain data, no behaviour beyond what defines the thing. See docs/architecture.md for the words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

FloatMatrix = NDArray[np.float32]
"""Vectors, one a row: shape (n, dimensions)."""


class Level(StrEnum):
    """What a key in a ranking stands for when it is scored."""

    CHUNK = "chunk"
    DOCUMENT = "document"


class Kind(StrEnum):
    """Whether the corpus is meant to hold an answer."""

    ANSWERABLE = "answerable"
    UNANSWERABLE = "unanswerable"


class Source(StrEnum):
    """Where a question came from."""

    MANUAL = "manual"
    SYNTHETIC = "synthetic"
    LOG = "log"


class Status(StrEnum):
    """Where a question stands in review; only active ones are snapshot into a version."""

    PROPOSED = "proposed"
    ACTIVE = "active"
    RETIRED = "retired"
    REJECTED = "rejected"


class KeyState(StrEnum):
    """Where the text that a key was judged on is in the corpus now.

    `CHANGED`: the key's chunk has another text, and the judged one is nowhere else. `MOVED`: the
    same text stands under another key. `SPLIT`: it spans several chunks. `MERGED`: it lies inside
    a larger one. `LOST`: none of these.
    """

    LIVE = "live"
    CHANGED = "changed"
    MOVED = "moved"
    SPLIT = "split"
    MERGED = "merged"
    LOST = "lost"


class EditAction(StrEnum):
    """What an edit of a golden set did; see `db.edits`."""

    ACCEPT = "accept"
    REJECT = "reject"
    CHANGE = "change"
    IMPORT = "import"
    REMAP = "remap"


class Outcome(StrEnum):
    """What became of one question in one run.

    `FAILED`: the retriever or the embedder raised; never counted as a miss.
    `INELIGIBLE`: no expected key is live in the corpus, or the question is unanswerable.
    """

    SCORED = "scored"
    FAILED = "failed"
    INELIGIBLE = "ineligible"


class RunStatus(StrEnum):
    """The states of a run; docs/state_machine.md draws them."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ShardState(StrEnum):
    """The states of a shard; docs/state_machine.md draws them."""

    PENDING = "pending"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


class ShardKind(StrEnum):
    """What a shard's task does: search as production does, or exactly, beside it."""

    SERVED = "served"
    EXACT = "exact"


class SlotOutcome(StrEnum):
    """What became of a schedule's slot: the time at which a batch was due."""

    STARTED = "started"
    SKIPPED = "skipped"
    FAILED = "failed"


class Verdict(StrEnum):
    """What a finished run says about retrieval.

    `WATCH`: a drop that is unusual, but that chance brings too often for an alarm.
    """

    BASELINE = "baseline"
    OK = "ok"
    WATCH = "watch"
    IMPROVED = "improved"
    REGRESSED = "regressed"
    INCOMPARABLE = "incomparable"
    UNMEASURED = "unmeasured"


class AlertKind(StrEnum):
    """What there is to tell."""

    REGRESSED = "regressed"
    UNMEASURED = "unmeasured"
    RECOVERED = "recovered"
    GOLDEN_STALE = "golden_stale"


class AlertState(StrEnum):
    """The states of an alert in the outbox; docs/state_machine.md draws them.

    `UNKNOWN`: it may or may not have arrived; only a person sends it again.
    """

    PENDING = "pending"
    CLAIMED = "claimed"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Trigger(StrEnum):
    """What started a batch."""

    MANUAL = "manual"
    SCHEDULE = "schedule"
    REINDEX = "reindex"
    CI = "ci"


@dataclass(frozen=True, slots=True)
class Question:
    """One golden question, as it is imported, stored, snapshot and evaluated.

    `expected` maps a chunk key to its grade: >= 1 relevant, 0 and below judged not relevant.
    `evidence` maps some of these keys to the chunk's text as it was when it was judged.
    """

    text: str
    expected: Mapping[str, int]
    kind: Kind = Kind.ANSWERABLE
    category: str | None = None
    tenant: str | None = None
    language: str | None = None
    source: Source = Source.MANUAL
    must_pass: bool = False
    external_id: str | None = None
    notes: str | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryBatch:
    """What a retriever is asked: n questions, column by column.

    `vectors` has shape (n, dimensions), float32, or is None for a retriever that needs none.
    """

    texts: Sequence[str]
    tenants: Sequence[str | None]
    languages: Sequence[str | None]
    vectors: FloatMatrix | None = None

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Chunk keys, best first, and the retriever's own scores, descending.

    `stages` holds the rankings that it was made of, by name: those of a hybrid's arms, of a
    reranker's candidates. The stages of a stage are named after it, as `candidates/vector`.
    """

    keys: Sequence[str]
    scores: Sequence[float]
    stages: Mapping[str, "Ranking"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """One question that could not be retrieved or embedded, and why, in one line."""

    reason: str


def split_key(key: str) -> tuple[str, str]:
    """Split a chunk key into document id and chunk index, on the LAST colon.

    Document ids may hold colons (URLs do). Raises ValueError when there is no colon.
    """
    document_id, colon, chunk_index = key.rpartition(":")
    if not colon:
        raise ValueError(f"chunk key {key!r} has no colon: expected document_id:chunk_index")
    return document_id, chunk_index


def make_key(document_id: str, chunk_index: int) -> str:
    """Join a document id and a chunk index into a chunk key."""
    return f"{document_id}:{chunk_index}"


def document_of(key: str) -> str:
    """Return the document id of a chunk key (the key itself when it has no colon)."""
    return key.rpartition(":")[0] or key
