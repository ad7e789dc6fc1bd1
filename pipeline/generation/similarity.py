"""Questions that ask what another one asks already: the same words, or nearly the same meaning."""

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.generation.filters import Finding, Rejection
from pipeline.text import normalised, quoted
from pipeline.types import FloatMatrix

_AROUND_WORDS = "?!.,;:…¿¡\"'()[]“”‘’«»、。؟"  # noqa: RUF001 - quotation marks are meant


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's text and tenant: two tenants may ask the same."""

    text: str
    tenant: str | None = None


def same_words(text: str) -> str:
    """Return what questions of the same words share: no case, no punctuation around a word.

    Punctuation within a word stays: C, C# and C++ are three languages.
    """
    plain = unicodedata.normalize("NFKC", normalised(text)).casefold()
    words = (word.strip(_AROUND_WORDS) for word in plain.split())
    return " ".join(word for word in words if word) or plain


class Twins:
    """Knows, for each of n questions, those of the ones it was compared with that ask the same.

    `vectors`: shape (n, d), a row of NaN or zeros for a question without one; None compares words
    alone. `near_duplicate`: the cosine from which two questions of one tenant ask the same.
    """

    def __init__(
        self, questions: Sequence[Asked], vectors: FloatMatrix | None, near_duplicate: float
    ) -> None:
        self._directions = None if vectors is None else _directions(vectors)
        self._near = near_duplicate
        self._of_tenant: defaultdict[str | None, list[int]] = defaultdict(list)
        self._of_words: defaultdict[tuple[str, str | None], list[int]] = defaultdict(list)
        for row, question in enumerate(questions):
            self._of_tenant[question.tenant].append(row)
            self._of_words[same_words(question.text), question.tenant].append(row)
        self._same: dict[int, str] = {}
        self._nearest: dict[int, tuple[float, str]] = {}

    def compare(self, others: Sequence[Asked], vectors: FloatMatrix | None = None) -> None:
        """Compare all n questions with m others; `vectors` of these, shape (m, d)."""
        for other in others:
            for row in self._of_words.get((same_words(other.text), other.tenant), ()):
                self._same.setdefault(row, other.text)
        if self._directions is not None and vectors is not None:
            self._compare_meaning(others, self._directions, _directions(vectors))

    def finding(self, row: int) -> Finding | None:
        """Return why a question is refused, by what it was compared with so far."""
        if row in self._same:
            return Finding(Rejection.DUPLICATE, f"it is asked already: {quoted(self._same[row])}")
        cosine, text = self.nearest(row)
        if cosine < self._near:
            return None
        return Finding(Rejection.NEAR_DUPLICATE, f"cosine {cosine:.3f} to {quoted(text)}")

    def nearest(self, row: int) -> tuple[float, str]:
        """Return the largest cosine of a question to another, and that one's text; -1: to none."""
        return self._nearest.get(row, (-1.0, ""))

    def _compare_meaning(
        self, others: Sequence[Asked], ours: FloatMatrix, theirs: FloatMatrix
    ) -> None:
        if ours.shape[1] != theirs.shape[1]:
            return  # one side has no vector at all, see `Embedder.embed`
        columns_of: defaultdict[str | None, list[int]] = defaultdict(list)
        for column, other in enumerate(others):
            columns_of[other.tenant].append(column)
        for tenant, columns in columns_of.items():
            rows = self._of_tenant.get(tenant, [])
            cosines = ours[rows] @ theirs[columns].T
            for row, found in zip(rows, cosines, strict=True):
                best = int(found.argmax())
                pair = (float(found[best]), others[columns[best]].text)
                self._nearest[row] = max(self.nearest(row), pair)


def _directions(vectors: FloatMatrix) -> FloatMatrix:
    """Return the vectors at length one; zeros for one that has no direction."""
    known = np.nan_to_num(vectors, nan=0.0, posinf=0.0, neginf=0.0).astype(np.float32)
    lengths = np.linalg.norm(known, axis=1, keepdims=True)
    directions: FloatMatrix = np.divide(known, lengths, out=np.zeros_like(known), where=lengths > 0)
    return directions
