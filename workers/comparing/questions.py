"""The questions that candidates are compared over, and how they are scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from db import golden
from db.models import GoldenItem
from db.session import allow_idling
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError, UnmeasuredError
from pipeline.scoring import Judged, Measure, score
from pipeline.types import Failure, Kind, Level, Outcome, Ranking
from workers.context import Context
from workers.evidence import usable
from workers.key_check import Liveness, check_liveness

Floats = NDArray[np.float64]

Measured = tuple[Sequence[Outcome], Floats]
"""Outcomes of n questions, and their values, shape (n, measures)."""


@dataclass(frozen=True, slots=True)
class Questions:
    """A golden version's questions with what is live of what they expect."""

    items: Sequence[GoldenItem]
    judged: Sequence[Judged]
    live: set[str]
    keys: Liveness
    level: Level
    threshold: int

    @property
    def texts(self) -> list[str]:
        """What is asked."""
        return [item.text for item in self.items]

    @property
    def tenants(self) -> list[str | None]:
        """Whose chunks may answer."""
        return [item.tenant for item in self.items]

    @property
    def judged_keys(self) -> set[str]:
        """All chunk keys that somebody judged for a question, the irrelevant ones too."""
        return {key for item in self.items for key in item.expected}

    def score(
        self, rankings: Sequence[Ranking | Failure], k: int, measures: Sequence[Measure]
    ) -> Measured:
        """Score a ranking a question, in their order."""
        scores = score(
            self.judged,
            rankings,
            k=k,
            level=self.level,
            measures=measures,
            relevance_threshold=self.threshold,
            live=self.live,
        )
        return scores.outcomes, scores.values


def load_questions(ctx: Context, table: CorpusTable, set_name: str, level: Level) -> Questions:
    """Snapshot a golden set and look its expected keys up in the corpus.

    Raises InputError where the set has no active question, and CorpusError where no expected key
    is in the corpus, or a question has a tenant and the corpus none.
    """
    with ctx.database.begin() as session:
        # The corpus is asked meanwhile, which may take its time.
        allow_idling(session, ctx.settings.queue.lease)
        version = golden.snapshot(session, set_name)
        keys = check_liveness(ctx, session, table, version, level)
        items = golden.items(session, version.id, 0, version.size - 1)
    _check_tenants(items, table)
    live, stale = _usable(ctx, table, items, level)
    judged = [
        Judged(item.expected, Kind(item.kind), stale.get(item.position, frozenset()))
        for item in items
    ]
    return Questions(items, judged, live, keys, level, ctx.settings.eval.relevance_threshold)


def _check_tenants(items: Sequence[GoldenItem], table: CorpusTable) -> None:
    tenant = next((item.tenant for item in items if item.tenant is not None), None)
    if tenant is not None and not table.has("tenant"):
        raise CorpusError(
            f"a question has the tenant {tenant!r}, but {table} has no tenant column; name it in"
            " [corpus] tenant"
        )


def _usable(
    ctx: Context, table: CorpusTable, items: Sequence[GoldenItem], level: Level
) -> tuple[set[str], Mapping[int, frozenset[str]]]:
    """Return which expected keys, or documents, the corpus holds, and the stale ones."""
    if level is Level.CHUNK:
        return usable(ctx, table, items)
    keys = {key for item in items for key in item.expected}
    return live_keys(ctx.corpus(), table, keys, Level.DOCUMENT), {}


def shared(measured: Sequence[Measured]) -> tuple[NDArray[np.intp], int]:
    """Return the positions that were scored with every candidate, and how many failed with one.

    Raises UnmeasuredError where there is no question left.
    """
    outcomes = np.array([[str(each) for each in one] for one, _ in measured])
    scored = (outcomes == Outcome.SCORED.value).all(axis=0)
    failed = int((outcomes == Outcome.FAILED.value).any(axis=0).sum())
    if not scored.any():
        why = f"{failed} failed" if failed else "none expects a chunk that is in the corpus"
        raise UnmeasuredError(f"no question can be compared: {why}")
    return np.flatnonzero(scored), failed
