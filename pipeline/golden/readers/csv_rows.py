"""The rows of a CSV or TSV file as spreadsheets write them, each with its line and its text.

Encoding and delimiter are found out and said. The dialect is that of RFC 4180, read strictly, with
Excel's habits: a first line `sep=;`, line breaks within quotes, empty columns at the right, blanks
around names in the header, rows without anything in them.
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import InputError
from pipeline.golden.formats import readable
from pipeline.golden.line_ends import split_lines
from pipeline.text import is_blank, quoted

_DELIMITERS = (",", ";", "\t", "|")
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
_SEP_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_MAX_CELL_CHARACTERS = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the line it begins at, its text, and its cells, as many as the header has.

    `fault` says why it cannot be used. Its cells are then what they seem to be, or none where it
    may have taken other rows in.
    """

    line: int
    raw: str
    cells: Sequence[str]
    fault: str | None = None


class Rows:
    """The rows of one file; the header is read at once.

    `columns`: the names in the header, without blanks around them; "" where one is unnamed.
    `head`: the text of all lines up to the header. `notices`: what was guessed, one line each.
    Raises InputError, which names file and line, for what leaves nothing to read, and for a file
    that changes while it is read: the first pass finds its encoding, the second its rows.
    """

    def __init__(
        self, path: Path, is_known: Callable[[str], bool], *, delimiter: str | None = None
    ) -> None:
        """Open a file; without a `delimiter`, `is_known` tells a name of the header when split."""
        self.path = path
        self._state = _state_of(path)
        encoding = _encoding(path)
        self._lines = _Lines(path, encoding)
        first = self._lines.peek()
        stated = _SEP_LINE.fullmatch(first)
        if stated and delimiter is None:
            next(self._lines)
            delimiter = stated[1]
        self.delimiter = delimiter or _delimiter(self._lines.peek(), is_known)
        self._reader = csv.reader(self._lines, delimiter=self.delimiter, strict=True)
        csv.field_size_limit(_MAX_CELL_CHARACTERS)
        self.columns = self._header()
        self.head = self._lines.taken()
        self.notices = _notices(path, encoding, self.delimiter)

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows that hold something; one that cannot be read is a row with a fault."""
        while True:
            try:
                cells = next(self._reader)
            except StopIteration:
                break
            except csv.Error as error:
                yield self._unreadable(error)
                continue
            start, raw = self._lines.start, self._lines.taken()
            if not all(map(is_blank, cells)):
                yield self._row(start, raw, cells)
        if _state_of(self.path) != self._state:
            raise _changed(self.path)

    def _row(self, line: int, raw: str, cells: list[str]) -> Row:
        width = len(self.columns)
        if not all(map(is_blank, cells[width:])):
            return Row(line, raw, cells, (
                f"the row holds {len(cells)} cells, the header {width}: put a text that holds the"
                " delimiter in quotes"
            ))  # fmt: skip
        if _names(cells)[:width] == self.columns:
            return Row(line, raw, cells, (
                "the names of the header stand here again: delete the row, and import files one by"
                " one"
            ))  # fmt: skip
        return Row(line, raw, (*cells[:width], *[""] * (width - len(cells))))

    def _unreadable(self, error: csv.Error) -> Row:
        start, lines, raw = self._lines.start, self._lines.count, self._lines.taken()
        if lines > 1:
            return Row(start, raw, (), f"{_fault(error)}; {lines} lines were taken for one row")
        cells = next(csv.reader([raw], delimiter=self.delimiter), [])
        return Row(start, raw, cells, _fault(error))

    def _header(self) -> list[str]:
        try:
            names = _names(next(self._reader))
        except StopIteration:
            raise InputError(f"{self.path}: is empty: a header and rows are needed") from None
        except csv.Error as error:
            raise InputError(f"{self.path}:{self._lines.start}: {_fault(error)}") from None
        twice = next((name for name in names if name and names.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                f"{self.path}:{self._lines.start}: column {quoted(twice)} stands twice: rename one"
            )
        return names


def _names(cells: Sequence[str]) -> list[str]:
    return [" ".join(cell.removeprefix("\ufeff").split()) for cell in cells]


class _Lines(Iterator[str]):
    """The lines of a file, decoded; remembers what was read since `taken` was last asked."""

    def __init__(self, path: Path, encoding: str) -> None:
        self._decoded = _decoded(path, encoding)
        self._ahead: tuple[int, str] | None = None
        self._read: list[str] = []
        self.start = 1

    def __next__(self) -> str:
        number, text = self._ahead or next(self._decoded)
        self._ahead = None
        if not self._read:
            self.start = number
        self._read.append(text)
        return text

    def peek(self) -> str:
        """Return the next line without reading it; "" at the end."""
        if self._ahead is None:
            self._ahead = next(self._decoded, None)
        return self._ahead[1] if self._ahead else ""

    @property
    def count(self) -> int:
        """How many lines were read since `taken` was last asked."""
        return len(self._read)

    def taken(self) -> str:
        """Return the text read since this was last asked."""
        text = "".join(self._read)
        self._read = []
        return text


def _decoded(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    for number, line in split_lines(path):
        try:
            yield number, line.decode(encoding)
        except UnicodeDecodeError:
            raise _changed(path) from None


def _state_of(path: Path) -> tuple[int, ...]:
    """Return what differs once somebody has written to a file."""
    with readable(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(f"{path}: is no file: a table is read twice, which a pipe cannot be")
        state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


def _changed(path: Path) -> InputError:
    return InputError(f"{path}: was changed while it was read: import it again")


def _encoding(path: Path) -> str:
    """Tell UTF-8 from Windows-1252 by reading the whole file once.

    A line that is no UTF-8, in a file where no other line holds UTF-8 beyond ASCII, is taken for
    Windows-1252, which is what Excel writes where it does not write UTF-8.
    """
    first_bad: tuple[int, bytes] | None = None
    has_utf8 = False
    for number, line in split_lines(path):
        if line.isascii():
            continue
        try:
            line.decode()
            has_utf8 = True
        except UnicodeDecodeError:
            first_bad = first_bad or (number, line)
            _check_windows(path, number, line)
        if first_bad and has_utf8:
            raise InputError(
                f"{path}:{first_bad[0]}: the line is not UTF-8, but line {number} or an earlier one"
                " is: save the whole file as UTF-8"
            )
    return "cp1252" if first_bad else "utf-8"


def _check_windows(path: Path, number: int, line: bytes) -> None:
    try:
        line.decode("cp1252")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}:{number}: byte {error.start + 1} of the line (0x{line[error.start]:02x}) is"
            " neither UTF-8 nor Windows-1252: save the file as UTF-8"
        ) from None


def _delimiter(header: str, is_known: Callable[[str], bool]) -> str:
    """Return the delimiter that gives the header most of the names that are known."""

    def names(delimiter: str) -> list[str]:
        return next(csv.reader([header], delimiter=delimiter), [])

    return max(_DELIMITERS, key=lambda each: (sum(map(is_known, names(each))), len(names(each))))


def _notices(path: Path, encoding: str, delimiter: str) -> list[str]:
    found = []
    if encoding == "cp1252":
        found.append(
            "the file is not UTF-8 and was read as Windows-1252: save it as UTF-8 if letters came"
            " out wrong"
        )
    usual = "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes] else ","
    if delimiter != usual:
        named = _NAMES.get(delimiter, quoted(delimiter))
        found.append(f"{named} was taken for the delimiter")
    return found


def _fault(error: csv.Error) -> str:
    if "end of data" in str(error):
        return (
            "a quotation mark is never closed: close it, or double one that belongs to a text, here"
            " or further down"
        )
    if "field larger" in str(error):
        return (
            f"a cell holds more than {_MAX_CELL_CHARACTERS:,} characters: a quotation mark may not"
            " be closed"
        )
    return f"cannot be read as CSV ({error}): double a quotation mark that belongs to a text"
