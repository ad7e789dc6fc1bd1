import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.corpus.reading import Chunk, corpus_file, read_chunks
from pipeline.errors import InputError
from pipeline.lines import MAX_LINE_BYTES
from tests.shared import COLLECTIONS, collection, needs_shared


def _line(**changes: Any) -> str:  # noqa: ANN401 - any JSON value
    record = {"document_id": "guide", "chunk_index": 0, "content": "Text."} | changes
    return json.dumps({key: value for key, value in record.items() if value is not ...})


def _write(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "chunks.jsonl"
    path.write_bytes(b"\n".join(x if isinstance(x, bytes) else x.encode() for x in lines))
    return path


def _error(path: Path, dimensions: int | None = None) -> str:
    with pytest.raises(InputError) as caught:
        list(read_chunks(path, dimensions))
    return str(caught.value)


def test_a_line_gives_a_chunk(tmp_path: Path) -> None:
    path = _write(tmp_path, _line(tenant="acme", language="pt", page=3), "", _line(chunk_index=1))

    assert list(read_chunks(path)) == [
        Chunk("guide", 0, "Text.", tenant="acme", language="pt"),
        Chunk("guide", 1, "Text."),
    ]


def test_integer_ids_are_text_and_blank_labels_are_none(tmp_path: Path) -> None:
    path = _write(tmp_path, _line(document_id=42, tenant=7, language=""), _line(tenant=None))

    first, second = read_chunks(path)

    assert (first.key, first.tenant, first.language) == ("42:0", "7", None)
    assert second.tenant is None


def test_the_key_of_a_url_keeps_its_colons(tmp_path: Path) -> None:
    (chunk,) = read_chunks(_write(tmp_path, _line(document_id="https://a.example:80/b")))

    assert chunk.key == "https://a.example:80/b:0"


def test_blank_content_is_a_chunk(tmp_path: Path) -> None:
    (chunk,) = read_chunks(_write(tmp_path, _line(content=" \n")))

    assert chunk.content == " \n"


@pytest.mark.parametrize("name", ["embedding", "vector"])
def test_a_vector_is_read_under_either_name(tmp_path: Path, name: str) -> None:
    (chunk,) = read_chunks(_write(tmp_path, _line(**{name: [1, 0.5, -2]})), dimensions=3)

    assert chunk.embedding is not None
    assert chunk.embedding.dtype == np.float32
    assert chunk.embedding.tolist() == [1, 0.5, -2]


def test_gzip_is_told_by_its_first_bytes_whatever_the_name(tmp_path: Path) -> None:
    path = tmp_path / "chunks.jsonl"
    path.write_bytes(gzip.compress(_line().encode()))

    assert list(read_chunks(path)) == [Chunk("guide", 0, "Text.")]


def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path: Path) -> None:
    assert len(list(read_chunks(_write(tmp_path, b"\xef\xbb\xbf" + _line().encode())))) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"document_id": "a",', "not valid JSON"),
        ("[1]", "not a JSON object"),
        ("7", "not a JSON object"),
        (_line() + " x", "not valid JSON"),
        ('{"a":' + "[" * 10_000 + "]" * 10_000 + "}", "not valid JSON"),
        (_line(document_id=...), "document_id is missing"),
        (_line(chunk_index=...), "chunk_index is missing"),
        (_line(content=...), "content is missing"),
        (_line(document_id=" "), "document_id is blank"),
        (_line(document_id=True), "document_id must be a valid string"),
        (_line(document_id=1.5), "document_id must be a valid string"),
        (_line(document_id="x" * 2001), "document_id is longer than 2000 bytes"),
        (_line(chunk_index="0"), "chunk_index must be a valid integer"),
        (_line(chunk_index=1.0), "chunk_index must be a valid integer"),
        (_line(chunk_index=True), "chunk_index must be a valid integer"),
        (_line(chunk_index=-1), "chunk_index must be greater than or equal to 0"),
        (_line(chunk_index=2**31), "chunk_index must be less than or equal to 2147483647"),
        (_line(content=None), "content must be a valid string"),
        (_line(content="a\0b"), "content holds a NUL character"),
        (_line(content="\ud800"), "not valid JSON"),
        (_line(tenant=["acme"]), "tenant must be a valid string"),
        (_line(embedding="x"), "embedding must be a valid array"),
        (_line(embedding=[1, "2"]), "embedding.1 must be a valid number"),
        (_line(embedding=[1, True]), "embedding.1 must be a valid number"),
        (_line(embedding=[1, float("nan")]), "embedding.1 must be a finite number"),
        (_line(embedding=[float("inf"), 1]), "embedding.0 must be a finite number"),
        (_line(embedding=[1e300, 1]), "embedding holds a number too large"),
        (_line(embedding=[0, 0]), "embedding is empty or all zeros"),
        (_line(embedding=[1e-60, 0]), "embedding is empty or all zeros"),
        (_line(embedding=[]), "embedding is empty or all zeros"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_with_its_reason(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = _write(tmp_path, _line(document_id="fine"), "", line)

    message = _error(path)

    assert message.startswith(f"{path}:3: {reason}")
    assert "\n" not in message


def test_a_repeated_key_names_both_lines(tmp_path: Path) -> None:
    path = _write(tmp_path, _line(document_id=7), _line(), _line(document_id="7"))

    assert _error(path) == f"{path}:3: key '7:0' is on line 1 already"


def test_a_vector_of_another_length_is_an_error(tmp_path: Path) -> None:
    path = _write(tmp_path, _line(vector=[1, 2]), _line(chunk_index=1, vector=[1, 2, 3]))

    assert "embedding has 3 dimensions, expected 2" in _error(path)
    assert f"{path}:1: embedding has 2 dimensions, expected 4" in _error(path, dimensions=4)


def test_a_file_that_is_not_json_lines_is_told_what_it_is(tmp_path: Path) -> None:
    pretty = _write(tmp_path, "[", _line() + ",", _line(), "]")
    assert "expected one object a line" in _error(pretty)

    pointer = _write(tmp_path, "version https://git-lfs.github.com/spec/v1", "oid sha256:0")
    assert "git lfs pull" in _error(pointer)

    empty = _write(tmp_path, "", " ")
    assert "holds no chunks" in _error(empty)

    cut = _write(tmp_path, gzip.compress(_line().encode() * 100)[:-20])
    assert "gzip" in _error(cut)

    latin = _write(tmp_path, _line().encode().replace(b"Text", b"\xe9t\xe9"))
    assert "UTF-8" in _error(latin)

    assert "absent.jsonl" in _error(tmp_path / "absent.jsonl")
    assert str(tmp_path) in _error(tmp_path)


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(content=_TEXT, chunk_index=st.integers(0, 2**31 - 1))
def test_any_storable_text_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, content: str, chunk_index: int
) -> None:
    escaped = _line(document_id="a", chunk_index=chunk_index, content=content)
    plain = json.dumps(json.loads(escaped) | {"document_id": "b"}, ensure_ascii=False)
    path = _write(tmp_path_factory.mktemp("texts"), escaped, plain)

    assert list(read_chunks(path)) == [
        Chunk("a", chunk_index, content),
        Chunk("b", chunk_index, content),
    ]


@needs_shared
@pytest.mark.parametrize("name", COLLECTIONS)
def test_the_real_collections_are_read_in_full(name: str) -> None:
    path = collection(name).chunks
    stored = path.read_bytes()
    text = gzip.decompress(stored) if path.suffix == ".gz" else stored
    records = [json.loads(line) for line in text.splitlines()]

    chunks = list(read_chunks(path))

    assert [(c.document_id, c.chunk_index, c.content, c.tenant, c.language) for c in chunks] == [
        (r["document_id"], r["chunk_index"], r["content"], r.get("tenant"), r["language"])
        for r in records
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"a":' * 5000, "not valid JSON"),
        ('{"document_id": "a", "chunk_index": 0, "content": "\\ud800"}', "not valid JSON"),
        ('{"document_id": "a", "chunk_index": 0, "content": "a\\u0000b"}', "NUL character"),
        ('{"document_id": "a", "chunk_index": NaN, "content": "x"}', "chunk_index must be"),
        ('{"document_id": "a", "chunk_index": 1e400, "content": "x"}', "chunk_index must be"),
        ('{"document_id": ' + "9" * 5000 + ', "chunk_index": 0, "content": "x"}', "out of range"),
        ('{"document_id": "a", "chunk_index": 0, "content": "x", "vector": [1e39]}', "too large"),
        (
            json.dumps({"document_id": "a", "chunk_index": 0, "content": "é" * 2**19 + "é"}),
            "content is 1,048,578 bytes long; at most 1,048,576 are allowed",
        ),
        (
            _line(vector=[1] * 16001),
            "embedding has 16,001 dimensions; 16,000 at most",
        ),
    ],
    ids=range(9),
)  # fmt: skip
def test_a_hard_line_is_refused_in_words(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "chunks.jsonl"
    file.write_text(line)
    with pytest.raises(InputError) as caught:
        list(read_chunks(file))
    message = str(caught.value)
    assert message.startswith(f"{file}:1: ")
    assert said in message
    assert len(message.splitlines()) == 1
    assert len(message) < 400


FIELDS = st.sampled_from(
    ["document_id", "chunk_index", "content", "tenant", "language", "embedding", "vector"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3),
    max_leaves=6,
)
NEARLY_CHUNKS = st.dictionaries(FIELDS | st.text(max_size=5), VALUES, max_size=6).map(
    lambda fields: {"document_id": "a", "chunk_index": 0, "content": "x"} | fields
)
ANY_LINES = st.binary(max_size=40) | (VALUES | NEARLY_CHUNKS).map(json.dumps).map(str.encode)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(ANY_LINES, max_size=4), packed=st.booleans(), cut=st.integers(0, 200))
def test_any_file_gives_chunks_or_a_refusal_in_one_line(
    tmp_path: Path, lines: list[bytes], cut: int, *, packed: bool
) -> None:
    content = b"\n".join(lines)
    stored = gzip.compress(content, mtime=0) if packed else content
    file = tmp_path / "chunks.jsonl"
    file.write_bytes(stored[: len(stored) - cut] if cut < len(stored) else stored)
    try:
        found = list(read_chunks(file))
    except InputError as error:
        message = str(error)
        assert len(message.splitlines()) == 1
    else:
        assert found
        assert len({chunk.key for chunk in found}) == len(found)


