"""BM25 in plain Python: a search of one's own, for strategies of kind python, http and rerank.

Robertson & Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), with the
idf of Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
"""

import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

K1, B = 1.2, 0.75


def terms(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


class Bm25Search:
    """Searches the chunks of a chunks.jsonl, plain or gzipped."""

    def __init__(self, chunks: str) -> None:
        self._postings: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        self._lengths: dict[str, int] = {}
        for key, text in _read(Path(chunks)):
            counts = Counter(terms(text))
            self._lengths[key] = sum(counts.values())
            for term, count in counts.items():
                self._postings[term].append((key, count))
        self._mean = sum(self._lengths.values()) / len(self._lengths)

    def search(self, question: str, k: int) -> list[tuple[str, float]]:
        """Return the best k keys with their scores, ties by key."""
        scores: defaultdict[str, float] = defaultdict(float)
        for term in terms(question):
            for key, count in self._postings.get(term, ()):
                scores[key] += self._weight(term, count, self._lengths[key])
        return sorted(scores.items(), key=lambda found: (-found[1], found[0]))[:k]

    def rerank(self, question: str, documents: Sequence[str]) -> list[float]:
        """Return the score of each text, with the weights of the whole corpus."""
        return [self._score(set(terms(question)), terms(text)) for text in documents]

    def _score(self, asked: Iterable[str], text: Sequence[str]) -> float:
        counts = Counter(text)
        return sum(self._weight(term, counts[term], len(text)) for term in asked if counts[term])

    def _weight(self, term: str, count: int, length: int) -> float:
        holding = len(self._postings.get(term, ()))
        idf = math.log(1 + (len(self._lengths) - holding + 0.5) / (holding + 0.5))
        return idf * count * (K1 + 1) / (count + K1 * (1 - B + B * length / self._mean))


def _read(path: Path) -> Iterable[tuple[str, str]]:
    read = path.read_bytes()
    for line in (gzip.decompress(read) if path.suffix == ".gz" else read).splitlines():
        chunk = json.loads(line)
        yield f"{chunk['document_id']}:{chunk['chunk_index']}", chunk["content"]
