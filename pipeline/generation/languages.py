"""In which language a text is, as far as can be told: a short question often fits several.

py3langid (naive Bayes over byte sequences, 140 languages; Lui and Baldwin, "langid.py", ACL 2012)
gives each language a probability. A question counts as another language's only where a few of them
are likely together, and the wanted one far less so: Portuguese looks Galician now and then.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline.corpus.languages import SIMPLE, text_config
from pipeline.generation.words import length, tokens

LIKELY = 0.5
"""Probability that the likeliest languages, `_FEW` of them, must have together to be believed."""

_FEW = 3

TIMES_LIKELIER = 10.0
"""How many times likelier than the wanted language the likeliest one must be."""

CERTAIN = 0.8
"""Probability from which a chunk's language is taken from its text."""

WORDS_TO_TELL = 25
"""Words of a text from which it may contradict the language that its chunk is said to be in."""

_READ = 4_000
"""Characters of a text that are looked at."""

_SAME = (
    frozenset({"no", "nb", "nn", "da"}),
    frozenset({"sr", "hr", "bs", "sh"}),
    frozenset({"id", "ms"}),
    frozenset({"zh", "yue", "wuu"}),
)
"""Languages so alike in writing that a question does not tell them apart."""


def other_language(text: str, wanted: str) -> str | None:
    """Return the language that a text is in when it is clearly not in the wanted one, else None.

    `wanted` may be written "pt", "pt-BR", "por" or "Portuguese"; nothing is told of a language that
    is not known.
    """
    likely = probabilities(text)
    accepted = _codes_of(wanted) & likely.keys()
    found = max(likely, key=likely.__getitem__)
    if not accepted or found in accepted:
        return None
    believed = sum(sorted(likely.values())[-_FEW:]) >= LIKELY
    most = max(likely[code] for code in accepted)
    return found if believed and likely[found] >= TIMES_LIKELIER * most else None


def language_of(text: str) -> str | None:
    """Return the language of a text, as an ISO 639-1 code where there is one; None: uncertain."""
    likely = probabilities(text)
    found = max(likely, key=likely.__getitem__)
    return found if likely[found] >= CERTAIN else None


def source_language(declared: str | None, text: str) -> str | None:
    """Return the language of a chunk: as declared where that is one we know, else by its text.

    By its text too where that is CERTAIN not to be in the declared one.
    """
    if not declared or not _is_known(declared):
        return language_of(text)
    found = language_of(text) if length(tokens(text)) >= WORDS_TO_TELL else None
    return found if found and other_language(text, declared) == found else declared


def probabilities(text: str) -> Mapping[str, float]:
    """Return language -> how likely a text is in it, summing to 1; by its first characters."""
    return dict(_identifier().rank(text[:_READ]))


@cache
def _identifier() -> Any:  # noqa: ANN401 - py3langid has no types
    # Takes half a second, which commands that identify nothing need not wait for.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _is_known(language: str) -> bool:
    return not _codes_of(language).isdisjoint(_identifier().labels)


@cache
def _codes_of(language: str) -> frozenset[str]:
    """Return the classifier's codes that a language, by code or English name, may go by."""
    primary = re.split(r"[^a-z]", language.strip().lower(), maxsplit=1)[0]
    named = text_config(language)
    labels = () if named == SIMPLE else _identifier().labels
    codes = {primary} | {code for code in labels if text_config(code) == named}
    return frozenset(codes).union(*(group for group in _SAME if group & codes))
