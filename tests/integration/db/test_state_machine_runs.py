"""Histories of a run and its shards in two sessions, drawn at random and held against a model."""

from collections.abc import Callable, Mapping
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

from db import exact, results, run_states, shards
from db.exact import ExactRow
from db.results import ResultRow
from db.session import Database, Session
from db.shards import Claim
from pipeline.types import Verdict
from pipeline.verdict.gate import Judgement
from tests.integration.db.building import (
    batch_of,
    execute,
    failed,
    fetch,
    import_set,
    ineligible,
    questions,
    scored,
    start_run,
)
from tests.integration.db.interleaving import EXAMPLES, Interleaving, at_length
from tests.integration.db.run_model import ATTEMPTS, RunModel, ShardModel, When
from tests.integration.db.run_tables import ALL_RESULTS_TWICE, ILLEGAL, everything, read

SIZE = 4
EXACT = 2
"""The number of the exact shard, behind two served ones."""

WHO = st.sampled_from([0, 1])
STAYS = st.sampled_from([False, False, True])
NUMBER = st.sampled_from([0, 0, 0, 1, EXACT])
SERVED = st.sampled_from([0, 0, 1])
WHEN = st.sampled_from(["ahead", "past"])
PICK = st.sampled_from([0, 0, 1, 1, 2, 3])
"""How many claims back: 0 is the newest."""

MAKE: Mapping[str, Callable[[int], ResultRow]] = {
    "scored": scored,
    "failed": failed,
    "ineligible": ineligible,
}
OUTCOMES = st.lists(st.sampled_from(sorted(MAKE)), min_size=2, max_size=2)
LATER = {"ahead": 3600.0, "past": 0.0}


