"""Baselines that a person pinned, and the outbox of alerts.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

UPGRADE = """
CREATE TABLE recallwatch.baseline (
    set_name  text NOT NULL,
    strategy  text NOT NULL,
    k         integer NOT NULL,
    level     text NOT NULL,
    run_id    bigint NOT NULL CONSTRAINT baseline_run_id_fkey
        REFERENCES recallwatch.run ON DELETE CASCADE,
    pinned_at timestamptz NOT NULL DEFAULT now(),
    pinned_by text,
    CONSTRAINT baseline_pkey PRIMARY KEY (set_name, strategy, k, level)
);
ALTER TABLE recallwatch.run
    ADD COLUMN baseline_run bigint CONSTRAINT run_baseline_run_fkey REFERENCES recallwatch.run,
    ADD COLUMN baseline_comparison jsonb;

CREATE TABLE recallwatch.alert (
    id         bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT alert_pkey PRIMARY KEY,
    run_id     bigint NOT NULL CONSTRAINT alert_run_id_fkey
        REFERENCES recallwatch.run ON DELETE CASCADE,
    channel    text NOT NULL,
    kind       text NOT NULL CONSTRAINT alert_kind_known
        CHECK (kind IN ('regressed', 'unmeasured', 'recovered', 'golden_stale')),
    payload    jsonb NOT NULL,
    state      text NOT NULL DEFAULT 'pending' CONSTRAINT alert_state_known
        CHECK (state IN ('pending', 'claimed', 'sent', 'failed', 'unknown')),
    attempts   smallint NOT NULL DEFAULT 0,
    next_at    timestamptz NOT NULL DEFAULT now(),
    claimed_at timestamptz,
    sent_at    timestamptz,
    error      text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT alert_run_id_channel_kind_key UNIQUE (run_id, channel, kind),
    CONSTRAINT alert_claimed_when_claimed CHECK (state <> 'claimed' OR claimed_at IS NOT NULL),
    CONSTRAINT alert_sent_when_sent CHECK ((state = 'sent') = (sent_at IS NOT NULL)),
    CONSTRAINT alert_failed_says_why CHECK
        (state NOT IN ('failed', 'unknown') OR error IS NOT NULL)
);
CREATE INDEX alert_waiting_idx ON recallwatch.alert (next_at)
    WHERE state IN ('pending', 'claimed');
"""

DOWNGRADE = """
DROP TABLE recallwatch.alert;
ALTER TABLE recallwatch.run DROP COLUMN baseline_run, DROP COLUMN baseline_comparison;
DROP TABLE recallwatch.baseline;
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
