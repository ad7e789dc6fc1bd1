"""What a person needs to see of a question to judge it: its chunks, and what comes back now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.corpus.neighbours import Neighbour, contents, near_duplicates
from pipeline.errors import RecallwatchError
from pipeline.retrieval.limits import needed_limit
from pipeline.types import Failure, Level, QueryBatch, Question
from workers.context import Context
from workers.enqueue import run_settings


@dataclass(frozen=True, slots=True)
class Look:
    """A question's surroundings in the corpus as it is now.

    `contents` maps a key to its chunk's text; a key that is not in it is not in the corpus. `near`
    are near-duplicates of the expected chunks. `served` maps a strategy to the keys that it
    returns, best first, or to why it does not. `notes` say what could not be looked at.
    """

    contents: Mapping[str, str] = field(default_factory=dict)
    near: Sequence[Neighbour] = ()
    served: Mapping[str, Sequence[str] | Failure] = field(default_factory=dict)
    notes: Sequence[str] = ()


class Looker:
    """Looks at one question after the other with the strategies of a set of names."""

    def __init__(self, ctx: Context, strategies: Sequence[str], k: int) -> None:
        self._ctx = ctx
        self._strategies = strategies
        self._k = k
        self._asked: tuple[object, dict[str, Sequence[str] | Failure]] = (None, {})

    def look(self, question: Question, others: Iterable[str] = ()) -> Look:
        """Look at a question; `others` are keys whose texts are wanted too.

        What fails becomes a note or a Failure: a review goes on without it.
        """
        try:
            return self._look(question, list(others))
        except RecallwatchError as error:
            return Look(notes=[str(error)])

    def _look(self, question: Question, others: Sequence[str]) -> Look:
        table, conn = self._ctx.corpus_table(), self._ctx.corpus()
        least = self._ctx.settings.generation.near_duplicate
        relevant = [key for key, grade in question.expected.items() if grade >= 1]
        near = near_duplicates(conn, table, relevant, least=least, tenant=question.tenant)
        served = self._served(question)
        keys = [*question.expected, *others, *(each.key for each in near)]
        for found in served.values():
            keys += [] if isinstance(found, Failure) else found
        return Look(contents(conn, table, keys, tenant=question.tenant), near, served)

    def _served(self, question: Question) -> dict[str, Sequence[str] | Failure]:
        """Return what each strategy serves, asked once as long as nothing else is asked."""
        asked = (question.text, question.tenant, question.language)
        if self._asked[0] != asked:
            served = {name: self._serve(question, name) for name in self._strategies}
            self._asked = (asked, served)
        return self._asked[1]

    def _serve(self, question: Question, strategy: str) -> Sequence[str] | Failure:
        try:
            settings = run_settings(self._ctx.settings, strategy)
            retriever = self._ctx.retriever(settings, {})
            vectors = None
            if retriever.needs_vectors:
                dimensions = self._ctx.corpus_table().dimensions
                embedder = self._ctx.embedder(dimensions=dimensions)
                vectors, failures = embedder.embed([question.text])
                if failures:
                    return failures[0]
            batch = QueryBatch([question.text], [question.tenant], [question.language], vectors)
            [found] = retriever.retrieve(batch, needed_limit(self._k, Level.CHUNK))
        except RecallwatchError as error:
            return Failure(str(error))
        return found if isinstance(found, Failure) else found.keys
