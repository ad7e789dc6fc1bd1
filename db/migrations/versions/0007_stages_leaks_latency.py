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
