"""Files that are there whole or not at all: written beside their place and moved to it at the end.

What an older file held is lost only when the new one is complete.
"""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_files(*paths: Path) -> Iterator[list[BinaryIO]]:
    """Give a stream for each file, and put all in their places where the block ends without error.

    Else nothing is left of them, and what was there before stays. A link keeps pointing to its
    file, and a file keeps its permissions. Pipes and devices are written directly. Raises OSError.
    """
    parts: list[tuple[Path, Path]] = []
    try:
        with ExitStack() as stack:
            yield [stack.enter_context(_opened(path, parts)) for path in paths]
        for part, place in parts:
            part.replace(place)
    except BaseException:
        for part, _ in parts:
            part.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(folder: Path, *names: str) -> Iterator[list[BinaryIO]]:
    """Do the same for files below a folder; folders that had to be made go again, too."""
    made: list[Path] = []
    try:
        for each in (folder, *((folder / name).parent for name in names)):
            if not each.is_dir():
                each.mkdir()
                made.append(each)
        with whole_files(*(folder / name for name in names)) as streams:
            yield streams
    except BaseException:
        for each in reversed(made):
            with suppress(OSError):
                each.rmdir()
        raise


def _opened(path: Path, parts: list[tuple[Path, Path]]) -> BinaryIO:
    if _is_written_directly(path):
        # /dev/stdout may be a file that a shell appends to.
        return path.open("ab")
    place = path.resolve()
    part = place.with_name(f".recallwatch-{secrets.token_hex(8)}.part")
    try:
        stream = part.open("xb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    parts.append((part, place))
    if place.exists():
        shutil.copymode(place, part)
    return stream


def _is_written_directly(path: Path) -> bool:
    """Tell whether a path is no file to be replaced; a folder is none either, and fails to open."""
    named = path.absolute()
    device = named.is_relative_to("/dev") or named.is_relative_to("/proc")
    return device or (path.exists() and not path.is_file())
