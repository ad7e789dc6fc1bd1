"""Histories of two alerts in two sessions, drawn at random and held against a model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from db import alerts
from db.session import Database, Session
from pipeline.errors import UsageError
from pipeline.types import AlertKind, AlertState
from tests.integration.db.building import execute, fetch, import_set, questions, start_run
from tests.integration.db.interleaving import EXAMPLES, Interleaving, at_length

CHANNELS = ("program", "team")

WHO = st.sampled_from([0, 1])
STAYS = st.sampled_from([False, False, True])
NUMBER = st.sampled_from([0, 1])
STATE = st.sampled_from(["sent", "unknown", "failed", "pending"])
PICK = st.integers(0, 3)
"""How many claims back: 0 is the newest."""

LATER = {False: 0.0, True: 3600.0}

ILLEGAL = (
    "state = 'sent', sent_at = NULL",
    "state = 'pending', sent_at = now()",
    "state = 'unknown', sent_at = NULL, error = NULL",
    "state = 'failed', sent_at = NULL, error = NULL",
    "state = 'claimed', sent_at = NULL, claimed_at = NULL",
    "state = 'lost'",
    "kind = 'other'",
)


@dataclass(slots=True)
class AlertModel:
    """An alert as docs/state_machine.md draws it.

    `waits`: its next try has not come; `claim_is_old` and `is_old`: ten minutes, a day have passed.
    """

    state: str = "pending"
    attempts: int = 0
    waits: bool = False
    claim_is_old: bool = False
    is_old: bool = False
    has_reason: bool = False

    @property
    def is_due(self) -> bool:
        return self.state == "pending" and not self.waits


@dataclass(slots=True)
class Outbox:
    """The alerts, by number."""

    alerts: list[AlertModel] = field(default_factory=lambda: [AlertModel(), AlertModel()])

    def claim(self, number: int) -> int | None:
        """Return the attempt."""
        alert = self.alerts[number]
        if not alert.is_due:
            return None
        alert.state, alert.claim_is_old, alert.has_reason = "claimed", False, False
        alert.attempts += 1
        return alert.attempts

    def close(self, number: int, attempt: int, state: str, *, waits: bool) -> bool:
        alert = self.alerts[number]
        if alert.state != "claimed" or alert.attempts != attempt:
            return False
        alert.state, alert.waits, alert.has_reason = state, waits, state != "sent"
        return True

    def age(self) -> None:
        for alert in self.alerts:
            if alert.state == "claimed" and alert.claim_is_old:
                alert.state, alert.has_reason = "unknown", True
            elif alert.state == "pending" and alert.is_old:
                alert.state, alert.has_reason = "failed", True

    def resend(self, number: int) -> bool:
        alert = self.alerts[number]
        if alert.state in {"pending", "claimed"}:
            return False
        alert.state, alert.waits, alert.is_old, alert.has_reason = "pending", False, False, False
        return True


class AlertMachine(RuleBasedStateMachine):
    """Whatever two workers, two sweeps and two people do: the outbox says what the model says."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.db = Database(url)
        self.run_id = start_run(self.db)
        self.two = Interleaving(url, Outbox())
        self.claims: list[tuple[int, alerts.Claimed]] = []
        self.attempts = [0, 0]
        with self.db.begin() as session:
            self.ids = sorted(self._add(session))

    def teardown(self) -> None:
        self.two.close()
        execute(self.db, "DELETE FROM recallwatch.run WHERE id = :run", {"run": self.run_id})
        self.db.close()

    @rule(who=WHO, stays=STAYS)
    def add_what_is_there(self, who: int, stays: bool) -> None:
        self.two.act(who, self._add, lambda _: [], stay_open=stays)

    @rule(who=WHO, stays=STAYS, number=NUMBER)
    def claim(self, who: int, stays: bool, number: int) -> None:
        found: list[tuple[int, alerts.Claimed]] = []

        def act(session: Session) -> int | None:
            claimed = alerts.claim(session, self.ids[number])
            if claimed is None:
                return None
            found.append((number, claimed))
            return claimed.attempt

        self.two.act(
            who,
            act,
            lambda model: model.claim(number),
            stay_open=stays,
            then=lambda _: self.claims.extend(found),
        )

    @precondition(lambda self: self.claims)
    @rule(
        who=WHO,
        stays=STAYS,
        back=PICK,
        state=STATE,
        waits=st.booleans(),
    )
    def close(self, who: int, stays: bool, back: int, state: str, waits: bool) -> None:
        number, claimed = self.claims[-1 - back % len(self.claims)]
        error = None if state == "sent" else "a reason"
        self.two.act(
            who,
            lambda session: alerts.close(
                session, claimed, AlertState(state), error=error, wait=LATER[waits]
            ),
            lambda model: model.close(number, claimed.attempt, state, waits=waits),
            stay_open=stays,
        )

    @initialize(tried=st.booleans())
    def begin(self, tried: bool) -> None:
        if tried:
            self.try_again(who=0, number=0)

    @rule(who=WHO, number=NUMBER)
    def try_again(self, who: int, number: int) -> None:
        """Claim an alert whose first worker thinks that it still has it."""
        self.claim(who=who, stays=False, number=number)
        if self.claims:
            self.close(who=who, stays=False, back=0, state="pending", waits=False)
        self.claim(who=who, stays=False, number=number)

    @precondition(lambda self: self._overtaken())
    @rule(who=WHO, stays=STAYS, state=STATE)
    def come_back_late(self, who: int, stays: bool, state: str) -> None:
        self.close(who=who, stays=stays, back=self._overtaken()[0], state=state, waits=True)

    def _overtaken(self) -> list[int]:
        """Return which claims back are of an alert that somebody else has claimed by now."""
        rows = self.two.model.alerts
        return [
            back
            for back, (number, claimed) in enumerate(reversed(self.claims))
            if rows[number].state == "claimed" and rows[number].attempts > claimed.attempt
        ]

    @rule(who=WHO, stays=STAYS)
    def age(self, who: int, stays: bool) -> None:
        def act(session: Session) -> None:
            alerts.age(session)

        self.two.act(who, act, Outbox.age, stay_open=stays)

    @rule(who=WHO, stays=STAYS, number=NUMBER)
    def resend(self, who: int, stays: bool, number: int) -> None:
        def act(session: Session) -> bool:
            try:
                alerts.resend(session, self.ids[number])
            except UsageError:
                return False
            return True

        self.two.act(who, act, lambda model: model.resend(number), stay_open=stays)

    @rule(who=WHO)
    def look(self, who: int) -> None:
        """Ask what a sweep asks; nothing of it waits for an open transaction."""

        def expect(model: Outbox) -> list[int]:
            numbered = zip(self.ids, model.alerts, strict=True)
            return [number for number, alert in numbered if alert.is_due]

        assert self.two.act(who, self._due, expect) is not None

    @rule(who=WHO, number=NUMBER)
    def let_wait_end(self, who: int, number: int) -> None:
        def expect(alert: AlertModel) -> None:
            alert.waits = False

        self._pass_time(who, number, "next_at = next_at - interval '2 hours'", expect)

    @rule(who=WHO, number=NUMBER)
    def let_claim_grow_old(self, who: int, number: int) -> None:
        def expect(alert: AlertModel) -> None:
            alert.claim_is_old = alert.attempts > 0

        self._pass_time(who, number, "claimed_at = claimed_at - interval '11 minutes'", expect)

    @rule(who=WHO, number=NUMBER)
    def let_a_day_pass(self, who: int, number: int) -> None:
        def expect(alert: AlertModel) -> None:
            alert.is_old = True

        self._pass_time(who, number, "created_at = created_at - interval '25 hours'", expect)

    @precondition(lambda self: self.two.is_open)
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        self.two.end(commit=commit)

    @precondition(lambda self: not self.two.is_open)
    @rule(change=st.sampled_from(ILLEGAL), number=NUMBER)
    def write_what_is_not_drawn(self, change: str, number: int) -> None:
        with pytest.raises(IntegrityError):
            execute(
                self.db,
                f"UPDATE recallwatch.alert SET {change} WHERE id = :id",  # noqa: S608 - a constant
                {"id": self.ids[number]},
            )

    @precondition(lambda self: not self.two.is_open)
    @rule()
    def write_an_alert_twice(self) -> None:
        with pytest.raises(IntegrityError):
            execute(
                self.db,
                "INSERT INTO recallwatch.alert (run_id, channel, kind, payload)"
                " SELECT run_id, channel, kind, payload FROM recallwatch.alert WHERE run_id = :run",
                {"run": self.run_id},
            )

    @invariant()
    def all_is_as_drawn(self) -> None:
        with self.db.begin() as session:
            rows = session.execute(text(_ALERTS), {"run": self.run_id}).all()
        found = [AlertModel(*row) for row in rows]
        assert found == self.two.model.alerts
        attempts = [alert.attempts for alert in found]
        assert all(now >= before for now, before in zip(attempts, self.attempts, strict=True))
        self.attempts = attempts

    def _add(self, session: Session) -> list[int]:
        payloads: dict[str, dict[str, Any]] = {channel: {"id": channel} for channel in CHANNELS}
        return alerts.add(session, self.run_id, AlertKind.REGRESSED, payloads)

    def _due(self, session: Session) -> list[int]:
        return [number for number in alerts.due(session) if number in self.ids]

    def _pass_time(
        self, who: int, number: int, change: str, expect: Callable[[AlertModel], None]
    ) -> None:
        statement = text(f"UPDATE recallwatch.alert SET {change} WHERE id = :id")  # noqa: S608 - a constant

        def act(session: Session) -> None:
            session.execute(statement, {"id": self.ids[number]})

        self.two.act(who, act, lambda model: expect(model.alerts[number]))


_ALERTS = """
SELECT state, attempts, next_at > clock_timestamp(),
    coalesce(claimed_at < clock_timestamp() - interval '10 minutes', false),
    created_at < clock_timestamp() - interval '1 day', error IS NOT NULL
FROM recallwatch.alert WHERE run_id = :run ORDER BY id
"""


def test_whatever_is_done_in_whatever_order_an_alert_is_as_drawn(url: str, db: Database) -> None:
    import_set(db, questions(2))
    [before] = fetch(db, "SELECT last_value FROM recallwatch.run_id_seq")

    run_state_machine_as_test(partial(AlertMachine, url), settings=at_length)  # type: ignore[arg-type]  # "a class or a function", its docstring says

    [after] = fetch(db, "SELECT last_value FROM recallwatch.run_id_seq")
    assert after - before >= EXAMPLES - 1, (
        "each history has a run of its own, and was held against the model"
    )
