"""What a judgment was judged on, edits that can be undone, keys to propose, runs by source.

Revision ID: 0005
Revises: 0004
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

UPGRADE = """
CREATE TABLE recallwatch.evidence (
    hash text CONSTRAINT evidence_pkey PRIMARY KEY,
    text text NOT NULL
);
ALTER TABLE recallwatch.judgment
    ADD COLUMN evidence_hash text CONSTRAINT judgment_evidence_hash_fkey
        REFERENCES recallwatch.evidence,
    ADD COLUMN judged_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN judged_by text;
-- When a question was changed last is the best that is known of when it was judged.
UPDATE recallwatch.judgment j SET judged_at = q.updated_at
FROM recallwatch.question q WHERE q.id = j.question_id;
CREATE INDEX judgment_evidence_hash_idx ON recallwatch.judgment (evidence_hash)
    WHERE evidence_hash IS NOT NULL;
ALTER TABLE recallwatch.question
    ADD COLUMN provenance jsonb,
    ADD COLUMN reviewed_at timestamptz,
    ADD COLUMN reviewed_by text,
    ADD COLUMN rejection text,
    ADD CONSTRAINT question_rejection_when_rejected CHECK
        (rejection IS NULL OR status = 'rejected');
CREATE INDEX question_status_idx ON recallwatch.question (set_name, status, id);

CREATE TABLE recallwatch.proposed_key (
    question_id bigint NOT NULL CONSTRAINT proposed_key_question_id_fkey
        REFERENCES recallwatch.question ON DELETE CASCADE,
    key         text NOT NULL,
    reason      text NOT NULL,
    similarity  double precision,
    CONSTRAINT proposed_key_pkey PRIMARY KEY (question_id, key)
);

CREATE TABLE recallwatch.edit (
    id        bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT edit_pkey PRIMARY KEY,
    set_name  text NOT NULL,
    action    text NOT NULL CONSTRAINT edit_action_known
        CHECK (action IN ('accept', 'reject', 'change', 'import', 'remap')),
    edited_by text,
    edited_at timestamptz NOT NULL DEFAULT now(),
    undone_at timestamptz,
    undone_by text,
    CONSTRAINT edit_undone_at_some_time CHECK (undone_by IS NULL OR undone_at IS NOT NULL)
);
CREATE INDEX edit_set_name_idx ON recallwatch.edit (set_name, id);
CREATE TABLE recallwatch.edit_item (
    edit_id     bigint NOT NULL CONSTRAINT edit_item_edit_id_fkey
        REFERENCES recallwatch.edit ON DELETE CASCADE,
    question_id bigint NOT NULL CONSTRAINT edit_item_question_id_fkey
        REFERENCES recallwatch.question ON DELETE CASCADE,
    before      jsonb NOT NULL,
    after       jsonb NOT NULL,
    CONSTRAINT edit_item_pkey PRIMARY KEY (edit_id, question_id)
);
CREATE INDEX edit_item_question_id_idx ON recallwatch.edit_item (question_id);
ALTER TABLE recallwatch.run ADD COLUMN by_source jsonb;
"""

DOWNGRADE = """
ALTER TABLE recallwatch.run DROP COLUMN by_source;
DROP TABLE recallwatch.edit_item, recallwatch.edit, recallwatch.proposed_key;
DROP INDEX recallwatch.question_status_idx;
ALTER TABLE recallwatch.question
    DROP COLUMN provenance, DROP COLUMN reviewed_at, DROP COLUMN reviewed_by,
    DROP COLUMN rejection;
ALTER TABLE recallwatch.judgment
    DROP COLUMN evidence_hash, DROP COLUMN judged_at, DROP COLUMN judged_by;
DROP TABLE recallwatch.evidence;
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
