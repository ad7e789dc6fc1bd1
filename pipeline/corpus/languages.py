"""Which of PostgreSQL's text search configurations suits a language."""

import re
from collections.abc import Collection
from typing import Any

import psycopg

SIMPLE = "simple"
"""Lower-case words, without stems or stop words: for no language in particular."""

# Configuration -> ISO 639-1 and 639-2/3 codes of its language, retired codes included.
_CODES = {
    "arabic": "ar ara arb",
    "armenian": "hy hye arm",
    "basque": "eu eus baq",
    "catalan": "ca cat",
    "danish": "da dan",
    "dutch": "nl nld dut",
    "english": "en eng",
    "estonian": "et est ekk",
    "finnish": "fi fin",
    "french": "fr fra fre",
    "german": "de deu ger",
    "greek": "el ell gre",
    "hindi": "hi hin",
    "hungarian": "hu hun",
    "indonesian": "id ind in",
    "irish": "ga gle",
    "italian": "it ita",
    "lithuanian": "lt lit",
    "nepali": "ne nep npi",
    "norwegian": "no nor nb nob nn nno",
    "portuguese": "pt por",
    "romanian": "ro ron rum mo mol",
    "russian": "ru rus",
    "serbian": "sr srp",
    "spanish": "es spa",
    "swedish": "sv swe",
    "tamil": "ta tam",
    "turkish": "tr tur",
    "yiddish": "yi yid ydd ji",
}

CONFIGURATIONS = frozenset(_CODES)
"""The configurations with a stemmer that PostgreSQL 18 has; 15 lacks estonian."""

_BY_CODE = {code: name for name, codes in _CODES.items() for code in [name, *codes.split()]}


def text_config(language: str | None, available: Collection[str] = CONFIGURATIONS) -> str:
    """Return the configuration for a language, given as "pt", "pt-BR", "por" or "Portuguese".

    `simple` where the language is unknown or absent, or the server does not have its configuration.
    """
    primary = re.split(r"[^a-z]", (language or "").strip().lower(), maxsplit=1)[0]
    name = _BY_CODE.get(primary, SIMPLE)
    return name if name in available else SIMPLE


def available_text_configs(conn: psycopg.Connection[Any]) -> frozenset[str]:
    """Return the names of the configurations that this server ships with."""
    rows = conn.execute(
        "SELECT cfgname FROM pg_ts_config WHERE cfgnamespace = 'pg_catalog'::regnamespace"
    )
    return frozenset(name for (name,) in rows)
