"""Results that must not be there: another tenant's chunks, and keys that the corpus does not know.

Looked up in the corpus, whoever gave them: a filter that is wrong in somebody's own search is the
one mistake that no ranking metric shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.corpus.liveness import live_keys
from pipeline.corpus.tenants import tenants_of
from pipeline.retrieval.tree import StrategyTree
from pipeline.corpus.settings import CorpusSettings
from pipeline.types import Failure, Level, Ranking
from workers.shard_questions import ShardQuestions


@dataclass(frozen=True, slots=True)
class Foreign:
    """What came back and is not the question's own.

    `leaked` maps the number of a question to its results that are another tenant's. `unknown`
    counts results that the corpus does not hold, over all questions.
    """

    leaked: Mapping[int, Sequence[str]] = field(default_factory=dict)
    unknown: int = 0


def look_for_foreign(shard: ShardQuestions, found: Sequence[Ranking | Failure]) -> Foreign:
    """Look up whose the results are, and whether they are the corpus's at all.

    A chunk that belongs to nobody is no leak, nor one whose key the question's own tenant has as
    well. Searches in our own words return nothing else than the corpus's keys: of these only
    questions with a tenant are looked up. None is where the strategy ignores tenants.
    """
    tree = StrategyTree.from_json(shard.run.settings["strategy"])
    leaked = {} if tree.ignores_tenants else _leaked(shard, found)
    return Foreign(leaked, _unknown(shard, found) if tree.has_own_words else 0)


def _leaked(shard: ShardQuestions, found: Sequence[Ranking | Failure]) -> dict[int, Sequence[str]]:
    table = shard.ctx.corpus_table(CorpusSettings.model_validate(shard.run.settings["corpus"]))
    asked = {
        number: each.keys
        for number, each in enumerate(found)
        if isinstance(each, Ranking) and shard.items[number].tenant is not None
    }
    if not asked or not table.has("tenant"):
        return {}
    owners = tenants_of(shard.ctx.corpus(), table, _all(asked.values()))
    leaked = {
        number: [key for key in keys if _is_foreign(owners.get(key), shard.items[number].tenant)]
        for number, keys in asked.items()
    }
    return {number: keys for number, keys in leaked.items() if keys}


def _is_foreign(owners: set[str | None] | None, tenant: str | None) -> bool:
    return bool(owners) and not {tenant, None} & (owners or set())


def _unknown(shard: ShardQuestions, found: Sequence[Ranking | Failure]) -> int:
    table = shard.ctx.corpus_table(CorpusSettings.model_validate(shard.run.settings["corpus"]))
    rankings = [each.keys for each in found if isinstance(each, Ranking)]
    known = live_keys(shard.ctx.corpus(), table, _all(rankings), Level.CHUNK)
    return sum(key not in known for keys in rankings for key in keys)


def _all(rankings: Iterable[Sequence[str]]) -> set[str]:
    return {key for keys in rankings for key in keys}
