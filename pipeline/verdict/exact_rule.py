"""What exact search says of two runs: did texts and vectors change, or only the index."""

from pipeline.types import Verdict
from pipeline.verdict.compare import ExactComparison
from pipeline.verdict.estimate import exact
from pipeline.verdict.gate import Finding, Gate, Rule
from pipeline.verdict.noise_rule import answer, p_text

POINT = 0.01
"""An index loss that moved by less is called unchanged."""


def exact_findings(
    gate: Gate, compared: ExactComparison, reference: int, *, counts: bool
) -> list[Finding]:
    """Return what became of exact search's hits, and of the index loss.

    Exact search has no noise of an index: it alone tells a change of texts, vectors or of the
    questions' embedding. Its answer counts when it is bad; a good one cannot outweigh the served.
    """
    if compared.shared == 0:
        return []
    net = compared.lost - compared.won
    found = answer(compared.shared, net, exact(compared.shared), gate.alpha)
    fell = found.needed is not None and net >= found.needed
    moved = f"{compared.lost} lost, {compared.won} won of {compared.shared}"
    if fell:
        text = f"exact search lost too ({moved}, {p_text(found.p)}): texts or vectors changed"
    elif compared.lost or compared.won:
        text = f"exact search holds ({moved}; {found.needed} net lost would be a change)"
    else:
        text = f"exact search finds what it found ({moved})"
    return [
        Finding(
            rule=Rule.EXACT,
            verdict=Verdict.REGRESSED if fell else Verdict.OK,
            text=text,
            counts=counts and fell,
            reference=reference,
            figures={"n": found.n, "lost": compared.lost, "won": compared.won, "p": found.p,
                     "needed": found.needed},
        ),
        _index_finding(compared, reference),
    ]  # fmt: skip


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
