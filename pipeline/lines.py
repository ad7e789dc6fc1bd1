"""The lines of a text file, plain or gzipped, one at a time: flat memory whatever its size."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pipeline.errors import InputError

MAX_LINE_BYTES = 16 * 2**20

_GZIP_MAGIC = b"\x1f\x8b"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_TEXT = "this is UTF-16, UTF-32 or a binary file: save it as UTF-8 text"


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of every line that is not blank.

    The file is UTF-8, with or without a byte order mark; gzip is told by its first bytes. Raises
    InputError with the file and the line for another encoding, and for whatever `raw_lines` does.
    """
    for number, line in raw_lines(path):
        try:
            text = decoded(line)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None
        if text.strip():
            yield number, text


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number, from 1, and the bytes of every line, without a byte order mark.

    Raises InputError with the file and the line for what no later line can make good: a line above
    MAX_LINE_BYTES, a Git LFS pointer, UTF-16, UTF-32 or a binary file, a damaged gzip file, and a
    file that cannot be read.
    """
    number = 0
    try:
        with path.open("rb") as stored, _unpacked(stored) as file:
            for number, line in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), 1):
                yield number, _checked(line, number, path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path}:{number + 1}: the gzip file is cut short or damaged ({error}): fetch it again"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def decoded(line: bytes) -> str:
    """Return the text of a line; raises InputError, without a place, when it is not UTF-8."""
    if b"\0" in line:
        raise InputError(_NOT_TEXT)
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start + 1} of the line (0x{line[error.start]:02x}) "
            "is not UTF-8: save the file as UTF-8"
        ) from None


def _unpacked(stored: io.BufferedReader) -> io.BufferedIOBase:
    if stored.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=stored)
    return stored


def _checked(line: bytes, number: int, path: Path) -> bytes:
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"{path}:{number}: the line is longer than {MAX_LINE_BYTES:,} bytes")
    if number > 1:
        return line
    _refuse_pointer(line, path)
    if b"\0" in line or line.startswith(_WIDE_MARKS):
        raise InputError(f"{path}:1: {_NOT_TEXT}")
    return line.removeprefix(codecs.BOM_UTF8)


def _refuse_pointer(line: bytes, path: Path) -> None:
    if line.startswith(_LFS_POINTER):
        raise InputError(
            f"{path}:1: this is a Git LFS pointer, not the file itself: run `git lfs pull`"
        )
