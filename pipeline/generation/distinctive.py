"""The words that tell a chunk from others: `--forbid-terms` keeps them out of its questions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pipeline.generation.base import SourceChunk
from pipeline.generation.languages import source_language
from pipeline.generation.words import tokens

DISTINCTIVE = 5
"""Terms of a chunk that are forbidden."""

COMPARED = 400
"""Chunks, at least, by which is told how common a word is, where the corpus has so many."""

_LONG_ENOUGH = 4
"""Characters of a word that may tell a chunk from others."""

Word = tuple[str, str | None]
"""A word and its language."""


def words_of(chunk: SourceChunk) -> list[Word]:
    """Return the words of a chunk that may be distinctive, in order, each in the chunk's language.

    Short ones are left out, and with them all of scripts without blanks.
    """
    language = source_language(chunk.language, chunk.content)
    return [(word, language) for word in tokens(chunk.content) if len(word) >= _LONG_ENOUGH]


class Distinctive:
    """Knows how many of some chunks hold each word, in any of its forms.

    `words`: those of each chunk; `stems`: word -> its stem, stop words left out.
    """

    def __init__(
        self, words: Mapping[SourceChunk, Sequence[Word]], stems: Mapping[Word, str]
    ) -> None:
        self._words = words
        self._stems = stems
        self._holders = Counter(
            stem for each in words.values() for stem in {stems[w] for w in each if w in stems}
        )

    def terms(self, chunks: Iterable[SourceChunk]) -> list[str]:
        """Return the words that each of these chunks has more than others, DISTINCTIVE of each."""
        return list(dict.fromkeys(term for chunk in chunks for term in self._terms(chunk)))

    def _terms(self, chunk: SourceChunk) -> list[str]:
        """Return them by term frequency times 1 / document frequency, the most telling first.

        Without those that stand once in the chunk, and in others too.
        """
        words = [word for word in self._words[chunk] if word in self._stems]
        counts = Counter(self._stems[word] for word in words)
        forms = {self._stems[word]: word[0] for word in reversed(words)}
        telling = [stem for stem, n in counts.items() if n > 1 or self._holders[stem] == 1]
        telling.sort(key=lambda stem: (-counts[stem] / self._holders[stem], stem))
        return [forms[stem] for stem in telling[:DISTINCTIVE]]
