"""Chunks other than a question's source that may answer it too.

A question is written from one chunk. Where the corpus says the same elsewhere, a search that finds
it there is right, and would count as a miss: such chunks are proposed to the reviewer as further
keys. And a question that the corpus is said not to answer is refused where a chunk does.

The limits were chosen on two public collections with several relevant chunks a question, one of
them taken as the source (`python -m bench.screening`): of the chunks that are proposed 56 % and
88 % are relevant by these collections' word, and more than half of those that could be are. Of 97
unanswerable questions of people 5 are refused, of answerable ones a third: what is refused is
rarely refused wrongly, and what is kept a person still has to look at.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.generation.filters import Finding, Rejection
from pipeline.types import Ranking

Terms = frozenset[str]

LOOKED_AT = 10
"""Best chunks of a ranking that are looked at."""

NEIGHBOURS = 3
"""A chunk that ranks above the source must be among so many nearest ones to it. No cosine would do:
what is near depends on the model."""

SHARED = 0.2
"""Share of the smaller chunk's content words that the other must hold beside."""

SHARED_ALONE = 0.3
"""The same where the corpus has no vectors to tell neighbours by."""

SAME_TERMS = 0.8
"""Jaccard index of content words from which two chunks say the same, whatever their vectors are."""

PROPOSED = 5
"""Further keys that a question gets at most: a person reads each."""

HELD = 0.75
"""Share of an unanswerable question's content words that a chunk must hold to be its answer."""

HELD_ALONE = 0.9
"""The same where it is not known how near answerable questions are to their chunks."""

LEAST_TERMS = 3
"""Content words of a question that can be held against a chunk."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A key that may be expected too. `similarity`: cosine to the source, or shared terms."""

    key: str
    reason: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Found:
    """What the corpus returns for a question, and around its sources.

    `rankings`: strategy -> keys, best first. `neighbours`: source -> the chunks nearest to it, by
    cosine, itself left out; empty without vectors. `terms`: the content words of all these chunks.
    """

    rankings: Mapping[str, Sequence[str]]
    neighbours: Mapping[str, Ranking] = field(default_factory=dict)
    terms: Mapping[str, Terms] = field(default_factory=dict)


def propose(expected: Iterable[str], found: Found, near_duplicate: float) -> list[Proposal]:
    """Return the keys, PROPOSED at most, that may be expected beside the `expected` ones.

    First near-duplicates of a source: a cosine of `near_duplicate` and more, or the same content
    words. Then chunks that a strategy ranks above a source and that say much of what it says.
    """
    sources = set(expected)
    proposed: dict[str, Proposal] = {}
    for source in sorted(sources):
        above = _above(source, found.rankings)
        near = _near_duplicates(source, [*_keys(found, source), *above], found, near_duplicate)
        for proposal in [*near, *_better(source, above, found)]:
            proposed.setdefault(proposal.key, proposal)
    return [each for each in proposed.values() if each.key not in sources][:PROPOSED]


def shared_terms(first: Terms, second: Terms) -> float:
    """Return the overlap coefficient (Szymkiewicz-Simpson): of the smaller set, the shared part."""
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def find_answer(
    terms: Terms,
    nearest: Ranking | None,
    keys: Iterable[str],
    chunk_terms: Mapping[str, Terms],
    usual: float | None,
) -> Finding | None:
    """Return why a question is not unanswerable: the chunk that answers it, by similarity.

    It holds HELD of the question's content words and is as near to the question as answerable ones
    usually are to their chunks: `usual`, a cosine. `nearest` are the chunks nearest to the
    question, `keys` those that a search returns. Without a cosine to compare by, HELD_ALONE.
    """
    if len(terms) < LEAST_TERMS:
        return None
    cosines = dict(zip(nearest.keys, nearest.scores, strict=True)) if nearest else {}
    for key in dict.fromkeys([*cosines, *keys]):
        held = len(terms & chunk_terms.get(key, frozenset())) / len(terms)
        near = key in cosines and usual is not None and cosines[key] >= usual
        if held >= (HELD if near else HELD_ALONE):
            detail = f"{key} holds {held:.0%} of its content words"
            return Finding(Rejection.ANSWERED, detail + (", and is near" if near else ""))
    return None


def _keys(found: Found, source: str) -> Sequence[str]:
    return found.neighbours[source].keys[:LOOKED_AT] if source in found.neighbours else ()


def _above(source: str, rankings: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the keys before the source in some ranking, or in all of it, with the strategies."""
    above: dict[str, list[str]] = {}
    for strategy, keys in rankings.items():
        best = list(keys[:LOOKED_AT])
        for key in best[: best.index(source)] if source in best else best:
            above.setdefault(key, []).append(strategy)
    return above


def _near_duplicates(
    source: str, keys: Sequence[str], found: Found, near_duplicate: float
) -> list[Proposal]:
    reason = f"near-duplicate of {source}"
    proposals = {}
    for key in keys:
        cosine, shared = _cosine(source, key, found), _jaccard(found, source, key)
        if cosine is not None and cosine >= near_duplicate:
            proposals[key] = Proposal(key, reason, cosine)
        elif shared >= SAME_TERMS:
            proposals[key] = Proposal(key, reason, shared)
    return sorted(proposals.values(), key=lambda each: (-each.similarity, each.key))


def _better(source: str, above: Mapping[str, Sequence[str]], found: Found) -> list[Proposal]:
    neighbours = found.neighbours.get(source)
    proposals = []
    for key, strategies in above.items():
        shared = shared_terms(_terms(found, source), _terms(found, key))
        if neighbours is None:
            says_the_same = shared >= SHARED_ALONE
        else:
            says_the_same = key in neighbours.keys[:NEIGHBOURS] and shared >= SHARED
        if says_the_same:
            reason = f"ranks above {source} ({', '.join(strategies)}) and says much the same"
            cosine = _cosine(source, key, found)
            proposals.append(Proposal(key, reason, shared if cosine is None else cosine))
    return sorted(proposals, key=lambda each: (-each.similarity, each.key))


def _cosine(source: str, key: str, found: Found) -> float | None:
    neighbours = found.neighbours.get(source)
    if neighbours is None or key not in neighbours.keys:
        return None
    return neighbours.scores[neighbours.keys.index(key)]


def _jaccard(found: Found, first: str, second: str) -> float:
    one, other = _terms(found, first), _terms(found, second)
    either = len(one | other)
    return len(one & other) / either if either else 0.0


def _terms(found: Found, key: str) -> Terms:
    return found.terms.get(key, frozenset())
