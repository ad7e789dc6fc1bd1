"""Results that must not be there: another tenant's chunks, and keys that the corpus does not know.

Looked up in the corpus, whoever gave them: a filter that is wrong in somebody's own search is the
one mistake that no ranking metric shows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.corpus.liveness import live_keys
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable
from pipeline.corpus.tenants import as_stored, tenants_of
from pipeline.retrieval.tree import StrategyTree
from pipeline.types import Failure, Level, Ranking, document_of
from workers.shard_questions import ShardQuestions

Answers = Sequence[Ranking | Failure]


@dataclass(frozen=True, slots=True)
class Foreign:
    """What came back and is not the question's own.

    `leaked` maps the number of a question to the keys that are another tenant's. `unknown` counts
    results that the corpus does not hold, over all questions.
    """

    leaked: Mapping[int, Sequence[str]] = field(default_factory=dict)
    unknown: int = 0


def look_for_foreign(shard: ShardQuestions, found: Answers) -> Foreign:
    """Look up whose the results are, and whether they are the corpus's at all.

    Every search of the strategy is looked at by itself, as an arm's foreign chunk may be outvoted
    and a reranker's candidate left out; not those that are told to ignore tenants. A chunk that
    belongs to nobody is no leak, nor one whose key the question's own tenant has as well. Whether
    keys are known is asked of searches in the owner's own words only.
    """
    tree = StrategyTree.from_json(shard.run.settings["strategy"])
    table = shard.ctx.corpus_table(CorpusSettings.model_validate(shard.run.settings["corpus"]))
    return Foreign(
        _leaked(shard, table, tree, found),
        _unknown(shard, table, found) if tree.has_own_words else 0,
    )


def _leaked(
    shard: ShardQuestions, table: CorpusTable, tree: StrategyTree, found: Answers
) -> dict[int, Sequence[str]]:
    returned = dict(_of_tenants(shard, tree, found)) if table.has("tenant") else {}
    if not any(returned.values()):
        return {}
    conn = shard.ctx.corpus()
    owners = tenants_of(conn, table, _all(returned.values()))
    whose = {number: shard.items[number].tenant or "" for number in returned}
    stored = as_stored(conn, table, whose.values())
    leaked = {
        number: [key for key in keys if _is_foreign(owners.get(key), stored[whose[number]])]
        for number, keys in returned.items()
    }
    return {number: keys for number, keys in leaked.items() if keys}


def _of_tenants(
    shard: ShardQuestions, tree: StrategyTree, found: Answers
) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the number of each question of a tenant, and what its searches returned, each once."""
    stages = [
        stage.name
        for stage in tree.stages(shard.run.k)
        if getattr(stage.tree.strategy, "tenant", "question") != "ignore"
    ]
    for number, answer in enumerate(found):
        if isinstance(answer, Ranking) and shard.items[number].tenant is not None:
            keys = [(answer.stages[name] if name else answer).keys for name in stages]
            yield number, list(dict.fromkeys(key for some in keys for key in some))


def _is_foreign(owners: set[str | None] | None, tenant: str) -> bool:
    return bool(owners) and not {tenant, None} & (owners or set())


def _unknown(shard: ShardQuestions, table: CorpusTable, found: Answers) -> int:
    """Count results that the corpus lacks; at document level those of documents that it lacks."""
    rankings = [each.keys for each in found if isinstance(each, Ranking)]
    level = Level(shard.run.level)
    names = {key: document_of(key) if level is Level.DOCUMENT else key for key in _all(rankings)}
    known = live_keys(shard.ctx.corpus(), table, names.values(), level)
    return sum(names[key] not in known for keys in rankings for key in keys)


def _all(rankings: Iterable[Sequence[str]]) -> set[str]:
    return {key for keys in rankings for key in keys}
