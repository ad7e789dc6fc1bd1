"""TREC run files, and the qrels to go with them, so that trec_eval finds the figures of a run.

    301 Q0 guide.html:3 1 0.7312346 recallwatch-vector

trec_eval does not read ranks: it sorts by score, as a 4-byte float, and equal scores by document
id (http://trec.nist.gov/trec_eval/). A ranking is the retriever's order, though, ties included; so
each score is written strictly below the one before it. It splits lines at blanks and refuses a
document that comes twice; so blanks within ids are escaped, and a repeat, which is a miss to us,
gets an id of its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

_BLANK = re.compile(r"\s")
_LARGEST = float(np.finfo(np.float32).max) / 2


def run_lines(
    query: str, retrieved: Sequence[str], scores: Sequence[float], tag: str
) -> Iterator[str]:
    """Yield the lines of one question: topic, Q0, document, rank from 1, score, tag."""
    documents = _each_once(list(map(escaped, retrieved)))
    rows = zip(documents, strictly_decreasing(scores), strict=True)
    for rank, (document, score) in enumerate(rows, start=1):
        yield f"{escaped(query)} Q0 {document} {rank} {score:.9g} {escaped(tag)}\n"


def qrels_lines(query: str, expected: Mapping[str, int]) -> Iterator[str]:
    """Yield the judgments of one question: topic, 0, document, grade."""
    for key, grade in expected.items():
        yield f"{escaped(query)} 0 {escaped(key)} {grade}\n"


def strictly_decreasing(scores: Sequence[float]) -> list[float]:
    """Return the scores as 4-byte floats, each below the one before: lowered where it is not.

    What is no number, or too large for such a float, is brought within its range first.
    """
    bounded = np.nan_to_num(np.asarray(scores, dtype=np.float64), nan=-_LARGEST)
    found: list[float] = []
    for score in np.clip(bounded, -_LARGEST, _LARGEST).astype(np.float32):
        if found and score >= found[-1]:
            lower = np.nextafter(np.float32(found[-1]), np.float32(-np.inf))
            found.append(float(lower))
        else:
            found.append(float(score))
    return found


def escaped(name: str) -> str:
    """Return an id without blanks: each as %XX of its UTF-8, as in a URL."""
    return _BLANK.sub(lambda blank: "".join(f"%{byte:02X}" for byte in blank[0].encode()), name)


def _each_once(documents: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    for rank, document in enumerate(documents, start=1):
        yield f"{document}#repeated-at-{rank}" if document in seen else document
        seen.add(document)
