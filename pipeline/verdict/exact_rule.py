"""What exact search says of two runs: did texts and vectors change, or only the index."""

from pipeline.types import Verdict
from pipeline.verdict.compare import ExactComparison, p_text
from pipeline.verdict.estimate import exact
from pipeline.verdict.gate import Finding, Gate, Rule
from pipeline.verdict.loss import loss_of
from pipeline.verdict.noise import half_points
from pipeline.verdict.noise_rule import Answer, answer

POINT = 0.01
"""An index loss that moved by less is called unchanged."""

ROUNDING = 1e-9


def exact_findings(
    gate: Gate, compared: ExactComparison, reference: int, *, counts: bool
) -> list[Finding]:
    """Return what became of exact search's hits, and of the index loss.

    Exact search has no noise of an index: it alone tells a change of texts, vectors or of the
    questions' embedding. Its answer counts when it is bad; a good one cannot outweigh the served.
    """
    if compared.shared == 0:
        return []
    loss = loss_of(
        gate.outcome,
        compared.changes,
        shared=compared.shared,
        lost=compared.lost,
        won=compared.won,
    )
    found = answer(loss.n, loss.net, exact(loss.n), gate.alpha, loss.metric)
    fell = found.needed is not None and loss.net >= found.needed - ROUNDING
    if fell:
        text = f"exact search lost: {loss.words}, {p_text(found.p)}: texts or vectors changed"
    else:
        text = f"exact search holds: {loss.words} ({_sight(found)})"
    return [
        Finding(
            rule=Rule.EXACT,
            verdict=Verdict.REGRESSED if fell else Verdict.OK,
            text=text,
            counts=counts and fell,
            reference=reference,
            figures={
                "metric": loss.metric,
                "n": loss.n,
                "net_lost": loss.net,
                "lost": loss.lost,
                "won": loss.won,
                "p": found.p,
                "needed": found.needed,
            },
        ),
        _index_finding(compared, reference),
    ]


def _sight(found: Answer) -> str:
    """Say from which loss on exact search tells a change, and which drops that leaves unseen."""
    if found.blind is None or found.needed is None:
        return "so few questions show no drop"
    points = half_points(found.blind)
    return f"{found.needed:.0f} net lost would be a change; blind under {points:.1f} points"


def _index_finding(compared: ExactComparison, reference: int) -> Finding:
    now, before = compared.loss_now, compared.loss_before
    text = f"index loss {100 * before:.1f} -> {100 * now:.1f} points of recall"
    if now - before >= POINT:
        text += ": the index misses more than it did"
    return Finding(
        rule=Rule.INDEX,
        verdict=Verdict.OK,
        text=text,
        counts=False,
        reference=reference,
        figures={"loss": now, "loss_before": before},
    )