class RunMachine(RuleBasedStateMachine):
    """Whatever two workers, two sweeps and two people do: the tables say what the model says."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.db = Database(url)
        self.run_id = start_run(self.db, shard_size=2)
        self.bystander = start_run(self.db, shard_size=2)
        with self.db.begin() as session:
            exact.plan(session, self.run_id, 2, 1)
        self.batch_id = batch_of(self.db, self.run_id)
        made = [ShardModel(0, "served", 0, 1), ShardModel(1, "served", 2, 3),
                ShardModel(EXACT, "exact", 0, 1)]  # fmt: skip
        self.two = Interleaving(url, RunModel(made))
        self.claims: list[Claim] = []
        self.tokens = [0, 0, 0]
        self.may_reopen = False
        with self.db.begin() as session:
            self.record = everything(session, self.run_id)
            self.bystanders = everything(session, self.bystander)

    def teardown(self) -> None:
        self.two.close()
        ids = {"ids": [self.run_id, self.bystander]}
        execute(self.db, "DELETE FROM recallwatch.run WHERE id = ANY(:ids)", ids)
        self.db.close()

    @initialize(
        far=st.sampled_from(["nothing", "a shard", "a take-over", "all shards", "the record"]),
        outcomes=OUTCOMES,
    )
    def begin(self, far: str, outcomes: list[str]) -> None:
        """Let so much be done before, that the end of a run is looked at as often as its start."""
        if far == "a shard":
            self.claim(who=0, stays=False, number=1)
            self.store(who=0, stays=False, back=0, outcomes=outcomes)
        elif far == "a take-over":
            self.take_over(who=0, number=0)
        elif far != "nothing":
            self.evaluate_all(who=0, outcomes=outcomes, reduce=far == "the record")

    # What workers do.

    @rule(who=WHO, stays=STAYS, number=NUMBER)
    def claim(self, who: int, stays: bool, number: int) -> None:
        claims: list[Claim] = []

        def act(session: Session) -> tuple[int, int] | None:
            found = shards.claim(
                session, self.run_id, number, worker="w", lease=3600, attempts=ATTEMPTS
            )
            if found is None:
                return None
            run_states.mark_running(session, self.run_id)
            claims.append(found)
            return found.token, found.attempt

        self.two.act(
            who, act, lambda model: model.claim(number), stay_open=stays, skips=True,
            then=lambda _: self.claims.extend(claims),
        )  # fmt: skip

    @precondition(lambda self: self.claims)
    @rule(who=WHO, stays=STAYS, back=PICK, outcomes=OUTCOMES)
    def store(self, who: int, stays: bool, back: int, outcomes: list[str]) -> None:
        claim = self._claimed(back)
        stored = self._store_exact if claim.number == EXACT else self._store_served
        found = ["exact", "exact"] if claim.number == EXACT else outcomes
        self.two.act(
            who,
            lambda session: stored(session, claim, outcomes),
            lambda model: model.store(claim, found),
            stay_open=stays,
        )

    @precondition(lambda self: self.claims)
    @rule(who=WHO, stays=STAYS, back=PICK, when=WHEN, counted=st.booleans())
    def release(self, who: int, stays: bool, back: int, when: When, counted: bool) -> None:
        claim, wait = self._claimed(back), LATER[str(when)]
        self.two.act(
            who,
            lambda session: shards.release(
                session, claim, error="handed back", wait=wait, counted=counted
            ),
            lambda model: model.release(claim, when, counted=counted),
            stay_open=stays,
        )

    @precondition(lambda self: self.claims)
    @rule(who=WHO, stays=STAYS, back=PICK)
    def fail_claimed(self, who: int, stays: bool, back: int) -> None:
        claim = self._claimed(back)
        self.two.act(
            who,
            lambda session: (
                shards.holds(session, claim)
                and run_states.fail(session, [self.run_id], "failed") == [self.run_id]
            ),
            lambda model: model.fail_claimed(claim),
            stay_open=stays,
        )

    @rule(who=WHO, stays=STAYS, number=SERVED)
    def hold_for_embedding(self, who: int, stays: bool, number: int) -> None:
        self.two.act(
            who,
            lambda session: shards.hold_for_embedding(session, self.batch_id, number, lease=3600),
            lambda model: model.hold_for_embedding(number),
            stay_open=stays,
        )

    @rule(who=WHO, stays=STAYS, number=SERVED, postponed=st.booleans())
    def end_hold(self, who: int, stays: bool, number: int, postponed: bool) -> None:
        how: dict[str, Any] = {"wait": 3600, "error": "postponed"} if postponed else {}
        self.two.act(
            who,
            lambda session: bool(shards.end_hold(session, self.batch_id, number, **how)),
            lambda model: model.end_hold(number, postponed=postponed),
            stay_open=stays,
        )

    @rule(who=WHO, outcomes=OUTCOMES, reduce=st.booleans())
    def evaluate_all(self, who: int, outcomes: list[str], reduce: bool) -> None:
        """Do what workers do undisturbed, so that histories get far."""
        for number in (0, 1, EXACT):
            self.claim(who=who, stays=False, number=number)
            if self.claims:
                self.store(who=who, stays=False, back=0, outcomes=outcomes)
        if reduce:
            self.complete(who=who, stays=False)

    @rule(who=WHO, number=NUMBER)
    def take_over(self, who: int, number: int) -> None:
        """Claim a shard whose worker is frozen for longer than its lease, and will come back."""
        self.claim(who=who, stays=False, number=number)
        self.let_lease_run_out(who=who, number=number)
        self.claim(who=who, stays=False, number=number)

    @precondition(lambda self: self._overtaken())
    @rule(
        who=WHO,
        stays=STAYS,
        does=st.sampled_from(["store", "store", "release", "fail_claimed"]),
        outcomes=OUTCOMES,
    )
    def come_back_late(self, who: int, stays: bool, does: str, outcomes: list[str]) -> None:
        """Have a worker go on whose shard another one has claimed by now."""
        back = self._overtaken()[0]
        if does == "store":
            self.store(who=who, stays=stays, back=back, outcomes=outcomes)
        elif does == "release":
            self.release(who=who, stays=stays, back=back, when="past", counted=True)
        else:
            self.fail_claimed(who=who, stays=stays, back=back)

    def _overtaken(self) -> list[int]:
        """Return which claims back are of a shard that somebody else holds."""
        rows = self.two.model.shards
        return [
            back
            for back, claim in enumerate(reversed(self.claims))
            if rows[claim.number].state == "leased" and rows[claim.number].token > claim.token
        ]

    # What the reducer does.

    @rule(who=WHO, stays=STAYS)
    def claim_reduction(self, who: int, stays: bool) -> None:
        self.two.act(
            who,
            lambda session: run_states.claim_reduction(
                session, self.run_id, lease=3600, attempts=ATTEMPTS
            ),
            RunModel.claim_reduction,
            stay_open=stays,
            skips=True,
        )

    @precondition(lambda self: self.two.model.run.reduce_attempts)
    @rule(who=WHO, stays=STAYS, when=WHEN, late=st.booleans())
    def release_reduction(self, who: int, stays: bool, when: When, late: bool) -> None:
        attempt, wait = self.two.model.run.reduce_attempts - late, LATER[str(when)]
        self.two.act(
            who,
            lambda session: run_states.release_reduction(
                session, self.run_id, attempt=attempt, error="raised", wait=wait
            ),
            lambda model: model.release_reduction(attempt, when),
            stay_open=stays,
            skips=True,
        )

    @rule(who=WHO, stays=STAYS)
    def complete(self, who: int, stays: bool) -> None:
        self.two.act(who, self._complete, RunModel.complete, stay_open=stays)

    @precondition(lambda self: self.two.model.is_reducible)
    @rule(who=WHO)
    def let_reducers_die(self, who: int) -> None:
        for _ in range(ATTEMPTS + 1):
            self.claim_reduction(who=who, stays=False)
            self.let_reducers_lease_run_out(who=who)

    # What sweeps and people do.

    @rule(who=WHO, stays=STAYS, status=st.sampled_from(["failed", "cancelled"]))
    def end(self, who: int, stays: bool, status: str) -> None:
        end = run_states.fail if status == "failed" else run_states.cancel
        self.two.act(
            who,
            lambda session: bool(end(session, [self.run_id], status)),
            lambda model: model.end(status),
            stay_open=stays,
        )

    @rule(who=WHO, stays=STAYS)
    def give_up(self, who: int, stays: bool) -> None:
        self.two.act(
            who,
            lambda session: exact.give_up(session, self.run_id, "given up"),
            RunModel.give_up,
            stay_open=stays,
        )

    @rule(who=WHO, stays=STAYS)
    def resume(self, who: int, stays: bool) -> None:
        self.two.act(
            who,
            lambda session: run_states.resume(session, self.run_id, deadline=3600),
            RunModel.resume,
            stay_open=stays,
            then=self._note_reopening,
        )

    @rule(who=WHO, stays=STAYS)
    def retry_failed(self, who: int, stays: bool) -> None:
        self.two.act(
            who,
            lambda session: run_states.retry_failed(session, self.run_id, deadline=3600),
            RunModel.retry_failed,
            stay_open=stays,
            then=self._note_reopening,
        )

    @rule(who=WHO)
    def look(self, who: int) -> None:
        """Ask all that a sweep asks; nothing of it waits for an open transaction."""
        queries: list[tuple[Callable[[Session], Any], Callable[[RunModel], bool]]] = [
            (lambda s: [run for run, _ in shards.exhausted(s, attempts=ATTEMPTS)],
             RunModel.exhausted),
            (lambda s: [run for run, _ in exact.hopeless(s, attempts=ATTEMPTS)],
             RunModel.hopeless),
            (lambda s: run_states.reducible(s, attempts=ATTEMPTS), RunModel.reducible),
            (lambda s: [run for run, _ in run_states.irreducible(s, attempts=ATTEMPTS)],
             RunModel.irreducible),
            (run_states.overdue, RunModel.overdue),
        ]  # fmt: skip
        seen = self.two.act(
            who,
            lambda session: [self.run_id in ask(session) for ask, _ in queries],
            lambda model: [expect(model) for _, expect in queries],
        )
        assert seen is not None
        if not self.two.is_open:
            self._ring(who, -1, RunModel.due)
            self._ring(who, 60, lambda _: [])

    def _ring(self, who: int, quiet: int, expect: Callable[[RunModel], list[int]]) -> None:
        """See which shards are rung: what was rung just now is left alone for a minute."""

        def act(session: Session) -> list[int]:
            due = shards.due(session, quiet=quiet, limit=1000)
            return [number for run_id, number in due if run_id == self.run_id]

        self.two.act(who, act, expect)

    # What time does.

    @rule(who=WHO, number=NUMBER)
    def let_lease_run_out(self, who: int, number: int) -> None:
        def expect(model: RunModel) -> None:
            shard = model.shards[number]
            if shard.is_open:
                shard.lease = shard.lease and "past"
                shard.next = shard.next and "past"

        self._pass_time(
            who,
            "UPDATE recallwatch.shard SET lease_until = lease_until - interval '2 hours',"
            " next_at = next_at - interval '2 hours' WHERE run_id = :run AND number = :number"
            " AND state IN ('pending', 'leased')",
            expect,
            number=number,
        )

    @precondition(lambda self: self.two.model.run.is_unfinished)
    @rule(who=WHO, late=st.sampled_from([1, 11]))
    def let_deadline_pass(self, who: int, late: int) -> None:
        def expect(model: RunModel) -> None:
            model.run.late = late

        self._pass_time(
            who,
            "UPDATE recallwatch.run SET deadline_at = now() - make_interval(mins => :late)"
            " WHERE id = :run",
            expect,
            late=late,
        )

    @rule(who=WHO)
    def let_reducers_lease_run_out(self, who: int) -> None:
        def expect(model: RunModel) -> None:
            if model.run.is_unfinished:
                model.run.reduce_next = model.run.reduce_next and "past"

        self._pass_time(
            who,
            "UPDATE recallwatch.run SET reduce_next_at = reduce_next_at - interval '2 hours'"
            " WHERE id = :run AND status IN ('queued', 'running')",
            expect,
        )

    @precondition(lambda self: self.two.is_open)
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        self.two.end(commit=commit)

    # What nobody may do.

    @precondition(lambda self: not self.two.is_open)
    @rule(table=st.sampled_from(sorted(ILLEGAL)), pick=st.integers(0, 8), number=NUMBER)
    def write_what_is_not_drawn(self, table: str, pick: int, number: int) -> None:
        change = ILLEGAL[table][pick % len(ILLEGAL[table])]
        where = "id = :run" if table == "run" else "run_id = :run AND number = :number"
        statements = [f"UPDATE recallwatch.{table} SET {change} WHERE {where}"]  # noqa: S608 - constants
        if self.two.model.outcomes:
            statements.append(ALL_RESULTS_TWICE)
        for statement in statements:
            with pytest.raises(IntegrityError):
                execute(self.db, statement, {"run": self.run_id, "number": number})

    # What is always so.

    @invariant()
    def all_is_as_drawn(self) -> None:
        with self.db.begin() as session:
            self._check(session)

    def _check(self, session: Session) -> None:
        model, found = self.two.model, read(session, self.run_id)
        assert found == model
        if not model.run.is_unfinished:
            assert not any(shard.is_open for shard in found.shards)
        if model.run.status == "completed":
            assert len(found.outcomes) == SIZE
        tokens = [shard.token for shard in found.shards]
        assert all(now >= before for now, before in zip(tokens, self.tokens, strict=True))
        self.tokens = tokens
        self._check_what_must_not_change(session)

    def _check_what_must_not_change(self, session: Session) -> None:
        """A finished run changes by being reopened only, another run not at all."""
        before, self.record = self.record, everything(session, self.run_id)
        reopened, self.may_reopen = self.may_reopen, False
        if before["run"]["finished_at"] is not None and not reopened:
            assert self.record == before
        assert everything(session, self.bystander) == self.bystanders

    def _note_reopening(self, reopened: bool) -> None:
        self.may_reopen = self.may_reopen or reopened

    def _claimed(self, back: int) -> Claim:
        return self.claims[-1 - back % len(self.claims)]

    def _store_served(self, session: Session, claim: Claim, outcomes: list[str]) -> bool | None:
        rows = [MAKE[name](claim.first + i) for i, name in enumerate(outcomes)]
        return results.store(session, claim, rows, stats={"questions": len(rows)})

    def _store_exact(self, session: Session, claim: Claim, outcomes: list[str]) -> bool | None:
        rows = [ExactRow(position, [], [1.0, 1.0, 1.0]) for position in range(len(outcomes))]
        return exact.store(session, claim, rows, stats={}, ef_search=None)

    def _complete(self, session: Session) -> bool:
        run = run_states.lock(session, self.run_id)
        if run is None or not shards.all_done(session, self.run_id):
            return False
        counts = results.aggregate(session, run).counts
        assert counts.total == run.size
        run.n_scored, run.n_failed, run.n_ineligible = (
            counts.scored, counts.failed, counts.ineligible
        )  # fmt: skip
        run_states.complete(run, Judgement(verdict=Verdict.OK, findings=[]))
        session.flush()
        return True

    def _pass_time(
        self, who: int, statement: str, expect: Callable[[RunModel], None], **values: int
    ) -> None:
        def act(session: Session) -> None:
            session.execute(text(statement), {"run": self.run_id, **values})

        self.two.act(who, act, expect)


def test_whatever_is_done_in_whatever_order_a_run_is_as_drawn(url: str, db: Database) -> None:
    import_set(db, questions(SIZE))
    [before] = fetch(db, "SELECT last_value FROM recallwatch.run_id_seq")

    run_state_machine_as_test(partial(RunMachine, url), settings=at_length)  # type: ignore[arg-type]  # "a class or a function", its docstring says

    [after] = fetch(db, "SELECT last_value FROM recallwatch.run_id_seq")
    assert after - before >= EXAMPLES - 1, (
        "each history has a run of its own, and was held against the model"
    )
