"""First tables: golden set, versions, batches, runs, shards, results.

Revision ID: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UPGRADE = """
CREATE TABLE recallwatch.question (
    id           bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT question_pkey PRIMARY KEY,
    set_name     text NOT NULL,
    external_id  text,
    text         text NOT NULL CONSTRAINT question_text_not_blank CHECK (btrim(text) <> ''),
    content_hash text NOT NULL,
    item_hash    text NOT NULL,
    kind         text NOT NULL
        CONSTRAINT question_kind_known CHECK (kind IN ('answerable', 'unanswerable')),
    category     text,
    tenant       text,
    language     text,
    source       text NOT NULL
        CONSTRAINT question_source_known CHECK (source IN ('manual', 'synthetic', 'log')),
    status       text NOT NULL CONSTRAINT question_status_known
        CHECK (status IN ('proposed', 'active', 'retired', 'rejected')),
    must_pass    boolean NOT NULL,
    notes        text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX question_external_id_key ON recallwatch.question (set_name, external_id)
    WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX question_content_key ON recallwatch.question (set_name, content_hash)
    WHERE external_id IS NULL;

CREATE TABLE recallwatch.judgment (
    question_id bigint NOT NULL CONSTRAINT judgment_question_id_fkey
        REFERENCES recallwatch.question ON DELETE CASCADE,
    key         text NOT NULL,
    grade       integer NOT NULL,
    CONSTRAINT judgment_pkey PRIMARY KEY (question_id, key)
);

CREATE TABLE recallwatch.golden_version (
    id          bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT golden_version_pkey PRIMARY KEY,
    set_name    text NOT NULL,
    fingerprint text NOT NULL,
    size        bigint NOT NULL CONSTRAINT golden_version_not_empty CHECK (size > 0),
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT golden_version_set_name_fingerprint_key UNIQUE (set_name, fingerprint)
);

CREATE TABLE recallwatch.golden_item (
    version_id   bigint NOT NULL CONSTRAINT golden_item_version_id_fkey
        REFERENCES recallwatch.golden_version ON DELETE CASCADE,
    position     integer NOT NULL CONSTRAINT golden_item_position_from_zero CHECK (position >= 0),
    question_id  bigint NOT NULL,
    external_id  text,
    content_hash text NOT NULL,
    text         text NOT NULL,
    expected     jsonb NOT NULL,
    kind         text NOT NULL,
    category     text,
    tenant       text,
    language     text,
    source       text NOT NULL,
    must_pass    boolean NOT NULL,
    CONSTRAINT golden_item_pkey PRIMARY KEY (version_id, position)
);
CREATE INDEX golden_item_content_hash_idx
    ON recallwatch.golden_item (version_id, content_hash);

CREATE FUNCTION recallwatch.refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a golden version never changes: import the questions and snapshot them anew';
END $$;
CREATE TRIGGER golden_item_immutable BEFORE UPDATE ON recallwatch.golden_item
    FOR EACH ROW EXECUTE FUNCTION recallwatch.refuse_update();
CREATE TRIGGER golden_version_immutable BEFORE UPDATE ON recallwatch.golden_version
    FOR EACH ROW EXECUTE FUNCTION recallwatch.refuse_update();

CREATE TABLE recallwatch.batch (
    id           bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT batch_pkey PRIMARY KEY,
    version_id   bigint NOT NULL CONSTRAINT batch_version_id_fkey
        REFERENCES recallwatch.golden_version,
    trigger      text NOT NULL CONSTRAINT batch_trigger_known
        CHECK (trigger IN ('manual', 'schedule', 'reindex', 'ci')),
    requested_by text,
    created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE recallwatch.run (
    id                  bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT run_pkey PRIMARY KEY,
    batch_id            bigint NOT NULL CONSTRAINT run_batch_id_fkey REFERENCES recallwatch.batch,
    strategy            text NOT NULL,
    settings            jsonb NOT NULL,
    needs_vectors       boolean NOT NULL,
    k                   integer NOT NULL CONSTRAINT run_k_in_range CHECK (k BETWEEN 1 AND 1000),
    level               text NOT NULL
        CONSTRAINT run_level_known CHECK (level IN ('chunk', 'document')),
    convention          text NOT NULL,
    measures            text[] NOT NULL,
    relevance_threshold integer NOT NULL,
    gate                jsonb NOT NULL,
    size                bigint NOT NULL,
    status              text NOT NULL DEFAULT 'queued' CONSTRAINT run_status_known
        CHECK (status IN ('queued', 'running', 'completed', 'failed')),
    verdict             text CONSTRAINT run_verdict_known CHECK (verdict IN
        ('baseline', 'ok', 'improved', 'regressed', 'incomparable', 'unmeasured')),
    reasons             text[],
    metrics             jsonb,
    facts               jsonb,
    by_category         jsonb,
    by_tenant           jsonb,
    comparison          jsonb,
    n_scored            bigint,
    n_failed            bigint,
    n_ineligible        bigint,
    latency             jsonb,
    cost                jsonb,
    embedding_model     text,
    corpus_fingerprint  jsonb NOT NULL,
    git_sha             text,
    compared_to         bigint CONSTRAINT run_compared_to_fkey REFERENCES recallwatch.run,
    created_at          timestamptz NOT NULL DEFAULT now(),
    started_at          timestamptz,
    finished_at         timestamptz,
    deadline_at         timestamptz NOT NULL,
    CONSTRAINT run_verdict_when_finished CHECK
        ((status IN ('completed', 'failed')) = (verdict IS NOT NULL)
         AND (verdict IS NULL) = (finished_at IS NULL)),
    CONSTRAINT run_failed_is_unmeasured CHECK (status <> 'failed' OR verdict = 'unmeasured'),
    CONSTRAINT run_every_question_counted CHECK
        (status <> 'completed' OR (n_scored + n_failed + n_ineligible = size) IS TRUE)
);
CREATE INDEX run_batch_id_idx ON recallwatch.run (batch_id);
CREATE INDEX run_reference_idx ON recallwatch.run (strategy, k, level, id);
CREATE INDEX run_unfinished_idx ON recallwatch.run (id) WHERE status IN ('queued', 'running');

CREATE TABLE recallwatch.shard (
    run_id         bigint NOT NULL CONSTRAINT shard_run_id_fkey
        REFERENCES recallwatch.run ON DELETE CASCADE,
    number         integer NOT NULL,
    first_position integer NOT NULL,
    last_position  integer NOT NULL,
    state          text NOT NULL DEFAULT 'pending' CONSTRAINT shard_state_known
        CHECK (state IN ('pending', 'leased', 'done', 'failed')),
    attempts       smallint NOT NULL DEFAULT 0,
    token          bigint NOT NULL DEFAULT 0,
    lease_until    timestamptz,
    next_at        timestamptz,
    rung_at        timestamptz,
    worker         text,
    error          text,
    stats          jsonb,
    CONSTRAINT shard_pkey PRIMARY KEY (run_id, number),
    CONSTRAINT shard_slice_not_empty CHECK
        (first_position >= 0 AND last_position >= first_position),
    CONSTRAINT shard_lease_when_leased CHECK ((state = 'leased') = (lease_until IS NOT NULL)),
    CONSTRAINT shard_failed_says_why CHECK (state <> 'failed' OR error IS NOT NULL)
);

CREATE TABLE recallwatch.result (
    run_id     bigint NOT NULL CONSTRAINT result_run_id_fkey
        REFERENCES recallwatch.run ON DELETE CASCADE,
    position   integer NOT NULL,
    outcome    text NOT NULL CONSTRAINT result_outcome_known
        CHECK (outcome IN ('scored', 'failed', 'ineligible')),
    retrieved  text[] NOT NULL,
    scores     double precision[] NOT NULL,
    measured   double precision[],
    first_rank integer,
    missing    text[] NOT NULL,
    error      text,
    CONSTRAINT result_pkey PRIMARY KEY (run_id, position),
    CONSTRAINT result_measured_when_scored CHECK
        ((outcome = 'scored') = (measured IS NOT NULL)),
    CONSTRAINT result_error_when_failed CHECK ((outcome = 'failed') = (error IS NOT NULL))
);
"""

DOWNGRADE = """
DROP TABLE recallwatch.result, recallwatch.shard, recallwatch.run, recallwatch.batch,
    recallwatch.golden_item, recallwatch.golden_version, recallwatch.judgment,
    recallwatch.question;
DROP FUNCTION recallwatch.refuse_update();
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