def test_a_bomb_of_one_line_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "bomb.gz"
    with gzip.open(file, "wb", compresslevel=9) as stream:
        for _ in range(300):
            stream.write(b" " * 2**20)
    tracemalloc.start()
    with pytest.raises(InputError, match="longer than 16,777,216 bytes"):
        list(read_chunks(file))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4 * MAX_LINE_BYTES


def test_a_line_of_beir_is_a_document_of_one_chunk(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        '{"_id": "MED-10", "title": "Statins", "text": "Recent studies.", "metadata": {"url": ""}}',
        '{"_id": 42, "title": "", "text": "Without a title."}',
        '{"text": "As exported.", "_id": "guide:3"}',
    )

    assert list(read_chunks(path)) == [
        Chunk("MED-10", 0, "Statins\nRecent studies."),
        Chunk("42", 0, "Without a title."),
        Chunk("guide", 3, "As exported."),
    ]


@pytest.mark.parametrize(("line", "reason"), [
    ('{"_id": "a"}', "text is missing"),
    ('{"_id": "", "text": "b"}', "_id is blank"),
    ('{"_id": null, "text": "b"}', "_id must be a valid string"),
    ('{"_id": "a:99999999999", "text": "b"}', "_id ends in a chunk index above 2,147,483,647"),
])  # fmt: skip
def test_a_line_of_beir_that_cannot_be_used_is_refused(
    tmp_path: Path, line: str, reason: str
) -> None:
    assert _error(_write(tmp_path, line)) == f"{tmp_path / 'chunks.jsonl'}:1: {reason}"


def test_an_id_of_beir_is_a_document_where_a_person_says_so(tmp_path: Path) -> None:
    path = _write(tmp_path, '{"_id": "isbn:451450523", "text": "b"}')

    assert list(read_chunks(path, document_ids=True)) == [Chunk("isbn:451450523", 0, "b")]


def test_our_own_line_may_speak_of_beirs_names(tmp_path: Path) -> None:
    [chunk] = read_chunks(_write(tmp_path, _line(content='{"_id": "x"}', _id="ignored")))

    assert chunk.content == '{"_id": "x"}'


def test_the_corpus_of_a_beir_folder_is_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder without corpus\.jsonl"):
        corpus_file(tmp_path)
    packed = tmp_path / "corpus.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"_id": "a", "text": "b"}\n'))

    assert list(read_chunks(corpus_file(tmp_path))) == [Chunk("a", 0, "b")]
    assert corpus_file(packed) == packed
