"""What came back beside the ranking: rows, leaks, rankings of stages; latency; side vectors.

Revision ID: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

UPGRADE = """
ALTER TABLE recallwatch.result
    ADD COLUMN returned integer
        CONSTRAINT result_returned_not_negative CHECK (returned >= 0),
    ADD COLUMN leaked text[] NOT NULL DEFAULT '{}',
    ADD COLUMN ms double precision CONSTRAINT result_ms_not_negative CHECK (ms >= 0);

CREATE TABLE recallwatch.stage_ranking (
    run_id    bigint NOT NULL,
    position  integer NOT NULL,
    stage     text NOT NULL,
    retrieved text[] NOT NULL,
    scores    double precision[] NOT NULL,
    CONSTRAINT stage_ranking_pkey PRIMARY KEY (run_id, position, stage),
    CONSTRAINT stage_ranking_run_id_position_fkey FOREIGN KEY (run_id, position)
        REFERENCES recallwatch.result ON DELETE CASCADE
);

-- Stored settings and facts, as runs have them from here on: arms hold weights, and what they are
-- stands in parts; under-filled searches are counted by cause, which nobody knows of old ones.
UPDATE recallwatch.run SET
    settings = '{"store_stages": true, "latency_sample": 100}' || settings,
    facts = CASE jsonb_typeof(facts -> 'underfilled')
        WHEN 'number' THEN facts - 'underfilled' ELSE facts END;
UPDATE recallwatch.run SET settings = jsonb_set(settings, '{strategy}', settings -> 'strategy'
    || (SELECT jsonb_build_object('arms', jsonb_object_agg(key, value -> 'weight'), 'parts',
            jsonb_object_agg(key, jsonb_build_object('name', key) || (value - 'weight')))
        FROM jsonb_each(settings #> '{strategy,arms}')))
    WHERE settings #>> '{strategy,kind}' = 'hybrid' AND NOT settings -> 'strategy' ? 'parts';
UPDATE recallwatch.calibration SET settings = jsonb_set(settings, '{strategy}',
    settings -> 'strategy'
    || (SELECT jsonb_build_object('arms', jsonb_object_agg(key, value -> 'weight'), 'parts',
            jsonb_object_agg(key, jsonb_build_object('name', key) || (value - 'weight')))
        FROM jsonb_each(settings #> '{strategy,arms}')))
    WHERE settings #>> '{strategy,kind}' = 'hybrid' AND NOT settings -> 'strategy' ? 'parts';

CREATE TABLE recallwatch.side_vector (
    source    text NOT NULL,
    text_hash text NOT NULL,
    vector    bytea NOT NULL,
    made_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT side_vector_pkey PRIMARY KEY (source, text_hash)
);
"""

DOWNGRADE = """
DROP TABLE recallwatch.side_vector;
DROP TABLE recallwatch.stage_ranking;
ALTER TABLE recallwatch.result
    DROP COLUMN returned, DROP COLUMN leaked, DROP COLUMN ms;
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
