"""What a golden set is made of, what it can show, and what to do about it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from db import calibrations, golden_stats
from db.golden_stats import SetStats
from db.session import Session
from pipeline.corpus.neighbours import by_tenant, near_duplicates
from pipeline.errors import RecallwatchError
from pipeline.types import Source
from pipeline.verdict.noise import half_points
from pipeline.verdict.visible import AT_95, smallest_drop
from workers.context import Context

FEW_QUESTIONS = 50
FEW_IN_CATEGORY = 5
"""Fewer than these are warned of."""

MOST_LOOKED_AT = 500
"""Questions of one key whose chunks are compared with the corpus, evenly spread over the set."""

_NAMED = 5


@dataclass(frozen=True, slots=True)
class Visible:
    """The smallest drop of hit@k that a set can show, in points; None: none at all.

    `alpha` is the chance of a false alarm a run. `strategy`: by the noise that was calibrated for
    it; None: of a search that answers the same each time.
    """

    alpha: float
    points: float | None
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """Questions of one key whose chunk has a near-duplicate that they do not expect.

    `looked_at` of them were compared; `examples` maps some of the questions to the near-duplicate.
    """

    found: int
    looked_at: int
    of: int
    examples: Mapping[int, str]


def visible(ctx: Context, session: Session, stats: SetStats) -> list[Visible]:
    """Return what the set can show at 95 %, by the gate, and by what was calibrated."""
    n, alpha = stats.answerable, ctx.settings.gate.alpha
    found = [Visible(each, _points(smallest_drop(n, each))) for each in (AT_95, alpha)]
    newest: set[str] = set()
    for known in calibrations.recent(session, set_name=stats.set_name):
        if known.strategy not in newest:
            newest.add(known.strategy)
            estimate = calibrations.figures(known).estimate()
            drop = smallest_drop(n, alpha, estimate, f"hit@{known.k}")
            found.append(Visible(alpha, _points(drop), known.strategy))
    return found


def _points(drop: float | None) -> float | None:
    return None if drop is None else half_points(drop)


def near_duplicates_of(ctx: Context, session: Session, stats: SetStats) -> NearDuplicates | str:
    """Look for chunks that a question of one key may have to expect too; or say why not."""
    only = golden_stats.only_keys(session, stats.set_name)
    step = max(1, -(-len(only) // MOST_LOOKED_AT))
    looked_at = only[::step]
    try:
        near = _near(ctx, by_tenant((tenant, [key]) for _, key, tenant in looked_at))
    except RecallwatchError as error:
        return str(error)
    expected = golden_stats.expected_of(session, [question_id for question_id, _, _ in looked_at])
    examples = {
        question_id: unexpected
        for question_id, key, tenant in looked_at
        if (unexpected := _first_not_in(near.get((tenant, key), []), expected[question_id]))
    }
    shown = dict(list(examples.items())[:_NAMED])
    return NearDuplicates(len(examples), len(looked_at), len(only), shown)


def _near(
    ctx: Context, keys: Mapping[str | None, set[str]]
) -> dict[tuple[str | None, str], list[str]]:
    """Return the near-duplicates of each tenant's keys, the nearest first."""
    least = ctx.settings.generation.near_duplicate
    found = defaultdict[tuple[str | None, str], list[str]](list)
    for tenant, wanted in keys.items():
        for each in near_duplicates(
            ctx.corpus(), ctx.corpus_table(), wanted, least=least, tenant=tenant
        ):
            found[tenant, each.of].append(each.key)
    return found


def _first_not_in(keys: Sequence[str], expected: set[str]) -> str | None:
    return next((key for key in keys if key not in expected), None)


def warnings(stats: SetStats, near: NearDuplicates | str | None) -> list[str]:
    """Return what a person should do about the set, a line each."""
    said = []
    if stats.answerable < FEW_QUESTIONS:
        said.append(
            f"{stats.answerable} answerable questions are active: under {FEW_QUESTIONS}, chance"
            " decides more than retrieval does; add questions"
        )
    said += _few_in_categories(stats)
    if isinstance(near, NearDuplicates) and near.found:
        question_id, key = next(iter(near.examples.items()))
        said.append(
            f"{_of_questions(near)} have a near-duplicate of their chunk in the corpus (question"
            f" {question_id}: {key}): serving that one counts as a miss; see: recallwatch golden"
            f" review {question_id}"
        )
    if isinstance(near, str):
        said.append(f"near-duplicates were not looked for: {near}")
    if stats.active and list(stats.groups["source"]) == [Source.SYNTHETIC]:
        said.append("all active questions are synthetic: add some that people asked")
    if stats.unreviewed_synthetic:
        said.append(
            f"{stats.unreviewed_synthetic} active synthetic questions were reviewed by nobody; see:"
            " recallwatch golden review --status active --source synthetic"
        )
    return said


def _of_questions(near: NearDuplicates) -> str:
    if near.looked_at == near.of:
        return f"{near.found} questions of one key"
    return f"{near.found} of {near.looked_at} questions of one key that were looked at"


def _few_in_categories(stats: SetStats) -> list[str]:
    few = {name: n for name, n in stats.groups["category"].items() if name and n < FEW_IN_CATEGORY}
    if not few:
        return []
    named = ", ".join(f"{name} ({n})" for name, n in list(few.items())[:_NAMED])
    more = f" and {len(few) - _NAMED} more" if len(few) > _NAMED else ""
    few_in = f"under {FEW_IN_CATEGORY} questions in categories {named}{more}"
    return [f"{few_in}: their figures say little"]
