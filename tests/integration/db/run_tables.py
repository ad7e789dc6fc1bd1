"""What the tables hold of a run, in the model's words, and what they must refuse."""

from typing import Any

from sqlalchemy import text

from db.session import Session
from tests.integration.db.run_model import RunModel, RunRow, ShardModel

ILLEGAL = {
    "shard": (
        "state = 'leased', lease_until = NULL",
        "state = 'pending', lease_until = now()",
        "state = 'done', lease_until = now()",
        "state = 'failed', lease_until = NULL, error = NULL",
        "state = 'lost'",
        "kind = 'other'",
        "refused = true, error = NULL",
        "first_position = last_position + 1",
    ),
    "run": (
        "status = 'completed', verdict = NULL, finished_at = NULL",
        "status = 'queued', verdict = 'ok', finished_at = now()",
        "status = 'running', verdict = 'ok', finished_at = now()",
        "status = 'failed', verdict = 'ok', finished_at = now()",
        "status = 'cancelled', verdict = 'baseline', finished_at = now()",
        "status = 'failed', verdict = 'unmeasured', finished_at = NULL",
        "status = 'completed', verdict = 'ok', finished_at = now(), n_scored = size - 1",
        "status = 'completed', verdict = 'ok', finished_at = now(), n_scored = NULL",
        "status = 'paused'",
    ),
}
"""Changes that no state of the row makes right, by table."""


def read(session: Session, run_id: int) -> RunModel:
    """Return a run as the model would be if it were right."""
    values = {"run": run_id}
    run = RunRow(**session.execute(text(_RUN), values).mappings().one())
    rows = session.execute(text(_SHARDS), values).all()
    return RunModel([ShardModel(*row) for row in rows], run)


def everything(session: Session, run_id: int) -> dict[str, Any]:
    """Return all that is stored of a run, but when it was rung, which means nothing."""
    return dict(session.execute(text(_EVERYTHING), {"run": run_id}).scalar_one())


_RUN = """
SELECT status, started_at IS NOT NULL AS started,
    CASE WHEN deadline_at > now() THEN 0 WHEN deadline_at > now() - interval '10 minutes' THEN 1
         ELSE 11 END AS late,
    reduce_attempts,
    CASE WHEN reduce_next_at > clock_timestamp() THEN 'ahead'
         WHEN reduce_next_at IS NOT NULL THEN 'past' END AS reduce_next,
    reduce_error, verdict, ARRAY[n_scored, n_failed, n_ineligible] AS counts
FROM recallwatch.run WHERE id = :run
"""

_SHARDS = """
SELECT number, kind, first_position, last_position, state, attempts, token,
    CASE WHEN lease_until > clock_timestamp() THEN 'ahead'
         WHEN lease_until IS NOT NULL THEN 'past' END,
    CASE WHEN next_at > clock_timestamp() THEN 'ahead'
         WHEN next_at IS NOT NULL THEN 'past' END,
    error,
    CASE kind
        WHEN 'served' THEN (
            SELECT array_agg(outcome ORDER BY position) FROM recallwatch.result
            WHERE run_id = s.run_id AND position BETWEEN s.first_position AND s.last_position)
        ELSE (
            SELECT array_agg(text 'exact' ORDER BY position) FROM recallwatch.exact_result
            WHERE run_id = s.run_id)
    END
FROM recallwatch.shard s WHERE run_id = :run ORDER BY number
"""

ALL_RESULTS_TWICE = """
INSERT INTO recallwatch.result SELECT * FROM recallwatch.result WHERE run_id = :run
"""

_EVERYTHING = """
SELECT jsonb_build_object(
    'run', to_jsonb(r),
    'shards', (SELECT jsonb_agg(to_jsonb(s) - 'rung_at' ORDER BY number)
               FROM recallwatch.shard s WHERE run_id = r.id),
    'results', (SELECT jsonb_agg(to_jsonb(x) ORDER BY position)
                FROM recallwatch.result x WHERE run_id = r.id),
    'exact', (SELECT jsonb_agg(to_jsonb(x) ORDER BY position)
              FROM recallwatch.exact_result x WHERE run_id = r.id))
FROM recallwatch.run r WHERE id = :run
"""
