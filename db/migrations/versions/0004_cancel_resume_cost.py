"""Runs that a person cancels and resumes, a bounded reducer, what a batch may cost, refusals.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

UPGRADE = """
ALTER TABLE recallwatch.run
    DROP CONSTRAINT run_status_known,
    ADD CONSTRAINT run_status_known CHECK (status IN
        ('queued', 'running', 'completed', 'failed', 'cancelled')),
    DROP CONSTRAINT run_verdict_when_finished,
    ADD CONSTRAINT run_verdict_when_finished CHECK
        ((status IN ('completed', 'failed', 'cancelled')) = (verdict IS NOT NULL)
         AND (verdict IS NULL) = (finished_at IS NULL)),
    DROP CONSTRAINT run_failed_is_unmeasured,
    ADD CONSTRAINT run_failed_is_unmeasured CHECK
        (status NOT IN ('failed', 'cancelled') OR verdict = 'unmeasured'),
    ADD COLUMN reduce_attempts smallint NOT NULL DEFAULT 0,
    ADD COLUMN reduce_next_at timestamptz,
    ADD COLUMN reduce_error text;
ALTER TABLE recallwatch.batch
    ADD COLUMN max_cost double precision
        CONSTRAINT batch_max_cost_not_negative CHECK (max_cost >= 0),
    ADD COLUMN spent double precision NOT NULL DEFAULT 0
        CONSTRAINT batch_spent_not_negative CHECK (spent >= 0);
ALTER TABLE recallwatch.shard ADD COLUMN refused boolean NOT NULL DEFAULT false;
UPDATE recallwatch.shard SET refused = true
    WHERE kind = 'exact' AND state = 'done' AND token = 0
      AND error LIKE 'for % questions it would take about % seconds, and a task has %';
ALTER TABLE recallwatch.shard ADD CONSTRAINT shard_refused_is_over CHECK
    (NOT refused OR kind = 'exact' AND state = 'done' AND error IS NOT NULL);
"""

DOWNGRADE = """
ALTER TABLE recallwatch.shard DROP COLUMN refused;
ALTER TABLE recallwatch.batch DROP COLUMN max_cost, DROP COLUMN spent;
UPDATE recallwatch.run SET status = 'failed' WHERE status = 'cancelled';
ALTER TABLE recallwatch.run
    DROP COLUMN reduce_attempts, DROP COLUMN reduce_next_at, DROP COLUMN reduce_error,
    DROP CONSTRAINT run_status_known,
    ADD CONSTRAINT run_status_known CHECK
        (status IN ('queued', 'running', 'completed', 'failed')),
    DROP CONSTRAINT run_verdict_when_finished,
    ADD CONSTRAINT run_verdict_when_finished CHECK
        ((status IN ('completed', 'failed')) = (verdict IS NOT NULL)
         AND (verdict IS NULL) = (finished_at IS NULL)),
    DROP CONSTRAINT run_failed_is_unmeasured,
    ADD CONSTRAINT run_failed_is_unmeasured CHECK (status <> 'failed' OR verdict = 'unmeasured');
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
