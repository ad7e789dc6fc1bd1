"""Ids of questions in formats that need one for each."""

from pipeline.errors import InputError
from pipeline.text import quoted
from pipeline.types import Question


class Names:
    """Names questions by their external id, else by their number in recallwatch, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, number: int, question: Question) -> str:
        """Return a question's name; raises InputError when an earlier one has it."""
        name = name_of(number, question)
        if name in self._taken:
            raise InputError(
                f"two questions would have the id {quoted(name)}: give question {number} another"
                " external id"
            )
        self._taken.add(name)
        return name


def name_of(number: int, question: Question) -> str:
    """Return a question's external id, else its number."""
    return question.external_id or str(number)
