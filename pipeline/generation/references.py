"""Questions that nobody asks who has not read the passage: they speak of it, or of nothing.

A customer sees no passage. "According to the text, ..." gives a generated question away, and so
does "What are the main points?", which no search can answer. All languages are tried on every
question: a model may answer in one that it was not asked for.
"""

import re
import unicodedata

from pipeline.generation.generic_words import GENERIC, GENERIC_UNSPACED
from pipeline.generation.phrases import OTHERS, SPACED, Phrases
from pipeline.generation.words import is_hiragana, tokens

# Up to four words: German, and questions in other languages, put the verb behind the noun.
_TEMPLATES = (
    "(?:{according}) (?:(?:{the}|{this}) )?(?:(?:{given}) )?(?:{text}|{page}|{author})",
    "(?:{told}) (?:{above})",
    "(?:{above}) (?:{told})",
    "(?:{told}) (?:{in_the}|(?:{in_} )?(?:{this})) (?:(?:{given}) )?(?:{text}|{page}|{author})",
    r"(?:{in_the}) (?:(?:{given}) )?(?:{text}|{page}) (?:\w+ ){{0,4}}(?:{told})",
    "(?:(?:{the}|{this}) )?(?:{text}|{author}) (?:{say})",
    "(?:{say}) (?:{the}|{this}) (?:(?:{given}) )?(?:{text}|{page}|{author})",
    "(?:do|does|did) (?:{the}|{this}) (?:{author}|(?:{text}|{page}) (?:{say}))",
    "(?:{this}) (?:{text}|{page})",
    "(?:{the}) (?:{given}) (?:{text}|{page})",
    "(?:{in_the}) (?:{text})",
)


def _compiled(phrases: Phrases) -> re.Pattern[str]:
    words = {name: getattr(phrases, name) for name in Phrases.__slots__}
    either = "|".join(template.format_map(words) for template in _TEMPLATES)
    return re.compile(rf"\b(?:{either})\b")


_SPACED = tuple(_compiled(phrases) for phrases in SPACED)
_OTHERS = re.compile("|".join(OTHERS))
_GENERIC_UNSPACED = re.compile("|".join(GENERIC_UNSPACED))


def reference_to_text(question: str) -> str | None:
    """Return the words by which a question speaks of its passage; None: it does not."""
    words = " ".join(tokens(question))
    searched = (pattern.search(words) for pattern in _SPACED)
    found = next(filter(None, searched), None) or _OTHERS.search(_plain(question))
    return found.group() if found else None


def is_generic(question: str) -> bool:
    """Return whether nothing in a question says what it is about: each word fits any subject."""
    rest = tokens(_GENERIC_UNSPACED.sub(" ", _plain(question)))
    return any(all(word in words or is_hiragana(word) for word in rest) for words in GENERIC)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
