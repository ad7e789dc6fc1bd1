"""The documents that chunkings are tried on: those of a folder, or the corpus's put together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.chunking.joining import join
from pipeline.chunking.splitting import Span
from pipeline.corpus.documents import draw_documents, read_documents
from pipeline.errors import InputError
from workers.context import Context

SUFFIXES = (".txt", ".md")

MAX_FILE_BYTES = 2**24
"""A file that is larger is no document that people read."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text, whose it is, and where in it the corpus's present chunks are (None: there are none).

    `name`: the document's id, or the file's path within the folder.
    """

    name: str
    tenant: str | None
    text: str
    present: Sequence[Span] | None = None


def from_corpus(
    ctx: Context, wanted: Collection[str], *, others: int | None, seed: int
) -> list[Document]:
    """Return the wanted documents, and so many others (None: all), put together from their chunks.

    Raises TransientError or CorpusError where the corpus cannot be read.
    """
    table = ctx.corpus_table()
    limit = None if others is None else others + len(wanted)
    drawn = draw_documents(ctx.corpus(), table, limit=limit, seed=seed)
    rest = [each for each in drawn if each not in set(wanted)]
    ids = [*wanted, *(rest if others is None else rest[:others])]
    documents = []
    for each in read_documents(ctx.corpus(), table, ids):
        joined = join(each.chunks)
        documents.append(Document(each.document_id, each.tenant, joined.text, joined.spans))
    return documents


def from_folder(folder: Path) -> list[Document]:
    """Return the text files of a folder and of those below it, by path; hidden ones are left out.

    Raises InputError where there is none, or one cannot be read.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file() and not _is_hidden(path, folder)
    )
    if not files:
        raise InputError(f"{folder}: holds no file that ends in {' or '.join(SUFFIXES)}")
    return [Document(path.relative_to(folder).as_posix(), None, _text(path)) for path in files]


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start + 1})") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
