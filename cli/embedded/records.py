"""Records of processes in a JSON file: which command uses the stack, which workers run.

The file is read and written under the start lock. It may be damaged or out of date after a
crash; what it says counts only where the process it names still lives.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from cli.embedded.processes import birth_of


@dataclass(frozen=True)
class Record:
    """A process, and a word about it: a worker's fingerprint, a command's line."""

    pid: int
    birth: str
    label: str

    @classmethod
    def of(cls, pid: int, label: str) -> Self:
        """Return the record of a process that runs."""
        return cls(pid, birth_of(pid) or "", label)

    @property
    def is_current(self) -> bool:
        """Whether the number still stands for the process that was recorded."""
        return birth_of(self.pid) == self.birth


def read(path: Path) -> list[Record]:
    """Return the records whose processes still exist; none where the file is damaged."""
    try:
        records = [Record(**entry) for entry in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError):
        return []
    return [record for record in records if record.is_current]


def write(path: Path, records: Iterable[Record]) -> None:
    """Write the file anew, whole or not at all; it is for this user alone."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    content = json.dumps([asdict(record) for record in records], indent=1)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
    draft.replace(path)


def add_self(path: Path, label: str) -> None:
    """Record this process."""
    write(path, [*read(path), Record.of(os.getpid(), label)])


def remove_self(path: Path) -> None:
    """Remove one record of this process: it may use the stack more than once."""
    records = read(path)
    own = next((record for record in records if record.pid == os.getpid()), None)
    if own is not None:
        records.remove(own)
        write(path, records)
