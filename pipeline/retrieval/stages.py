"""Rankings of the stages that a ranking was made of, by name."""

from pipeline.types import Ranking


def stages_of(name: str, ranking: Ranking) -> dict[str, Ranking]:
    """Return a stage's ranking under its name, and those of its own stages under `name/theirs`."""
    own = {name: Ranking(ranking.keys, ranking.scores)}
    return own | {f"{name}/{stage}": each for stage, each in ranking.stages.items()}
