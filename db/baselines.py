"""Baselines: the runs that a person pinned, one for each set, strategy, k and level.

Compared with the last run alone, small weekly drops add up unseen; the pinned run does not move.
"""

from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.models import Baseline, Run
from db.runs import RunContext
from pipeline.errors import UsageError
from pipeline.types import RunStatus, Verdict


@dataclass(frozen=True, slots=True)
class Pinned:
    """A pin and the run that it points at."""

    baseline: Baseline
    run: Run


def pin(session: Session, found: RunContext, *, by: str | None) -> None:
    """Make a run the baseline of its set, strategy, k and level, in the place of any other.

    Raises UsageError for a run that measured nothing.
    """
    run = found.run
    # Locked and read anew: its questions may be about to be asked again.
    session.refresh(run, with_for_update={"read": True})
    if run.status != RunStatus.COMPLETED or run.verdict == Verdict.UNMEASURED:
        shown = run.status if run.status == RunStatus.CANCELLED else run.verdict or run.status
        raise UsageError(f"run {run.id} is {shown}: it measured nothing to pin")
    if (run.facts or {}).get("leaks"):
        raise UsageError(f"run {run.id} returned another tenant's chunks: nothing to hold runs to")
    values = {"run_id": run.id, "pinned_by": by}
    statement = insert(Baseline).values(
        set_name=found.version.set_name, strategy=run.strategy, k=run.k, level=run.level, **values
    )
    place = [Baseline.set_name, Baseline.strategy, Baseline.k, Baseline.level]
    session.execute(
        statement.on_conflict_do_update(
            index_elements=place, set_=values | {"pinned_at": statement.excluded.pinned_at}
        )
    )


def unpin(session: Session, run_id: int) -> None:
    """Take a run's pin away; raises UsageError when it has none."""
    query = delete(Baseline).where(Baseline.run_id == run_id).returning(Baseline.run_id)
    if session.scalar(query) is None:
        raise UsageError(f"run {run_id} is not pinned; see: recallwatch baseline list")


def pinned(session: Session) -> list[Pinned]:
    """Return every pin with its run."""
    query = (
        select(Baseline, Run)
        .join(Run, Run.id == Baseline.run_id)
        .order_by(Baseline.set_name, Baseline.strategy, Baseline.k, Baseline.level)
    )
    return [Pinned(*row) for row in session.execute(query)]


def of(session: Session, found: RunContext) -> Run | None:
    """Return the baseline that a run is compared with.

    Never itself, nor one of another relevance threshold or convention. It is locked, as by
    `db.runs.find_reference`.
    """
    query = (
        select(Run)
        .join(Baseline, Baseline.run_id == Run.id)
        .where(
            Baseline.set_name == found.version.set_name,
            Baseline.strategy == found.run.strategy,
            Baseline.k == found.run.k,
            Baseline.level == found.run.level,
            Run.relevance_threshold == found.run.relevance_threshold,
            Run.convention == found.run.convention,
            Run.id != found.run.id,
        )
        .with_for_update(read=True, of=Run)
    )
    return session.scalar(query)
