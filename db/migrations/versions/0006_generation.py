"""Questions that Claude is asked for: what was asked, what it answered and cost, what became of it.

Revision ID: 0006
Revises: 0005
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# NaN is above infinity for PostgreSQL: what is below it is a number.
UPGRADE = """
CREATE TABLE recallwatch.generation (
    id                 bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT generation_pkey PRIMARY KEY,
    set_name           text NOT NULL,
    status             text NOT NULL DEFAULT 'queued' CONSTRAINT generation_status_known
        CHECK (status IN ('queued', 'running', 'screening', 'completed', 'failed', 'cancelled')),
    settings           jsonb NOT NULL,
    message_batches    boolean NOT NULL,
    corpus_fingerprint jsonb NOT NULL,
    max_cost           double precision
        CONSTRAINT generation_max_cost_is_an_amount
        CHECK (max_cost >= 0 AND max_cost < 'Infinity'),
    spent              double precision NOT NULL DEFAULT 0
        CONSTRAINT generation_spent_is_an_amount CHECK (spent >= 0 AND spent < 'Infinity'),
    requested_by       text,
    error              text,
    screen_token       bigint NOT NULL DEFAULT 0,
    screen_attempts    smallint NOT NULL DEFAULT 0,
    screen_next_at     timestamptz,
    screen_error       text,
    created_at         timestamptz NOT NULL DEFAULT now(),
    deadline_at        timestamptz NOT NULL,
    finished_at        timestamptz,
    CONSTRAINT generation_finished_when_over CHECK
        ((status IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT generation_failed_says_why CHECK (status <> 'failed' OR error IS NOT NULL)
);
CREATE INDEX generation_unfinished_idx ON recallwatch.generation (id)
    WHERE status IN ('queued', 'running', 'screening');

CREATE TABLE recallwatch.generation_request (
    generation_id  bigint NOT NULL CONSTRAINT generation_request_generation_id_fkey
        REFERENCES recallwatch.generation ON DELETE CASCADE,
    number         integer NOT NULL,
    ask            jsonb NOT NULL,
    state          text NOT NULL DEFAULT 'pending' CONSTRAINT generation_request_state_known
        CHECK (state IN ('pending', 'leased', 'asked', 'answered', 'refused', 'failed',
                         'unknown')),
    attempts       smallint NOT NULL DEFAULT 0,
    token          bigint NOT NULL DEFAULT 0,
    lease_until    timestamptz,
    next_at        timestamptz,
    rung_at        timestamptz,
    message_batch  text,
    batch_gone     boolean NOT NULL DEFAULT false,
    reserved       double precision NOT NULL DEFAULT 0,
    cost           double precision,
    input_tokens   bigint,
    output_tokens  bigint,
    reply          jsonb,
    error          text,
    CONSTRAINT generation_request_pkey PRIMARY KEY (generation_id, number),
    CONSTRAINT generation_request_lease_when_held CHECK
        ((state = 'leased') <= (lease_until IS NOT NULL)),
    CONSTRAINT generation_request_asked_is_looked_after CHECK
        (state <> 'asked' OR lease_until IS NOT NULL OR message_batch IS NOT NULL),
    CONSTRAINT generation_request_reserved_is_an_amount
        CHECK (reserved >= 0 AND reserved < 'Infinity'),
    CONSTRAINT generation_request_gone_is_a_batch CHECK
        (NOT batch_gone OR message_batch IS NOT NULL),
    CONSTRAINT generation_request_answered_has_reply CHECK
        (state <> 'answered' OR reply IS NOT NULL),
    CONSTRAINT generation_request_says_why CHECK
        (state NOT IN ('refused', 'failed', 'unknown') OR error IS NOT NULL)
);
CREATE INDEX generation_request_asked_idx ON recallwatch.generation_request (generation_id, number)
    WHERE state = 'asked';

CREATE TABLE recallwatch.candidate (
    generation_id bigint NOT NULL,
    number        integer NOT NULL,
    ordinal       smallint NOT NULL,
    text          text NOT NULL,
    expected      jsonb NOT NULL,
    kind          text NOT NULL CONSTRAINT candidate_kind_known
        CHECK (kind IN ('answerable', 'unanswerable')),
    category      text,
    tenant        text,
    language      text,
    state         text NOT NULL DEFAULT 'drafted' CONSTRAINT candidate_state_known
        CHECK (state IN ('drafted', 'kept', 'rejected')),
    rejection     text,
    detail        text,
    facts         jsonb,
    question_id   bigint CONSTRAINT candidate_question_id_fkey
        REFERENCES recallwatch.question ON DELETE SET NULL,
    CONSTRAINT candidate_pkey PRIMARY KEY (generation_id, number, ordinal),
    CONSTRAINT candidate_generation_id_number_fkey FOREIGN KEY (generation_id, number)
        REFERENCES recallwatch.generation_request ON DELETE CASCADE,
    CONSTRAINT candidate_rejection_when_rejected CHECK
        ((state = 'rejected') = (rejection IS NOT NULL))
);

UPDATE recallwatch.batch SET max_cost = NULL WHERE max_cost >= 'Infinity';
ALTER TABLE recallwatch.batch DROP CONSTRAINT batch_max_cost_not_negative,
    ADD CONSTRAINT batch_max_cost_is_an_amount CHECK (max_cost >= 0 AND max_cost < 'Infinity');
"""

DOWNGRADE = """
ALTER TABLE recallwatch.batch DROP CONSTRAINT batch_max_cost_is_an_amount,
    ADD CONSTRAINT batch_max_cost_not_negative CHECK (max_cost >= 0);
DROP TABLE recallwatch.candidate, recallwatch.generation_request, recallwatch.generation;
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
