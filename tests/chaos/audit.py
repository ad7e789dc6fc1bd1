"""A log of every change of a shard, run, alert and result, written by triggers.

It stands in a schema of its own, in the transaction that makes the change: what was undone is not
in it. `chaos.transition` holds the row before and after, when, in which transaction, and the
`application_name` of the process that did it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

APPLICATION = "chaos audit"

TABLES = ("shard", "run", "alert", "result")

_INSTALL = """
CREATE SCHEMA chaos;
CREATE TABLE chaos.transition (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid    text NOT NULL DEFAULT pg_current_xact_id()::text,
    app    text NOT NULL DEFAULT current_setting('application_name'),
    what   text NOT NULL,
    run_id bigint NOT NULL,
    part   text NOT NULL,
    old    jsonb,
    new    jsonb
);
CREATE INDEX ON chaos.transition (run_id, id);
CREATE FUNCTION chaos.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    row jsonb := coalesce(after, before);
BEGIN
    IF before IS DISTINCT FROM after THEN
        INSERT INTO chaos.transition (what, run_id, part, old, new) VALUES (
            TG_TABLE_NAME,
            CASE TG_TABLE_NAME WHEN 'run' THEN row->>'id' ELSE row->>'run_id' END::bigint,
            coalesce(CASE TG_TABLE_NAME
                WHEN 'shard' THEN row->>'number'
                WHEN 'alert' THEN (row->>'channel') || ' ' || (row->>'kind')
                WHEN 'result' THEN row->>'position' END, ''),
            before, after);
    END IF;
    RETURN NULL;
END $$;
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one row; `old` is None for an insert, `new` for a delete."""

    id: int
    at: datetime
    xid: str
    app: str
    what: str
    run_id: int
    part: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None

    @property
    def states(self) -> tuple[str | None, str | None]:
        """The state, or a run's status, before and after."""
        name = "status" if self.what == "run" else "state"
        return (self.old or {}).get(name), (self.new or {}).get(name)

    @property
    def place(self) -> str:
        part = f" {self.part}" if self.part else ""
        return f"run {self.run_id}, {self.what}{part}"


def install(connection: psycopg.Connection[Any]) -> None:
    """Add the log and its triggers to the database."""
    connection.execute(_INSTALL)
    for table in TABLES:
        connection.execute(
            f"CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE OR DELETE ON recallwatch.{table}"
            " FOR EACH ROW EXECUTE FUNCTION chaos.note()"
        )


def changes(connection: psycopg.Connection[Any], run_ids: Sequence[int]) -> list[Change]:
    """Return what became of these runs and all that belongs to them, in order."""
    with connection.cursor(row_factory=class_row(Change)) as cursor:
        query = "SELECT * FROM chaos.transition WHERE run_id = ANY(%s) ORDER BY id"
        return cursor.execute(query, [list(run_ids)]).fetchall()
