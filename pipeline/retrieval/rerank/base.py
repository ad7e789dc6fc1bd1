"""What every reranker looks like from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.types import Failure


@dataclass(frozen=True, slots=True)
class Candidates:
    """A question, and the texts that came back for it, best first; there is one at least."""

    question: str
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Scored:
    """The position of a text among the candidates, and the reranker's score: higher is better."""

    position: int
    score: float


class Reranker(Protocol):
    """Scores the candidates of many questions."""

    def score(self, asked: Sequence[Candidates]) -> list[Sequence[Scored] | Failure]:
        """Return, in order, the scored texts of each question; one that it left out has no score.

        A Failure stands for one question that could not be reranked. Raises TransientError and
        PermanentError for all of them.
        """
        ...
