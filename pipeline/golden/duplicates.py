"""Questions that stand twice in one import: which are kept, which are left out, which are refused.

An `external_id` names a question. Without one, its content (`content_hash`) does. A text that
returns with other content is another question, as in collections where one question was asked of
several paragraphs: both are kept, and reported.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.errors import InputError
from pipeline.golden.fingerprint import content_hash, item_hash
from pipeline.text import normalised, quoted
from pipeline.types import Question

MAX_QUESTIONS = 5_000_000
"""Questions of one golden set, and so of one run."""

_EXAMPLES = 5
_DIGEST_BYTES = 16


@dataclass
class Repeats:
    """Lines that meet an earlier one: how many, and the first few as (line, earlier line)."""

    count: int = 0
    examples: list[tuple[int, int]] = field(default_factory=list)

    def add(self, line: int, earlier: int) -> None:
        """Count one, and keep it as an example while there are few."""
        self.count += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append((line, earlier))

    def __str__(self) -> str:
        pairs = ", ".join(f"{line} like {earlier}" for line, earlier in self.examples)
        more = ", ..." if self.count > len(self.examples) else ""
        return f"{self.count} (lines {pairs}{more})"


@dataclass
class ImportPlan:
    """The questions of one import, each once; iterate over it once, then read the counts.

    `kept` + `repeated.count` is the number of questions read. `relabelled` are those of `repeated`
    whose category, source, must_pass or notes differ from the earlier line's, which stand.
    `same_text` are kept questions whose text and tenant, but not content, an earlier one has.
    """

    path: Path
    numbered_questions: Iterable[tuple[int, Question]]
    kept: int = 0
    repeated: Repeats = field(default_factory=Repeats)
    relabelled: Repeats = field(default_factory=Repeats)
    same_text: Repeats = field(default_factory=Repeats)

    def __iter__(self) -> Iterator[Question]:
        """Yield the questions to import, in order, holding digests of those that went by.

        Raises InputError when an external_id comes back with anything changed, and for more than
        MAX_QUESTIONS.
        """
        first_lines: dict[bytes, tuple[int, bytes]] = {}
        first_texts: dict[bytes, int] = {}
        for line, question in self.numbered_questions:
            record = _digest(item_hash(question), question.notes)
            earlier, same_record = first_lines.setdefault(_identity(question), (line, record))
            if earlier != line:
                self._note_repeat(question, line, earlier, relabelled=same_record != record)
                continue
            if question.external_id is None:
                self._note_text(question, line, first_texts)
            self.kept += 1
            check_size(self.kept, str(self.path))
            yield question

    def warnings(self) -> list[str]:
        """Say, one line each, what a person should look at; empty when there is nothing."""
        found = []
        if self.relabelled.count:
            found.append(
                "repeated with another category, source, must_pass or notes (the earlier line's "
                f"were kept): {self.relabelled}"
            )
        if self.same_text.count:
            found.append(
                "with the text of an earlier question but other expected keys, language or blanks "
                f"(both were kept): {self.same_text}"
            )
        return [f"{self.path}: questions {warning}" for warning in found]

    def _note_repeat(
        self, question: Question, line: int, earlier: int, *, relabelled: bool
    ) -> None:
        if relabelled and question.external_id is not None:
            raise InputError(
                f"{self.path}:{line}: external_id {quoted(question.external_id)} stands at line "
                f"{earlier} with other content: drop one of the lines, or give one another id"
            )
        self.repeated.add(line, earlier)
        if relabelled:
            self.relabelled.add(line, earlier)

    def _note_text(self, question: Question, line: int, first_texts: dict[bytes, int]) -> None:
        text = _digest(normalised(question.text), question.tenant)
        earlier = first_texts.setdefault(text, line)
        if earlier != line:
            self.same_text.add(line, earlier)


def check_size(questions: int, what: str) -> None:
    """Raise InputError for more questions than one golden set may have."""
    if questions > MAX_QUESTIONS:
        raise InputError(f"{what}: holds more than {MAX_QUESTIONS:,} questions: split it")


def plan_import(path: Path, numbered_questions: Iterable[tuple[int, Question]]) -> ImportPlan:
    """Plan the import of what a reader yields; `path` is the file that messages name."""
    return ImportPlan(path, numbered_questions)


def _identity(question: Question) -> bytes:
    if question.external_id is None:
        return _digest(content_hash(question), None)
    return _digest("external_id", question.external_id)


def _digest(first: str, second: str | None) -> bytes:
    # repr marks where each text ends and tells None from 'None'.
    return hashlib.blake2b(repr((first, second)).encode(), digest_size=_DIGEST_BYTES).digest()
