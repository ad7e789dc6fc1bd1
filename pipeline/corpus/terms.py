"""Content words of texts, by PostgreSQL's text search: stems, without a language's stop words."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.languages import available_text_configs, text_config
from pipeline.generation.base import SourceChunk
from pipeline.generation.distinctive import Distinctive, words_of

_READ = 100_000
"""Characters of a text that are looked at; a tsvector holds a megabyte."""

_NO_LETTER = re.compile(r"[^\w\x00-\x7f]")

_LEXEMES = """
SELECT tsvector_to_array(to_tsvector(config::regconfig, content))
FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS t (config, content, position)
ORDER BY position
"""


@corpus_errors("find the content words of texts")
def lexemes(
    conn: psycopg.Connection[Any], texts: Sequence[str], languages: Sequence[str | None]
) -> list[list[str]]:
    """Return the distinct lexemes of each text, in the configuration of its language.

    To a server with locale C each character beyond ASCII is a letter without case: texts are
    lower case, and without dashes, quotation marks and ideographic full stops, before it sees them.
    """
    available = available_text_configs(conn)
    configs = [text_config(language, available) for language in languages]
    plain = [_NO_LETTER.sub(_or_blank, text[:_READ].lower()) for text in texts]
    return [found for (found,) in conn.execute(_LEXEMES, [configs, plain])]


def distinctive(conn: psycopg.Connection[Any], chunks: Iterable[SourceChunk]) -> Distinctive:
    """Return what tells these chunks from each other; raises what `lexemes` raises."""
    words = {chunk: words_of(chunk) for chunk in chunks}
    distinct = sorted({word for each in words.values() for word in each}, key=str)
    found = lexemes(conn, [word for word, _ in distinct], [language for _, language in distinct])
    stems = {word: stems[0] for word, stems in zip(distinct, found, strict=True) if stems}
    return Distinctive(words, stems)


def _or_blank(found: re.Match[str]) -> str:
    """Keep vowel signs and accents, which belong to the letter before."""
    return found[0] if unicodedata.category(found[0]).startswith("M") else " "
