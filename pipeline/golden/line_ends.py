"""Lines as any editor counts them: one may end in CR LF, LF, or CR alone, as on old Macs."""

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.lines import raw_lines

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def split_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number, from 1, and the bytes of every line, its end included.

    Raises InputError for whatever `pipeline.lines.raw_lines` does, which knows LF alone: the lines
    between two of them are in memory together, and no longer than it allows for one.
    """
    number = 0
    for _, stretch in raw_lines(path):
        for line in _split(stretch):
            number += 1
            yield number, line


def _split(stretch: bytes) -> list[bytes]:
    # Nearly all lines hold no CR, or one before their LF.
    end = len(stretch) - 2 if stretch.endswith(b"\r\n") else len(stretch)
    return [stretch] if stretch.find(b"\r", 0, end) < 0 else _LINE.findall(stretch)
