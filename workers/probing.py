"""Try a strategy before it is measured: one that cannot answer must not be scored as a bad one.

The worker that has a run's first questions does it, for there is what the run needs: the servers,
the secrets, the owner's code, the questions' vectors.
"""

from collections.abc import Iterator, Mapping, Sequence

from pipeline.errors import PermanentError
from pipeline.retrieval.tree import StrategyTree
from pipeline.types import Failure, Kind, Ranking
from workers.shard_questions import ShardQuestions

TRIED = 3
"""Questions that a strategy is tried with: the first, the middle and the last of a shard."""

SEE = "see: recallwatch strategies probe"


def try_out(shard: ShardQuestions) -> None:
    """Ask a few questions; raises PermanentError, with the cause, where each of them fails."""
    tried = _spread([i for i in range(len(shard.items)) if i not in shard.failures])
    reasons = [each.reason for each in shard.ask(tried, shard.run.k) if isinstance(each, Failure)]
    # Fewer prove something only where there are no more.
    enough = len(tried) >= min(TRIED, shard.run.size)
    if tried and enough and len(reasons) == len(tried):
        raise PermanentError(
            f"strategy {shard.run.strategy} failed for all {len(tried)} questions that it was tried"
            f" with; the first: {reasons[0]}"
        )


def refuse_silence(shard: ShardQuestions, found: Sequence[Ranking | Failure]) -> None:
    """Raise PermanentError where a strategy, or a stage of it, found nothing for any question.

    An empty ranking scores 0; but one that is always empty is no bad search, it is none. A shard of
    fewer than `TRIED` answerable questions proves nothing.
    """
    answered = [
        each
        for item, each in zip(shard.items, found, strict=True)
        if isinstance(each, Ranking) and item.kind == Kind.ANSWERABLE
    ]
    if len(answered) < TRIED:
        return
    strategy = shard.run.strategy
    for stage, rankings in _by_stage(strategy, answered).items():
        if not any(ranking.keys for ranking in rankings):
            raise PermanentError(
                f"{stage} found nothing for any of the first {len(rankings)} questions"
                f"{_hint(shard)}; {SEE} {strategy} QUESTION"
            )


def _by_stage(strategy: str, answered: Sequence[Ranking]) -> Mapping[str, Sequence[Ranking]]:
    stages: dict[str, list[Ranking]] = {f"strategy {strategy}": list(answered)}
    for ranking in answered:
        for name, stage in ranking.stages.items():
            stages.setdefault(f"stage {name} of strategy {strategy}", []).append(stage)
    return stages


def _hint(shard: ShardQuestions) -> str:
    """Say in brackets what it may be, where something is known of it."""
    return "".join(_hints(StrategyTree.from_json(shard.run.settings["strategy"]), shard))


def _hints(tree: StrategyTree, shard: ShardQuestions) -> Iterator[str]:
    if all(item.tenant is not None for item in shard.items):
        yield " (each has a tenant: are these the corpus's own?)"
    elif {each.strategy.kind for each in tree.searches()} == {"fulltext"}:
        yield " (are their words those of the chunks' language, [corpus] text_config?)"


def _spread(positions: Sequence[int]) -> list[int]:
    """Return the first, the middle and the last of the positions."""
    if len(positions) <= TRIED:
        return list(positions)
    return [positions[0], positions[len(positions) // 2], positions[-1]]
