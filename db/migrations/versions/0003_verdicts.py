"""What a verdict needs: its findings, exact search beside the index, calibrations; and schedules.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UPGRADE = """
ALTER TABLE recallwatch.run
    DROP CONSTRAINT run_verdict_known,
    ADD CONSTRAINT run_verdict_known CHECK (verdict IN
        ('baseline', 'ok', 'watch', 'improved', 'regressed', 'incomparable', 'unmeasured')),
    ADD COLUMN findings jsonb,
    ADD COLUMN cause text CONSTRAINT run_cause_known CHECK (cause IN ('corpus', 'index', 'both')),
    ADD COLUMN exact jsonb;
ALTER TABLE recallwatch.shard
    ADD COLUMN kind text NOT NULL DEFAULT 'served'
    CONSTRAINT shard_kind_known CHECK (kind IN ('served', 'exact')),
    ADD COLUMN ef_search jsonb;

CREATE TABLE recallwatch.exact_result (
    run_id    bigint NOT NULL CONSTRAINT exact_result_run_id_fkey
        REFERENCES recallwatch.run ON DELETE CASCADE,
    position  integer NOT NULL,
    retrieved text[] NOT NULL,
    measured  double precision[] NOT NULL,
    CONSTRAINT exact_result_pkey PRIMARY KEY (run_id, position)
);

CREATE TABLE recallwatch.calibration (
    id          bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT calibration_pkey PRIMARY KEY,
    set_name    text NOT NULL,
    strategy    text NOT NULL,
    k           integer NOT NULL,
    level       text NOT NULL CONSTRAINT calibration_level_known
        CHECK (level IN ('chunk', 'document')),
    version_id  bigint NOT NULL CONSTRAINT calibration_version_id_fkey
        REFERENCES recallwatch.golden_version,
    settings    jsonb NOT NULL,
    corpus_fingerprint jsonb NOT NULL,
    reindexed   boolean NOT NULL,
    n           bigint NOT NULL,
    pairs       integer NOT NULL,
    flips       bigint NOT NULL,
    largest_net bigint NOT NULL,
    differences jsonb NOT NULL,
    totals      jsonb NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT calibration_measured_something CHECK (n > 0 AND pairs > 0),
    CONSTRAINT calibration_flips_in_range CHECK (flips BETWEEN 0 AND n * pairs),
    CONSTRAINT calibration_net_in_range CHECK (largest_net BETWEEN 0 AND n)
);
CREATE INDEX calibration_strategy_idx
    ON recallwatch.calibration (set_name, strategy, k, level, id);

ALTER TABLE recallwatch.batch ADD COLUMN quiet_until timestamptz;
CREATE INDEX batch_quiet_idx ON recallwatch.batch (quiet_until) WHERE quiet_until IS NOT NULL;

CREATE TABLE recallwatch.seen_schedule (
    name    text NOT NULL,
    rule    text NOT NULL,
    seen_at timestamptz NOT NULL,
    CONSTRAINT seen_schedule_pkey PRIMARY KEY (name, rule)
);

CREATE TABLE recallwatch.schedule_slot (
    schedule   text NOT NULL,
    due_at     timestamptz NOT NULL,
    outcome    text NOT NULL CONSTRAINT schedule_slot_outcome_known
        CHECK (outcome IN ('started', 'skipped', 'failed')),
    batch_id   bigint CONSTRAINT schedule_slot_batch_id_fkey
        REFERENCES recallwatch.batch ON DELETE CASCADE,
    reason     text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT schedule_slot_pkey PRIMARY KEY (schedule, due_at),
    CONSTRAINT schedule_slot_batch_or_reason CHECK
        ((outcome = 'started') = (batch_id IS NOT NULL)
         AND (outcome = 'started') = (reason IS NULL))
);
"""

DOWNGRADE = """
DROP TABLE recallwatch.schedule_slot;
DROP TABLE recallwatch.seen_schedule;
ALTER TABLE recallwatch.batch DROP COLUMN quiet_until;
DROP TABLE recallwatch.calibration;
DROP TABLE recallwatch.exact_result;
ALTER TABLE recallwatch.shard DROP COLUMN kind, DROP COLUMN ef_search;
ALTER TABLE recallwatch.run
    DROP COLUMN findings, DROP COLUMN cause, DROP COLUMN exact,
    DROP CONSTRAINT run_verdict_known,
    ADD CONSTRAINT run_verdict_known CHECK (verdict IN
        ('baseline', 'ok', 'improved', 'regressed', 'incomparable', 'unmeasured'));
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
