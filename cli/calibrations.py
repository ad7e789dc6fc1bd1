"""Calibrations as records, as a table, and in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Group
from rich.table import Table

from cli.output import Column, table
from db import calibrations
from db.models import Calibration
from pipeline.types import Level
from pipeline.verdict import noise, noise_rule
from pipeline.verdict.calibration import Figures
from pipeline.verdict.loss import HIT
from pipeline.verdict.settings import GateSettings


@dataclass(frozen=True, slots=True)
class Sight:
    """What a gate sees with a calibration's noise, over as many questions as it had.

    `needed`: net lost questions from which on a drop is told; None: noise alone may lose all.
    `by_largest`: this is one more than the largest net loss seen.
    `points`: smallest drop found with 80 % power, in points; None: none is.
    """

    alpha: float
    needed: int | None
    by_largest: bool
    points: float | None

    @classmethod
    def of(cls, figures: Figures, alpha: float) -> "Sight":
        """Return what the noise rule would see."""
        hit = next(metric for metric in figures.totals if metric.startswith(HIT))
        found = noise_rule.answer(figures.n, 0, figures.estimate(), alpha, hit)
        return cls(
            alpha=alpha,
            needed=None if found.needed is None else round(found.needed),
            by_largest=found.needed == figures.largest_net + 1,
            points=None if found.blind is None else noise.half_points(found.blind),
        )


def calibration_record(calibration: Calibration, gate: GateSettings) -> dict[str, Any]:
    """Return everything that is stored of a calibration, and what a gate sees with it."""
    figures = calibrations.figures(calibration)
    sight = Sight.of(figures, gate.of(calibration.strategy).alpha)
    return {
        "id": calibration.id,
        "set": calibration.set_name,
        "version": calibration.version_id,
        "strategy": calibration.strategy,
        "k": calibration.k,
        "level": calibration.level,
        "n": figures.n,
        "pairs": figures.pairs,
        "flips": figures.flips,
        "flip_rate": figures.flip_rate,
        "largest_net": figures.largest_net,
        "alpha": sight.alpha,
        "net_lost_needed": sight.needed,
        "blind_spot_points": sight.points,
        "reindexed": calibration.reindexed,
        "differences": figures.differences,
        "settings": calibration.settings,
        "corpus": calibration.corpus_fingerprint,
        "created_at": calibration.created_at,
    }


def calibrations_table(found: Sequence[Calibration], gate: GateSettings) -> Group:
    """Return a table for each golden set.

    Its columns: A/A pairs and questions in each, flips, flip rate, largest net loss between any
    two rounds, net lost questions needed for an alarm, drop below which it is blind.
    """
    names = dict.fromkeys(each.set_name for each in found)
    return Group(
        *(_table(name, [each for each in found if each.set_name == name], gate) for name in names)
    )


def _table(name: str, found: Sequence[Calibration], gate: GateSettings) -> Table:
    figures = ("k", "pairs", "flips", "f", "net", "need", "blind", "rebuilt", "age")
    columns: list[str | Column] = [
        Column("id", right=True), Column("strategy", wrap=True),
        *(Column(column, right=True) for column in figures),
    ]  # fmt: skip
    now = datetime.now(UTC)
    return table(f"golden set {name}", columns, [_row(each, gate, now) for each in found])


def _row(calibration: Calibration, gate: GateSettings, now: datetime) -> list[object]:
    figures = calibrations.figures(calibration)
    sight = Sight.of(figures, gate.of(calibration.strategy).alpha)
    document = calibration.level == Level.DOCUMENT
    return [
        calibration.id, calibration.strategy, f"{calibration.k}{'d' if document else ''}",
        f"{figures.pairs} x {figures.n}", figures.flips, _percent(figures.flip_rate),
        figures.largest_net, sight.needed,
        None if sight.points is None else f"{sight.points:.1f} pt",
        "yes" if calibration.reindexed else "no", age(now - calibration.created_at),
    ]  # fmt: skip


def meaning(calibration: Calibration, gate: GateSettings) -> str:
    """Say in one line what was seen, and what a gate can see and cannot."""
    figures = calibrations.figures(calibration)
    sight = Sight.of(figures, gate.of(calibration.strategy).alpha)
    flips = f"{figures.flips} flip{'' if figures.flips == 1 else 's'}"
    return (
        f"{calibration.strategy}: f = {_percent(figures.flip_rate)} ({flips} in {figures.pairs}"
        f" pairs of {figures.n}): {_told(figures, sight)}; {_blind(sight)}"
    )


def _told(figures: Figures, sight: Sight) -> str:
    if sight.needed is None:
        return "no drop is told from noise"
    told = f"a drop is told from {sight.needed} net lost questions on"
    largest = f", one more than the largest net between two rounds ({figures.largest_net})"
    return told + (largest if sight.by_largest else "")


def _blind(sight: Sight) -> str:
    drops = "any drop" if sight.points is None else f"drops under {sight.points:.1f} points"
    return f"cannot see {drops} ({100 * noise_rule.POWER:.0f} % power)"


def _percent(rate: float) -> str:
    """Return a share as percent with two significant digits: 0.31 %, 12 %."""
    return f"{100 * rate:.2g} %"


def age(passed: timedelta) -> str:
    """Return a duration by its largest unit: 3 d, 5 h, 12 min."""
    if passed >= timedelta(days=1):
        return f"{passed.days} d"
    minutes = max(0, passed // timedelta(minutes=1))
    return f"{minutes // 60} h" if minutes >= 60 else f"{minutes} min"  # noqa: PLR2004 - an hour
