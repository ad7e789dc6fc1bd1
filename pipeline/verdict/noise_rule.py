"""The noise rule: is the drop more than an unchanged system would show, and what could it miss."""

import math
from dataclasses import dataclass, replace

from pipeline.types import Verdict
from pipeline.verdict import noise
from pipeline.verdict.builds import Deviation
from pipeline.verdict.compare import Comparison, p_text
from pipeline.verdict.estimate import NoiseEstimate, Source
from pipeline.verdict.gate import Finding, Gate, Rule
from pipeline.verdict.graded import NoiseSum
from pipeline.verdict.loss import HIT, Loss, loss_of
from pipeline.verdict.resampling import Differences

ROUNDING = 1e-9
"""Sums of fractions may lie so far beside what they stand for."""

POWER = 0.8
"""The chance with which a drop of the size of the blind spot is found."""

_SOURCES = {
    Source.EXACT: "exact search",
    Source.UNTOUCHED: "the index is untouched",
    Source.CALIBRATED: "calibrated",
    Source.INDEX_LOSS: "at most the index loss",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a net loss stands against noise alone.

    `net`, `needed` and `back` are in questions, or in questions' worth of a graded metric. `back`
    is the net gain that counts as improved. `needed` None: noise alone may lose everything.
    `blind`: drops below this share are not found with 80 % power; None: none is.
    """

    n: int
    net: float
    p: float
    p_back: float
    needed: float | None
    blind: float | None


def answer(n: int, net: float, estimate: NoiseEstimate, alpha: float, metric: str = HIT) -> Answer:
    """Hold a net loss of a metric over n questions against the noise.

    More must be lost than questions that flip alone would lose, than whole measurements vary, and
    than was ever lost between two measurements of the same thing. Of a graded metric that was not
    calibrated a part of a question counts as noise counts whole ones, rounded towards none.
    """
    graded = None if _is_hit(metric) else estimate.differences.get(metric)
    alone = _alone(n, net, estimate, alpha) if graded is None else _graded(graded, n, net, alpha)
    if alone.needed is None:
        return alone
    return _together(alone, estimate, alpha, metric)


def _alone(n: int, net: float, estimate: NoiseEstimate, alpha: float) -> Answer:
    rate = estimate.flip_rate
    least = noise.net_lost_needed(n, rate, alpha)
    return Answer(
        n=n,
        net=net,
        p=noise.p_value(n, rate, _whole(net)),
        p_back=noise.p_value(n, rate, _whole(-net)),
        needed=least,
        blind=None if least is None else noise.visible_drop(n, rate, least, POWER),
    )


def _graded(differences: Differences, n: int, net: float, alpha: float) -> Answer:
    noise_sum = NoiseSum(differences, n)
    needed = noise_sum.needed(alpha)
    return Answer(
        n=n,
        net=net,
        p=noise_sum.p_value(net),
        p_back=noise_sum.p_value(-net),
        needed=needed,
        blind=noise_sum.visible_drop(needed, POWER),
    )


def _together(alone: Answer, estimate: NoiseEstimate, alpha: float, metric: str) -> Answer:
    """Ask for more where whole measurements vary more than questions that flip alone would."""
    n, least = alone.n, alone.needed or 0.0
    largest = estimate.largest_net(metric, n)
    if largest > ROUNDING:
        least = max(least, math.floor(largest) + 1 if _is_hit(metric) else largest)
    deviation = estimate.deviation(metric, n)
    if deviation is not None:
        least = max(least, deviation.needed(alpha))
    if least == alone.needed:
        return alone
    blind = (deviation or Deviation(0.0)).visible_drop(n, least, POWER)
    return replace(
        alone,
        p=max(alone.p, deviation.p_value(alone.net) if deviation else 0.0),
        p_back=max(alone.p_back, deviation.p_value(-alone.net) if deviation else 0.0),
        needed=least,
        blind=blind if blind <= 1 else None,
    )


def noise_findings(
    gate: Gate, comparison: Comparison, estimate: NoiseEstimate, *, counts: bool
) -> list[Finding]:
    """Return the noise rule's answer and its blind spot. `counts`: the verdict hangs on it."""
    loss = loss_of(
        gate.outcome,
        comparison.changes,
        shared=comparison.pairing.shared,
        lost=comparison.lost,
        won=comparison.won,
    )
    found = answer(loss.n, loss.net, estimate, gate.alpha, loss.metric)
    verdict = _verdict(gate, found)
    figures = {
        "metric": loss.metric,
        "n": found.n,
        "net_lost": found.net,
        "p": found.p,
        "needed": found.needed,
        "flip_rate": estimate.flip_rate,
        "source": estimate.source,
        "largest_net": estimate.largest_net(loss.metric, loss.n),
    }
    said = Finding(
        rule=Rule.NOISE,
        verdict=verdict,
        text=_text(loss, estimate, found, verdict),
        counts=counts,
        warning=bool(estimate.notes),
        reference=comparison.reference,
        figures=figures,
    )
    return [said, blind_spot(gate, found, comparison.reference)]


def blind_spot(gate: Gate, found: Answer, reference: int) -> Finding:
    """Return what the rule could not have seen; a warning where that is more than tolerated."""
    points = None if found.blind is None else noise.half_points(found.blind)
    tolerated = 100 * gate.tolerance
    warning = points is None or points > tolerated
    limit = "any drop" if points is None else f"drops under {points:.1f} points"
    text = f"cannot see {limit} with {found.n} questions and this noise (80 % power)"
    if warning:
        text += f"; tolerance is {tolerated:.1f} points: add questions or lower the noise"
    return Finding(
        rule=Rule.BLIND_SPOT,
        verdict=Verdict.OK,
        text=text,
        counts=False,
        warning=warning,
        reference=reference,
        figures={"n": found.n, "points": points, "power": POWER, "tolerance": tolerated},
    )


def _is_hit(metric: str) -> bool:
    return metric.startswith(HIT)


def _whole(net: float) -> int:
    """Round towards no loss; a sum of fractions may lie an ulp under a whole number."""
    return int(net + ROUNDING) if net > 0 else -int(-net + ROUNDING)


def _verdict(gate: Gate, found: Answer) -> Verdict:
    if found.needed is not None:
        if found.net >= found.needed - ROUNDING and found.p <= gate.alpha:
            return Verdict.REGRESSED
        if -found.net >= found.needed - ROUNDING and found.p_back <= gate.alpha:
            return Verdict.IMPROVED
    return Verdict.WATCH if found.net > 0 and found.p <= gate.watch_alpha else Verdict.OK


def _text(loss: Loss, estimate: NoiseEstimate, found: Answer, verdict: Verdict) -> str:
    how = {
        Verdict.REGRESSED: "more than noise",
        Verdict.IMPROVED: "more than noise",
        Verdict.WATCH: "unusual, but no alarm",
        Verdict.OK: "within noise",
    }[verdict]
    gained = found.net < 0
    needed = "nothing would be" if found.needed is None else f"{found.needed:.4g} would be"
    p = p_text(found.p_back if gained else found.p)
    rate = f"flip rate {100 * estimate.flip_rate:.2g} %, {_SOURCES[estimate.source]}"
    notes = f"; {', '.join(estimate.notes)}" if estimate.notes else ""
    return f"{loss.words}: {how}, {p} ({needed}; {rate}{notes})"
