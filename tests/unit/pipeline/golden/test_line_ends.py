"""Lines in all their endings."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.golden.line_ends import split_lines
from tests.unit.pipeline.golden.strategies import patiently


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one file that every example of a property overwrites."""
    return tmp_path_factory.mktemp("lines") / "lines.txt"


@patiently
@given(content=st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b" "])).map(b"".join))
def test_lines_are_those_that_python_finds_in_bytes(scratch: Path, content: bytes) -> None:
    scratch.write_bytes(content)
    expected = list(enumerate(content.splitlines(keepends=True), 1))
    assert list(split_lines(scratch)) == expected
