"""Faults put into the product on purpose: the suite must catch each, or the suite is broken.

Most are patches of a worker's process, made by `apply` in its bootstrap; some are changes of the
database. What is patched must be there: a mutant that finds nothing to change is an error.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from sqlalchemy import text

Patch = Callable[[], None]


class SQLText:
    """Stands in for SQLAlchemy's `text` in one module, and changes statements on their way."""

    def __init__(self, changes: Mapping[str, str]) -> None:
        self.changes = changes

    def __call__(self, statement: str) -> Any:  # noqa: ANN401 - SQLAlchemy's TextClause
        for old, new in self.changes.items():
            statement = statement.replace(old, new)
        return text(statement)


def _sql(module: ModuleType, changes: Mapping[str, str]) -> None:
    from inspect import getsource  # noqa: PLC0415 - workers without a mutant need none

    for old in changes:
        assert old in getsource(module), f"{module.__name__} has no {old!r} to change"
    module.text = SQLText(changes)  # type: ignore[attr-defined]  # a module's name


def _token_check_off() -> None:
    from db import shards  # noqa: PLC0415

    _sql(shards, {"AND token = :token AND state = 'leased'":
                  "AND (token = :token OR true) AND state = 'leased'"})  # fmt: skip


def _lease_ignored() -> None:
    from db import shards  # noqa: PLC0415

    _sql(shards, {"s.state = 'leased' AND s.lease_until < clock_timestamp()": "s.state = 'leased'"})


def _attempt_cap_off() -> None:
    from db import shards  # noqa: PLC0415

    _sql(shards, {"s.attempts < :attempts": "(s.attempts < :attempts OR true)",
                  "s.attempts >= :attempts": "(s.attempts >= :attempts AND false)"})  # fmt: skip


def _count_check_off() -> None:
    from db import results  # noqa: PLC0415
    from workers import reducing  # noqa: PLC0415

    def complete_all_the_same(ctx: Any, session: Any, found: Any, _: int) -> list[int]:  # noqa: ANN401
        return reducing._complete(ctx, session, found, results.aggregate(session, found.run))

    reducing._refuse = complete_all_the_same  # type: ignore[assignment]  # its parameters are Any


def _lock_off() -> None:
    from db import run_states  # noqa: PLC0415
    from db.models import Run  # noqa: PLC0415

    def look_without_lock(session: Any, run_id: int) -> Any:  # noqa: ANN401
        return session.get(Run, run_id)

    run_states.lock = look_without_lock


def _sweep_off() -> None:
    from workers import sweeping  # noqa: PLC0415

    def do_nothing(_: object) -> None:
        return None

    sweeping.sweep = do_nothing  # type: ignore[assignment]


def _unknown_alerts_resent() -> None:
    from db import alerts  # noqa: PLC0415

    _sql(alerts, {"WHEN 'claimed' THEN 'unknown' ELSE": "WHEN 'claimed' THEN 'pending' ELSE"})


def _alert_claimed_after_the_post() -> None:
    from db import alerts  # noqa: PLC0415

    claim, close = alerts.claim, alerts.close

    def look(session: Any, alert_id: int) -> Any:  # noqa: ANN401
        row = session.execute(
            text("SELECT id, channel, payload, attempts + 1 AS attempt FROM recallwatch.alert"
                 " WHERE id = :id AND state = 'pending' AND next_at <= clock_timestamp()"),
            {"id": alert_id},
        ).one_or_none()  # fmt: skip
        return (
            None if row is None else alerts.Claimed(row.id, row.channel, row.payload, row.attempt)
        )

    def claim_and_close(session: Any, claimed: Any, *rest: Any, **named: Any) -> bool:  # noqa: ANN401
        return claim(session, claimed.id) is not None and close(session, claimed, *rest, **named)

    alerts.claim, alerts.close = look, claim_and_close


UNIQUE_KEY_DROPPED = "ALTER TABLE recallwatch.result DROP CONSTRAINT result_pkey"
COUNT_CHECK_DROPPED = "ALTER TABLE recallwatch.run DROP CONSTRAINT run_every_question_counted"

PATCHES: Mapping[str, Patch] = {
    "token check off": _token_check_off,
    "count check off": _count_check_off,
    "lock off": _lock_off,
    "sweep off": _sweep_off,
    "unknown alerts resent": _unknown_alerts_resent,
    "lease ignored": _lease_ignored,
    "attempt cap off": _attempt_cap_off,
    "alert claimed after the post": _alert_claimed_after_the_post,
}
STATEMENTS: Mapping[str, str] = {
    "unique key dropped": UNIQUE_KEY_DROPPED,
    "count check off": COUNT_CHECK_DROPPED,
}
NAMES = tuple(dict.fromkeys((*STATEMENTS, *PATCHES)))


def apply(name: str | None) -> None:
    """Patch this process as the mutant says; None: leave it as it is."""
    if name is not None and name in PATCHES:
        PATCHES[name]()
