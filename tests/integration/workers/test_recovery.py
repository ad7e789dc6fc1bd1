"""What is told of a set's runs one after the other: falls, and when they are over."""

from collections.abc import Sequence

import pytest

from db import baselines, runs
from pipeline.alerts.settings import SlackSettings
from pipeline.types import Question
from tests.integration.db.building import import_set, questions
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import BROKEN, finished_as, telling, told
from workers.context import Context

NAME = "four"
GOOD, FALLEN, WORSE = (1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 0.0, 0.0)

pytestmark = pytest.mark.usefixtures("bell")


@pytest.fixture
def ctx(open_context: Opener) -> Context:
    """Give a context that tells a team, and a set of four questions."""
    context = open_context(alerts=telling(team=SlackSettings()))
    import_set(context.database, questions(4), NAME)
    return context


HISTORIES: list[tuple[list[Sequence[float] | str], dict[int, str]]] = [
    ([GOOD, GOOD, GOOD], {}),
    ([FALLEN, GOOD], {}),
    ([GOOD, FALLEN, GOOD, GOOD], {1: "regressed", 2: "recovered"}),
    # Being no worse than a fallen run is no recovery, and the way back may take several runs.
    ([GOOD, FALLEN, FALLEN], {1: "regressed"}),
    ([GOOD, WORSE, FALLEN, FALLEN], {1: "regressed"}),
    ([GOOD, FALLEN, FALLEN, GOOD], {1: "regressed", 3: "recovered"}),
    ([GOOD, FALLEN, WORSE, FALLEN, GOOD], {1: "regressed", 2: "regressed", 4: "recovered"}),
    ([GOOD, BROKEN, GOOD, GOOD], {1: "unmeasured", 2: "recovered"}),
    ([BROKEN, GOOD, GOOD], {0: "unmeasured", 2: "recovered"}),
    ([GOOD, FALLEN, BROKEN, FALLEN], {1: "regressed", 2: "unmeasured"}),
    ([GOOD, FALLEN, BROKEN, GOOD], {1: "regressed", 2: "unmeasured", 3: "recovered"}),
]
"""The results of a set's runs one after the other, and the kinds of alerts by the run's number."""


def test_what_is_told_of_a_history(ctx: Context) -> None:
    for history, expected in HISTORIES:
        name = str((history, expected))[:100]
        import_set(ctx.database, questions(4), name)
        before = len(told(ctx))

        ids = [finished_as(ctx, name, result).id for result in history]

        kinds = {ids.index(run_id): kind for run_id, kind in told(ctx)[before:]}
        assert kinds == expected, history


def test_a_run_is_back_when_it_holds_against_what_was_fallen_from(ctx: Context) -> None:
    first = finished_as(ctx, NAME, (0.9,) * 4)
    with ctx.database.begin() as session:
        baselines.pin(session, runs.get(session, first.id), by=None)
    verdicts = [finished_as(ctx, NAME, [mean] * 4).verdict for mean in (0.885, 0.87, 0.885)]

    assert verdicts == ["ok", "regressed", "ok"]
    assert [kind for _, kind in told(ctx)] == ["regressed", "recovered"]


def test_what_was_bad_by_itself_is_over_when_the_run_is_well(ctx: Context) -> None:
    for name, rule in (("floor", {"floor": {"recall@5": 0.8}}), ("must", {"must_pass": True})):
        asked = [Question(f"{n}?", {f"d{n}:0": 1}, must_pass=True) for n in range(4)]
        import_set(ctx.database, asked, name)
        lenient = {"max_drop": 1.0, **rule}
        before = len(told(ctx))

        for result in (GOOD, FALLEN, FALLEN, GOOD, GOOD):
            finished_as(ctx, name, result, **lenient)

        kinds = [kind for _, kind in told(ctx)[before:]]
        assert kinds == ["regressed", "regressed", "recovered"], rule


def test_by_the_noise_rule_a_fall_is_over_when_it_says_regressed_no_more(ctx: Context) -> None:
    import_set(ctx.database, questions(100), "hundred")

    def lose(n: int) -> str | None:
        return finished_as(ctx, "hundred", [0.0] * n + [1.0] * (100 - n), rule="noise").verdict

    # Four net lost are needed where search is exact; three are unusual, but no alarm.
    verdicts = [lose(n) for n in (0, 20, 10, 3)]

    assert verdicts == ["baseline", "regressed", "improved", "improved"]
    assert [kind for _, kind in told(ctx)] == ["regressed", "recovered"]
    assert told(ctx)[-1][0] == told(ctx)[0][0] + 2


def test_a_run_to_watch_is_no_recovery(ctx: Context) -> None:
    import_set(ctx.database, questions(100), "hundred")

    def lose(n: int) -> str | None:
        return finished_as(ctx, "hundred", [0.0] * n + [1.0] * (100 - n), rule="noise").verdict

    assert [lose(n) for n in (0, 20, 23)] == ["baseline", "regressed", "watch"]
    assert [kind for _, kind in told(ctx)] == ["regressed"]


def test_a_set_that_was_replaced_can_recover_from_its_own_fall(ctx: Context) -> None:
    finished_as(ctx, NAME, GOOD)
    finished_as(ctx, NAME, FALLEN)
    others = [Question(f"another {n}", {f"d{n}:0": 1}) for n in range(4)]
    import_set(ctx.database, others, NAME, replace=True)

    verdicts = [finished_as(ctx, NAME, result).verdict for result in (GOOD, FALLEN, GOOD)]

    assert verdicts == ["incomparable", "regressed", "improved"]
    assert [kind for _, kind in told(ctx)] == ["regressed", "regressed", "recovered"]
