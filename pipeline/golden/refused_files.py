"""The lines that an import skipped, in a file that can be corrected and imported, and why beside.

golden.jsonl             what was imported
golden.refused.jsonl     the lines of it that were refused, as they stood there
golden.refused.jsonl.txt a line for each of these: place and reason
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pipeline.errors import InputError
from pipeline.golden.formats import Refused, readable


@dataclass(frozen=True, slots=True)
class RefusedFiles:
    """Where refused lines and their reasons go."""

    lines: Path
    reasons: Path


def beside(source: Path, *, suffix: str | None = None) -> RefusedFiles:
    """Return the files beside a source, by its name, plain even where it is gzipped.

    `suffix` is that of the refused lines where they are not written as the source was.
    """
    if source.name in {"", ".."}:
        source = source.resolve()
    name = (source.name or "questions").removesuffix(".gz")
    own_suffix = Path(name).suffix
    stem = f"{name.removesuffix(own_suffix)}.refused"
    return named(source.parent / f"{stem}{suffix or own_suffix}")


def named(lines: Path) -> RefusedFiles:
    """Return the file that a person names, and one for the reasons beside it."""
    with readable(lines):
        if lines.is_dir() or not lines.name:
            raise InputError(f"{lines}: is a folder: --refused names a file")
    return RefusedFiles(lines, lines.with_name(f"{lines.name}.txt"))


def refuse_overwriting(files: RefusedFiles) -> None:
    """Raise InputError where one of the files is there: somebody may have corrected its lines."""
    for path in (files.lines, files.reasons):
        with readable(path):
            if path.exists():
                raise InputError(
                    f"{path}: is there already, perhaps from an earlier import: import it, move it,"
                    " or name another file with --refused"
                )


@contextmanager
def written(files: RefusedFiles, header: str, refused: Iterable[Refused]) -> Iterator[None]:
    """Write both files, and take them away again where the block under it raises.

    Raises InputError when they cannot be written, or are there.
    """
    ours: list[Path] = []
    try:
        _write(files, header, refused, ours)
        yield
    except BaseException:
        for path in ours:
            with suppress(OSError):
                path.unlink()
        raise


def _write(files: RefusedFiles, header: str, refused: Iterable[Refused], ours: list[Path]) -> None:
    try:
        with _opened(files.lines, ours) as lines, _opened(files.reasons, ours) as reasons:
            lines.write(_ended(header))
            for each in refused:
                lines.write(_ended(each.raw))
                reasons.write(f"{each.place}: {each.reason}\n")
    except OSError as error:
        where = error.filename or files.lines
        raise InputError(
            f"{where}: cannot be written: {error.strerror or error}: name another file with "
            "--refused"
        ) from None


def _opened(path: Path, ours: list[Path]) -> TextIO:
    stream = path.open("x", encoding="utf-8", errors="surrogateescape", newline="")
    ours.append(path)
    return stream


def _ended(line: str) -> str:
    return line if not line or line.endswith("\n") else f"{line}\n"
