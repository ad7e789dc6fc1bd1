"""What a reader makes of files that a test writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.golden.formats import (
    Header,
    Notice,
    Read,
    ReadOptions,
    Record,
    Refused,
    reader,
)
from pipeline.types import Question


class Found:
    """The records of one source, apart by their kind."""

    def __init__(self, records: list[Record]) -> None:
        self.read = [record for record in records if isinstance(record, Read)]
        self.refused = [record for record in records if isinstance(record, Refused)]
        self.notices = [record.text for record in records if isinstance(record, Notice)]
        self.head = "".join(record.raw for record in records if isinstance(record, Header))

    @property
    def questions(self) -> list[Question]:
        """The questions, where nothing was refused."""
        assert not self.refused, self.refused
        return [record.question for record in self.read]

    @property
    def reasons(self) -> list[str]:
        """What was refused, as a person reads it."""
        return [f"{record.place}: {record.reason}" for record in self.refused]


def found_in(format_name: str, source: Path, options: ReadOptions | None = None) -> Found:
    return Found(list(reader(format_name)(str(source), options=options or ReadOptions())))


ReadTable = Callable[..., Found]


@pytest.fixture
def read_csv(tmp_path: Path) -> ReadTable:
    """Read a CSV file of these bytes, or of this text in UTF-8."""

    def read(
        content: bytes | str, name: str = "golden.csv", *, document_ids: bool = False
    ) -> Found:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return found_in("csv", path, ReadOptions(document_ids=document_ids))

    return read
