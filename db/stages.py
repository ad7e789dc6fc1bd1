"""Rankings of stages, read back: what the arms of a hybrid gave for each question."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from sqlalchemy import text
from sqlalchemy.orm import Session

from pipeline.types import Ranking


@dataclass(frozen=True, slots=True)
class StagedResult:
    """A question that was scored, and its rankings by stage.

    `missing`: the expected keys that were not live, at the run's level.
    """

    position: int
    expected: Mapping[str, int]
    missing: Sequence[str]
    stages: Mapping[str, Ranking]


def newest_hybrid(session: Session, set_name: str, strategy: str | None) -> int | None:
    """Return the last completed run of a hybrid that has rankings of its stages; None: no such.

    Of this strategy; None: of any that is a hybrid.
    """
    query = text("""
        SELECT run.id FROM recallwatch.run
        JOIN recallwatch.batch b ON b.id = run.batch_id
        JOIN recallwatch.golden_version v ON v.id = b.version_id
        WHERE v.set_name = :set_name AND run.status = 'completed'
          AND run.settings -> 'strategy' ->> 'kind' = 'hybrid'
          AND (CAST(:strategy AS text) IS NULL OR run.strategy = :strategy)
          AND EXISTS (SELECT FROM recallwatch.stage_ranking s WHERE s.run_id = run.id)
        ORDER BY run.id DESC LIMIT 1
    """)
    found: int | None = session.scalar(query, {"set_name": set_name, "strategy": strategy})
    return found


def scored(
    session: Session, run_id: int, stages: Sequence[str], first: int, last: int
) -> list[StagedResult]:
    """Return the scored questions of some positions, in order, with the rankings of some stages.

    A stage is left out of a question for which it is not stored.
    """
    query = text("""
        SELECT r.position, i.expected, r.missing, s.stage, s.retrieved, s.scores
        FROM recallwatch.result r
        JOIN recallwatch.run ON run.id = r.run_id JOIN recallwatch.batch b ON b.id = run.batch_id
        JOIN recallwatch.golden_item i ON i.version_id = b.version_id AND i.position = r.position
        LEFT JOIN recallwatch.stage_ranking s
          ON s.run_id = r.run_id AND s.position = r.position AND s.stage = ANY(:stages)
        WHERE r.run_id = :run_id AND r.outcome = 'scored'
          AND r.position BETWEEN :first AND :last
        ORDER BY r.position
    """)
    values = {"run_id": run_id, "stages": list(stages), "first": first, "last": last}
    found = []
    for position, rows in itertools.groupby(session.execute(query, values), attrgetter("position")):
        together = list(rows)
        rankings = {
            row.stage: Ranking(row.retrieved, row.scores)
            for row in together
            if row.stage is not None
        }
        found.append(StagedResult(position, together[0].expected, together[0].missing, rankings))
    return found
