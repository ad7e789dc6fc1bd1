"""Rerankers of the owner's own Python."""

import math
from collections.abc import Sequence
from typing import Any

from pipeline.errors import PermanentError, RecallwatchError
from pipeline.retrieval.own_code import in_words, load
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.own_results import UnreadableError, listed
from pipeline.retrieval.rerank.base import Candidates, Scored
from pipeline.retrieval.strategies.rerank import PythonReranker
from pipeline.types import Failure

OFFERED = frozenset({"question", "documents"})
"""What a function may take: a text, and a list of texts. It returns a number for each of these."""


class PythonRerankerCall:
    """Calls `rerank` of the owner's class, or their function, once a question.

    What it raises is a Failure of the question. An error of recallwatch's own kinds, and those in
    `PythonHost.never_caught`, concern all of them and are passed on.
    """

    def __init__(self, settings: PythonReranker, host: PythonHost) -> None:
        self._path = settings.path
        self._loop = host.loop
        self._never_caught: tuple[type[Exception], ...] = (RecallwatchError, *host.never_caught)
        self._own = load(settings, host, "rerank", (OFFERED,))
        if self._own.takes != OFFERED:
            raise PermanentError(f"{self._path} must take question and documents")

    def score(self, asked: Sequence[Candidates]) -> list[Sequence[Scored] | Failure]:
        """See `Reranker.score`."""
        return [self._score(each) for each in asked]

    def _score(self, asked: Candidates) -> Sequence[Scored] | Failure:
        try:
            scores = listed(self._call(asked))
        except self._never_caught:
            raise
        except UnreadableError:
            scores = []
        except Exception as error:  # noqa: BLE001 - the owner's code may raise anything
            return Failure(in_words(error))
        return self._read(scores, len(asked.texts))

    def _call(self, asked: Candidates) -> Any:  # noqa: ANN401 - whatever the owner's code returns
        found = self._own.call(question=asked.question, documents=list(asked.texts))
        return self._loop.run(found) if self._own.is_async else found

    def _read(self, scores: Sequence[Any], texts: int) -> Sequence[Scored] | Failure:
        if len(scores) != texts:
            return Failure(f"{self._path} returned no list of {texts} scores")
        try:
            numbers = [float(score) for score in scores]
        except (TypeError, ValueError, OverflowError):
            numbers = [math.nan]
        if not all(map(math.isfinite, numbers)):
            return Failure(f"{self._path} returned a score that is no number")
        return [Scored(position, score) for position, score in enumerate(numbers)]
