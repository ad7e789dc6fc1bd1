"""Calibrations: what A/A pairs showed of the noise, and which of them tells it for a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from db.models import Calibration, GoldenVersion, Run
from pipeline.retrieval.tree import with_defaults
from pipeline.verdict.calibration import Conditions, Figures, applies, untouched

_OF_A_RUN = ("relevance_threshold", "convention")
"""What a run keeps beside its settings, and a calibration among them."""


def add(
    session: Session, version: GoldenVersion, run: Run, found: Figures, *, reindexed: bool
) -> Calibration:
    """Store what A/A pairs of a run showed; the run itself need not be stored."""
    calibration = Calibration(
        set_name=version.set_name,
        strategy=run.strategy,
        k=run.k,
        level=run.level,
        version_id=version.id,
        settings=run.settings | {name: getattr(run, name) for name in _OF_A_RUN},
        corpus_fingerprint=run.corpus_fingerprint,
        reindexed=reindexed,
        n=found.n,
        pairs=found.pairs,
        flips=found.flips,
        largest_net=found.largest_net,
        differences={metric: [*map(list, each)] for metric, each in found.differences.items()},
        totals={metric: list(each) for metric, each in found.totals.items()},
    )
    session.add(calibration)
    session.flush()
    return calibration


def find(session: Session, run: Run, version: GoldenVersion, reference: Run) -> Calibration | None:
    """Return the newest calibration that tells the noise between a run and its reference.

    Where both kinds apply, the one that measured what happened between the two is right. With the
    index untouched there was no rebuild, and the noise of one would hide drops that cannot be
    noise: the calibration without rebuilds comes first. Vectors written meanwhile changed the
    graph in place, which no calibration measures: that with rebuilds comes first, as it knows of
    graphs that differ by chance.
    """
    now, before = run_conditions(run, version.id), reference.corpus_fingerprint
    fitting = [
        row
        for row in _candidates(session, run, version)
        if applies(conditions(row), now, before, reindexed=row.reindexed)
    ]
    rebuilt_first = not untouched(now.corpus, before)
    preferred = [row for row in fitting if row.reindexed == rebuilt_first]
    first = next(iter(preferred or fitting), None)
    if first is not None:
        session.refresh(first, ["differences"])
    return first


def recent(
    session: Session,
    *,
    set_name: str | None = None,
    strategy: str | None = None,
    limit: int = 20,
) -> Sequence[Calibration]:
    """Return the newest calibrations first."""
    query = select(Calibration).order_by(Calibration.id.desc()).limit(limit)
    if set_name is not None:
        query = query.where(Calibration.set_name == set_name)
    if strategy is not None:
        query = query.where(Calibration.strategy == strategy)
    return session.scalars(query).all()


def figures(calibration: Calibration) -> Figures:
    """Return what a calibration showed."""
    return Figures(
        n=calibration.n,
        pairs=calibration.pairs,
        flips=calibration.flips,
        largest_net=calibration.largest_net,
        differences={
            metric: [(value, count) for value, count in each]
            for metric, each in calibration.differences.items()
        },
        totals=calibration.totals,
    )


def conditions(calibration: Calibration) -> Conditions:
    """Return what a calibration measured."""
    settings = calibration.settings
    return Conditions(
        k=calibration.k,
        level=calibration.level,
        settings=_filled(settings),
        corpus=calibration.corpus_fingerprint,
        version=calibration.version_id,
        **{name: settings[name] for name in _OF_A_RUN},
    )


def run_conditions(run: Run, version_id: int) -> Conditions:
    """Return what a run measures; it need not be stored."""
    return Conditions(
        k=run.k,
        level=run.level,
        relevance_threshold=run.relevance_threshold,
        convention=run.convention,
        settings=_filled(run.settings),
        corpus=run.corpus_fingerprint,
        version=version_id,
    )


def _filled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's settings, those of its strategy as this version would store them."""
    return dict(settings) | {"strategy": with_defaults(settings["strategy"])}


def _candidates(session: Session, run: Run, version: GoldenVersion) -> Sequence[Calibration]:
    """Return all of the run's set, strategy, k and level, newest first, without differences."""
    query = (
        select(Calibration)
        .where(
            Calibration.set_name == version.set_name,
            Calibration.strategy == run.strategy,
            Calibration.k == run.k,
            Calibration.level == run.level,
        )
        .order_by(Calibration.id.desc())
        .options(defer(Calibration.differences))
    )
    return session.scalars(query).all()
