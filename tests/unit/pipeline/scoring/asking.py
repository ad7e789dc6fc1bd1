"""How the tests here ask `score` about one question, with little ceremony."""

from collections.abc import Container, Mapping, Sequence

from pipeline.scoring import Judged, Measure, Scores, score
from pipeline.types import Failure, Level, Ranking


class Everything:
    """A corpus that holds every key."""

    def __contains__(self, _key: object) -> bool:
        return True


def ranked(keys: Sequence[str]) -> Ranking:
    """Return the keys as a ranking, with scores n, n - 1, ... 1."""
    return Ranking(keys=keys, scores=[float(score) for score in range(len(keys), 0, -1)])


def ask(
    question: Judged,
    result: Sequence[str] | Failure,
    *measures: str,
    k: int = 5,
    level: Level = Level.CHUNK,
    threshold: int = 1,
    live: Container[str] | None = None,
) -> Scores:
    """Score one question."""
    return score(
        [question],
        [result if isinstance(result, Failure) else ranked(result)],
        k=k,
        level=level,
        measures=[Measure.parse(text) for text in measures],
        relevance_threshold=threshold,
        live=Everything() if live is None else live,
    )


def value(
    expected: Mapping[str, int],
    keys: Sequence[str],
    measure: str,
    *,
    threshold: int = 1,
    level: Level = Level.CHUNK,
) -> float:
    """Return one measure of one question, its ranking cut at the measure's own cutoff."""
    k = Measure.parse(measure).k
    scores = ask(Judged(expected), keys, measure, k=k, threshold=threshold, level=level)
    return float(scores.values[0, 0])
