"""TREC run files, and the qrels to go with them, so that trec_eval finds the figures of a run.

    301 Q0 guide.html:3 1 0.7312346 recallwatch-vector

trec_eval does not read ranks: it sorts by score, as a 4-byte float, and equal scores by document
id (http://trec.nist.gov/trec_eval/). A ranking is the retriever's order, though, ties included; so
each score is written strictly below the one before it. It splits lines at blanks and refuses a
document that comes twice; so blanks within ids are escaped, and a repeat, which is a miss to us,
gets an id of its own. Two ids never become one: what an id holds that looks like either is escaped
as well, and nothing else is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

import numpy as np

_REPEATED = "#repeated-at-"
_BLANKS = [chr(code) for code in range(0x3001) if chr(code).isspace()]
_ESCAPES = [quote(each, safe="") for each in (*_BLANKS, "%", "#")]
_ESCAPED = re.compile(rf"\s|%(?={'|'.join(each[1:] for each in _ESCAPES)})|#(?={_REPEATED[1:]})")
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
    """Return an id without blanks: each as %XX of its UTF-8, as in a URL.

    A % that begins such an escape already is written %25, and the # of what looks like the mark of
    a repeat %23: different ids stay different. Other ids stay as they are, other escapes of a URL
    among them.
    """
    return _ESCAPED.sub(lambda found: quote(found[0], safe=""), name)


def _each_once(documents: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    for rank, document in enumerate(documents, start=1):
        yield f"{document}{_REPEATED}{rank}" if document in seen else document
        seen.add(document)
