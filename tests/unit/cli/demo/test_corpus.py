"""The demo's corpus against what the interpreter itself says of its documentation."""

import builtins
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.demo.corpus import (
    GROUP_CHARACTERS,
    ChunkRecord,
    _paragraph_groups,
    first_words,
    standard_library_chunks,
)

DIGEST = """
import hashlib, json
from cli.demo.corpus import standard_library_chunks
print(hashlib.sha256(json.dumps(list(standard_library_chunks())).encode()).hexdigest())
"""


@cache
def corpus() -> Sequence[ChunkRecord]:
    return tuple(standard_library_chunks())


def document_ids() -> set[str]:
    return {chunk["document_id"] for chunk in corpus()}


def body(chunk: ChunkRecord) -> str:
    return chunk["content"].partition("\n\n")[2]


def test_holds_five_thousand_chunks_or_more() -> None:
    assert len(corpus()) >= 5_000


def test_no_two_chunks_share_a_key() -> None:
    keys = {(chunk["document_id"], chunk["chunk_index"]) for chunk in corpus()}
    assert len(keys) == len(corpus())


def test_chunks_come_sorted_and_numbered_from_zero_in_each_document() -> None:
    documents = [
        (document_id, [chunk["chunk_index"] for chunk in chunks])
        for document_id, chunks in groupby(corpus(), key=itemgetter("document_id"))
    ]
    assert [name for name, _ in documents] == sorted(document_ids())
    assert all(indexes == list(range(len(indexes))) for _, indexes in documents)


def test_two_calls_give_the_same_chunks() -> None:
    assert tuple(standard_library_chunks()) == corpus()


def test_two_processes_with_different_hash_seeds_give_the_same_chunks() -> None:
    digests = {digest_in_a_process(PYTHONHASHSEED=seed) for seed in ("1", "2")}
    assert len(digests) == 1


def digest_in_a_process(**environment: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout


def test_no_content_names_a_memory_address_or_a_folder_of_this_machine() -> None:
    machine = re.compile(r" at 0x[0-9a-f]{6,}|" + re.escape(sys.prefix))
    assert [chunk for chunk in corpus() if machine.search(chunk["content"])] == []


def test_each_content_opens_with_its_name_and_says_something() -> None:
    for chunk in corpus():
        trail, name = chunk["content"].splitlines()[:2]
        assert trail.replace(" > ", ".") == chunk["document_id"]
        assert name.startswith(chunk["document_id"])
        assert body(chunk).strip()
        assert chunk["language"] == "en"


def test_the_chunks_of_a_document_are_its_whole_docstring() -> None:
    for document_id, chunks in groupby(corpus(), key=itemgetter("document_id")):
        words = [word for chunk in chunks for word in body(chunk).split()]
        assert words == docstring_at(document_id).split(), document_id


def docstring_at(document_id: str) -> str:
    """Return what `inspect` finds under a dotted name, the corpus having imported its modules."""
    root, *names = document_id.split(".")
    found: object = sys.modules[root] if root in sys.modules else getattr(builtins, root)
    raw = found
    for name in names:
        raw = inspect.getattr_static(found, name, None)
        found = getattr(found, name)
    # From 3.12 on, a class method written in C shows its docstring in its class only.
    return inspect.getdoc(found) or inspect.getdoc(raw) or ""


@pytest.mark.parametrize(
    "document_id",
    [
        "json",
        "open",
        "json.loads",
        "itertools.chain",
        "random.randint",
        "functools.lru_cache",
        "collections.OrderedDict.move_to_end",
        "datetime.timedelta.days",
        "argparse.ArgumentParser.add_argument",
        "socket.socket.recv",
    ],
)
def test_documents_go_by_the_name_a_programmer_types(document_id: str) -> None:
    assert document_id in document_ids()


@pytest.mark.parametrize(
    "alias",
    [
        "io.open",  # open
        "os.error",  # OSError
        "asyncio.TimeoutError",  # TimeoutError
        "random.Random.randint",  # random.randint
        "unittest.IsolatedAsyncioTestCase.assertEqual",  # unittest.TestCase.assertEqual
        "pathlib.PosixPath.name",  # pathlib.PurePath.name
        "socket.SocketType.recv",  # socket.socket.recv
    ],
)
def test_an_object_is_no_document_under_its_other_names(alias: str) -> None:
    assert alias not in document_ids()


def test_private_and_special_names_are_no_documents() -> None:
    assert [name for name in document_ids() if re.search(r"(^|\.)_", name)] == []


def test_signatures_stand_beside_the_name() -> None:
    content = next(c["content"] for c in corpus() if c["document_id"] == "itertools.pairwise")
    assert content.startswith("itertools > pairwise\nitertools.pairwise")
    content = next(c["content"] for c in corpus() if c["document_id"] == "shutil.disk_usage")
    assert content.splitlines()[1] == "shutil.disk_usage(path)"


@given(st.lists(st.text(alphabet="ab \n", max_size=1200), max_size=8).map("\n\n".join))
def test_paragraph_groups_keep_every_line_in_order_and_stay_short(text: str) -> None:
    text = inspect.cleandoc(text).strip()
    groups = list(_paragraph_groups(text))
    lines = [line for group in groups for line in group.splitlines() if line.strip()]
    assert lines == [line for line in text.splitlines() if line.strip()]
    longest = max(map(len, text.splitlines()), default=0)
    assert all(len(group) <= max(GROUP_CHARACTERS + 2, longest) for group in groups)


def test_first_words_are_cut_at_blanks_of_any_kind() -> None:
    assert first_words("json > loads\njson.loads(s)\n\nText", 4) == "json > loads json.loads(s)"
    assert first_words("one", 4) == "one"


def test_the_planted_defect_leaves_the_module_and_not_the_name() -> None:
    content = next(c["content"] for c in corpus() if c["document_id"] == "json.loads")
    assert first_words(content) == "json >"
