"""The formats that a golden set is read from, and what every reader of one yields.

A reader is a function `read(source, *, options)` in a module of its own. It yields a `Record` for
whatever it meets, in the order of the source and in flat memory: a fault in one line is a
`Refused`, not an exception, so that the others can be imported without it. It raises InputError for
what leaves nothing to read: a missing file, a Git LFS pointer, an encoding that nobody can guess.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from pipeline.errors import InputError
from pipeline.text import is_blank
from pipeline.types import Question, Source

DEFAULT_TABLE = "rag_eval_queries"
"""The table of a database that holds questions, where nobody names another."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a person says about a source beside its format; each format uses what it knows.

    `qrels`: the file of judgments, where the questions stand in another. `table`: the table of a
    database. `document_ids`: every id names a document, even one that ends in a chunk index.
    `origin`: the source of all questions, whatever they state.
    """

    qrels: Path | None = None
    table: str | None = None
    document_ids: bool = False
    origin: Source | None = None

    def stated(self, fields_of_question: Mapping[str, object]) -> Mapping[str, object]:
        """Return the fields of a question with what a person says of all of them."""
        if self.origin is None:
            return fields_of_question
        return {**fields_of_question, "source": self.origin}


def refuse_options(source: str, options: ReadOptions, *known: str) -> None:
    """Raise InputError where a person says what a format that has only `known` cannot use."""
    for option in fields(options):
        if (
            option.name not in {"origin", *known}
            and getattr(options, option.name) != option.default
        ):
            name = option.name.replace("_", "-")
            raise InputError(f"{source}: its format has no use for --{name}: leave it out")


@dataclass(frozen=True, slots=True)
class Read:
    """A question, and where it stands: `golden.jsonl:12`.

    `raw` is what stood there, line end included, so that the same format reads it again; bytes that
    are not UTF-8 are surrogate escapes. A format of several files writes it as a line of JSONL.
    """

    place: str
    question: Question
    raw: str


@dataclass(frozen=True, slots=True)
class Refused:
    """What is no question, where it stands, why, and what to do; `raw` as in `Read`.

    `text`, `tenant` and `external_id` are those of the question that it will be once it is
    corrected, as far as they can be read.
    """

    place: str
    reason: str
    raw: str
    text: str | None = None
    tenant: str | None = None
    external_id: str | None = None


def refused(place: str, fault: Exception, raw: str, stated: Mapping[str, object]) -> Refused:
    """Return what refuses the question of these fields, of which any may be wrong or missing."""

    def text_of(name: str) -> str | None:
        value = stated.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        return value if isinstance(value, str) and not is_blank(value) else None

    return Refused(
        place, str(fault), raw, text_of("question"), text_of("tenant"), text_of("external_id")
    )


@dataclass(frozen=True, slots=True)
class Header:
    """What a file of refused lines has to begin with to be read again: the header of a CSV file."""

    raw: str


@dataclass(frozen=True, slots=True)
class Notice:
    """One line that a person should know about the source: an encoding that was guessed."""

    text: str


Record: TypeAlias = Read | Refused | Header | Notice


class Reader(Protocol):
    """Reads one format; `source` is a file, a folder or a database URL, as the person wrote it."""

    def __call__(self, source: str, *, options: ReadOptions) -> Iterator[Record]:
        """Yield what the source holds. Raises InputError when it cannot be read at all."""
        ...


READERS = {
    "jsonl": "pipeline.golden.jsonl:read",
    "csv": "pipeline.golden.readers.csv_table:read",
    "trec": "pipeline.golden.readers.trec:read",
    "beir": "pipeline.golden.readers.beir:read",
    "quepid": "pipeline.golden.readers.quepid:read",
    "sql": "pipeline.golden_sources.sql_table:read",
}
"""Format -> module:function of its reader; named, so that only the one that is used is loaded."""

SEVERAL_FILES = frozenset({"trec", "beir", "quepid", "sql"})
"""Formats in which no one line holds a question: their `raw` is a line of JSONL."""

_BY_SUFFIX = {
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}
_NOT_TEXT = {".xlsx": "CSV UTF-8", ".xls": "CSV UTF-8", ".ods": "CSV", ".parquet": "JSON lines"}
_BY_BEGINNING = {"{": "jsonl", "<top": "trec"}
_POSTGRES = ("postgresql", "postgres")
_QUEPID = re.compile(
    r"(^|.*[,;\t])query( text)?[,;\t].*\bdoc[ _]?id\b.*[,;\t]rating\b", re.IGNORECASE
)
_HEAD_BYTES = 4096


def reader(name: str) -> Reader:
    """Return the reader of a format of READERS."""
    module, _, function = READERS[name].partition(":")
    return cast("Reader", getattr(import_module(module), function))


def guess(source: str, *, qrels: Path | None = None) -> str:
    """Return the format of a source: by its name, and by how it begins or what it holds.

    Raises InputError for one that cannot be told, and for a file that cannot be opened.
    """
    if is_url(source):
        return "sql"
    with readable(Path(source)):
        return _guess_path(Path(source), qrels)


def is_url(source: str) -> bool:
    """Tell whether a source is the URL of a PostgreSQL database.

    Raises InputError, which does not show it, for any other URL: one may hold a password.
    """
    scheme, is_any, _ = source.partition("://")
    # SQLAlchemy names a driver behind a plus.
    if is_any and scheme.strip().lower().partition("+")[0] not in _POSTGRES:
        raise InputError(
            "a URL that is not PostgreSQL's (postgresql://me@host/name) is no golden set: fetch the"
            " file first"
        )
    return bool(is_any)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise an InputError that names the path where the system lets nobody look at it."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None


def _guess_path(path: Path, qrels: Path | None) -> str:
    if path.is_dir():
        return _guess_folder(path)
    if qrels is not None:
        return "beir" if ".jsonl" in path.suffixes else "trec"
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    if last in _NOT_TEXT:
        raise InputError(f"{path}: is no text file: save it as {_NOT_TEXT[last]}")
    # What is no regular file, as a pipe, can be read once only.
    head = _head(path) if path.is_file() or not path.exists() else ""
    if last == ".csv" and _QUEPID.match(head.partition("\n")[0].replace('"', "")):
        return "quepid"
    if last in _BY_SUFFIX:
        return _BY_SUFFIX[last]
    for beginning, name in _BY_BEGINNING.items():
        if head.lstrip().lower().startswith(beginning):
            return name
    raise _unknown(str(path))


def _guess_folder(folder: Path) -> str:
    names = [path.name.lower() for path in folder.iterdir()]
    if any(name.startswith("queries.jsonl") for name in names):
        return "beir"
    if any(name.startswith("topics") for name in names):
        return "trec"
    raise _unknown(f"{folder}: it holds neither queries.jsonl (BEIR) nor topics* (TREC)")


def _unknown(what: str) -> InputError:
    return InputError(
        f"{what}: the format cannot be told: say it with --format ({', '.join(READERS)})"
    )


def _head(path: Path) -> str:
    # What is looked at in a pipe is gone for the reader.
    if path.is_fifo() or path.is_char_device():
        raise _unknown(f"{path}: is no file that can be read twice")
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES).decode(errors="replace").removeprefix("\ufeff")
