"""Words of a text in any script: how long a question is, and what it shares with its chunk.

Chinese, Japanese and the scripts of South-East Asia put no blanks between words. There a character
is a token, which counts as the part of a word that it is on average.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from pipeline.text import normalised

_APOSTROPHES = "'\u2019"
_CJK = (
    (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
_SOUTH_EAST_ASIAN = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))
_FIRST_UNSPACED = "\u0e00"
_HIRAGANA = (0x3040, 0x309F)
_HANGUL = (0xAC00, 0xD7A3)

_CJK_SHARE = 0.5
_SOUTH_EAST_ASIAN_SHARE = 0.2
_LONGEST_WORD = 30
"""Characters; a token of more (a URL, a line pasted without blanks) counts as several words."""


def tokens(text: str) -> list[str]:
    """Return the words of a text in order, without case and punctuation.

    Full-width and half-width forms are the same. An apostrophe within a word belongs to it.
    """
    plain = unicodedata.normalize("NFKC", normalised(text)).casefold()
    found: list[str] = []
    word = ""
    for character, following in pairwise(f"{plain} \n"):
        if _is_unspaced(character):
            found += [word, character]
            word = ""
        elif character.isalnum() or unicodedata.category(character).startswith("M"):
            word += character
        elif not (word and character in _APOSTROPHES and following.isalnum()):
            found.append(word)
            word = ""
    return [token for token in found if token]


def length(words: Iterable[str]) -> float:
    """Return how many words the tokens count as."""
    return sum(map(_weight, words))


def longest_shared_run(first: Sequence[str], second: Sequence[str]) -> Sequence[str]:
    """Return the longest run of tokens, by `length`, that stands in both; empty: none does."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, token in enumerate(second):
        places[token].append(place)
    longest, best = 0.0, (0, 0)
    ending: dict[int, tuple[float, int]] = {}
    for end, token in enumerate(first, start=1):
        previous, ending = ending, {}
        for place in places.get(token, ()):
            before, count = previous.get(place - 1, (0.0, 0))
            ending[place] = run = (before + _weight(token), count + 1)
            if run[0] > longest:
                longest, best = run[0], (end - run[1], end)
    return first[slice(*best)]


def content_terms(lexemes: Iterable[str]) -> frozenset[str]:
    """Return what the content of a text is compared by, from its lexemes in full text search.

    A lexeme of a script without blanks is a whole clause, and one of Korean carries its particles:
    each pair of neighbouring characters stands for it instead, as is usual in searching them.
    Pairs of hiragana alone are left out: endings and particles are written so.
    """
    return frozenset(term for lexeme in lexemes for term in _terms_of(lexeme))


def holds_run(words: Sequence[str], run: Sequence[str]) -> bool:
    """Return whether all the tokens of `run`, one at least, stand in `words` together, in order."""
    size = len(run)
    starts = range(len(words) - size + 1)
    return size > 0 and any(list(words[start : start + size]) == list(run) for start in starts)


def is_hiragana(text: str) -> bool:
    """Return whether a text holds nothing but hiragana, in which Japanese writes its endings."""
    return all(_within(character, _HIRAGANA) for character in text)


def _terms_of(lexeme: str) -> Iterator[str]:
    if not any(_is_unspaced(character) or _within(character, _HANGUL) for character in lexeme):
        yield lexeme
        return
    pairs = ["".join(pair) for pair in pairwise(lexeme)]
    for pair in pairs or [lexeme]:
        if not is_hiragana(pair):
            yield pair


def _weight(token: str) -> float:
    if _in_any(token[0], _CJK):
        return _CJK_SHARE
    if _in_any(token[0], _SOUTH_EAST_ASIAN):
        return _SOUTH_EAST_ASIAN_SHARE
    return 1 + (len(token) - 1) // _LONGEST_WORD


def _is_unspaced(character: str) -> bool:
    if character < _FIRST_UNSPACED:
        return False
    return _in_any(character, _CJK) or _in_any(character, _SOUTH_EAST_ASIAN)


def _in_any(character: str, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(_within(character, one) for one in ranges)


def _within(character: str, limits: tuple[int, int]) -> bool:
    return limits[0] <= ord(character) <= limits[1]
