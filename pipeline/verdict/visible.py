"""How small a drop a golden set of some size can show, before anything was measured on it."""

from pipeline.verdict.estimate import NoiseEstimate, exact
from pipeline.verdict.noise_rule import answer

AT_95 = 0.05
"""The chance of a false alarm a run at which a set is said to show a drop at 95 %."""


def smallest_drop(
    questions: int, alpha: float, estimate: NoiseEstimate | None = None, metric: str = "hit@"
) -> float | None:
    """Return the smallest true drop (a share) of the metric that so many questions show.

    It is found with 80 % power while an unchanged system raises an alarm with the chance `alpha`,
    by the noise rule that judges runs (`pipeline.verdict.noise_rule`). `estimate` is what is known
    of the noise; None: a search that answers the same each time, which no index does better than.
    None: no drop whatever can be told from noise.
    """
    if not questions:
        return None
    return answer(questions, 0.0, estimate or exact(questions), alpha, metric).blind
