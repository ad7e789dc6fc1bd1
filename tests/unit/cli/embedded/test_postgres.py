import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.embedded.postgres import dynamic_shared_memory


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("megabytes", "kind"), [(64, "mmap"), (511, "mmap"), (512, "posix"), (8000, "posix")]
)
def test_shared_memory_too_small_for_an_index_build_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, megabytes: int, kind: str
) -> None:
    total = megabytes * 1024 * 1024
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(total, 0, total))
    assert dynamic_shared_memory(tmp_path) == kind


def test_where_shared_memory_is_no_folder_its_size_is_no_concern(tmp_path: Path) -> None:
    assert dynamic_shared_memory(tmp_path / "absent") == "posix"
