"""What each provider is sent, and what is read of its answers."""

import base64
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeline.embedding.shapes import SHAPES
from pipeline.embedding.shapes.base import Asked, InputType, Reply
from pipeline.providers.replies import MalformedReplyError
from pipeline.types import FloatMatrix

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
TEXTS = ["first", "second"]


def read_reply(body: bytes, count: int, provider: str = "openai") -> Reply:
    return SHAPES[provider].read(body, count)


def sent(
    provider: str,
    input_type: InputType = InputType.QUERY,
    dimensions: int | None = None,
    *,
    truncate: bool = True,
) -> dict[str, Any]:
    return SHAPES[provider].body(TEXTS, Asked("m", dimensions, input_type, truncate))


def reply(items: list[dict[str, object]]) -> bytes:
    return json.dumps({"object": "list", "data": items}).encode()


def in_base64(vector: FloatMatrix) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


@given(arrays(np.float32, (3, 4), elements=FLOATS), st.permutations(range(3)))
def test_base64_and_lists_give_the_same_bits_in_the_order_of_the_index(
    vectors: FloatMatrix, order: list[int]
) -> None:
    packed = reply([{"index": i, "embedding": in_base64(vectors[i])} for i in order])
    listed = reply([{"index": i, "embedding": vectors[i].tolist()} for i in order])

    for body in (packed, listed):
        assert [v.tobytes() for v in read_reply(body, 3).vectors] == [v.tobytes() for v in vectors]


def test_numbers_beyond_float32_and_nulls_come_through_for_the_check_to_find() -> None:
    (vector,) = read_reply(reply([{"index": 0, "embedding": [1e300, None, 1.0]}]), 1).vectors

    assert vector[0] == math.inf
    assert math.isnan(vector[1])


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Welcome</html>",
        b"\xff",
        b"[]",
        b"{}",
        b'{"data": null}',
        b'{"data": [{"index": 0}]}',
        b'{"data": [{"embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": "%%%"}]}',
        b'{"data": [{"index": 0, "embedding": "AAA="}]}',
        b'{"data": [{"index": 0, "embedding": [[1.0]]}]}',
        b'{"data": [{"index": 0, "embedding": null}]}',
        b'{"data": [{"index": 0, "embedding": ["x"]}]}',
        b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b"]}]}",
        b'{"data": []}',
        b'{"data": [{"index": 1, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}',
    ],
)
def test_anything_but_one_vector_for_each_index_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedReplyError):
        read_reply(body, 1)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 7, "total_tokens": 9}, 9),
        ({"total_tokens": 0}, None),
        ({"total_tokens": -1}, None),
        ({"total_tokens": True}, None),
        ({"total_tokens": "9"}, None),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_usage_is_read_where_the_server_counts(usage: object, tokens: int | None) -> None:
    body = json.dumps({"data": [{"index": 0, "embedding": [1.0]}], "usage": usage}).encode()

    assert read_reply(body, 1).tokens == tokens


def test_openai_is_told_neither_of_input_types_nor_of_truncation() -> None:
    asked = {"model": "m", "input": TEXTS, "encoding_format": "base64"}

    assert sent("openai") == sent("openai", InputType.DOCUMENT, truncate=False) == asked
    assert sent("openai", dimensions=256) == asked | {"dimensions": 256}


@pytest.mark.parametrize("input_type", InputType)
def test_voyage_is_told_what_the_texts_are(input_type: InputType) -> None:
    asked = {"model": "m", "input": TEXTS, "input_type": input_type.value,
             "truncation": True, "encoding_format": "base64"}  # fmt: skip

    assert sent("voyage", input_type) == asked
    assert sent("voyage", input_type, 512) == asked | {"output_dimension": 512}
    assert sent("voyage", input_type, truncate=False) == asked | {"truncation": False}


@pytest.mark.parametrize(
    ("input_type", "named"),
    [(InputType.QUERY, "search_query"), (InputType.DOCUMENT, "search_document")],
)
def test_cohere_is_told_what_the_texts_are_in_its_own_words(
    input_type: InputType, named: str
) -> None:
    asked = {"model": "m", "texts": TEXTS, "input_type": named, "embedding_types": ["float"],
             "truncate": "END"}  # fmt: skip

    assert sent("cohere", input_type) == asked
    assert sent("cohere", input_type, 1024) == asked | {"output_dimension": 1024}
    assert sent("cohere", input_type, truncate=False) == asked | {"truncate": "NONE"}


def test_tei_serves_one_model_and_is_not_told_its_name() -> None:
    assert sent("tei") == {"inputs": TEXTS, "truncate": True}
    assert sent("tei", dimensions=128, truncate=False) == {
        "inputs": TEXTS, "truncate": False, "dimensions": 128,
    }  # fmt: skip


COHERE = {
    "id": "7",
    "embeddings": {"float": [[1.0, 2.0], [3.0, 4.0]]},
    "texts": TEXTS,
    "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 11}},
}


def test_cohere_s_answer_is_read_with_what_it_bills() -> None:
    read = read_reply(json.dumps(COHERE).encode(), 2, "cohere")

    assert [each.tolist() for each in read.vectors] == [[1.0, 2.0], [3.0, 4.0]]
    assert read.tokens == 11


@pytest.mark.parametrize(
    "meta", [None, {}, {"billed_units": {}}, {"billed_units": {"input_tokens": 0}}, [], "x"]
)
def test_cohere_may_bill_nothing(meta: object) -> None:
    assert read_reply(json.dumps(COHERE | {"meta": meta}).encode(), 2, "cohere").tokens is None


def test_tei_answers_with_a_bare_list() -> None:
    read = read_reply(b"[[1.0, 2.0], [3.0, 4.0]]", 2, "tei")

    assert [each.tolist() for each in read.vectors] == [[1.0, 2.0], [3.0, 4.0]]
    assert read.tokens is None


@pytest.mark.parametrize("provider", ["tei", "cohere"])
@pytest.mark.parametrize(
    "rows", ["{}", "null", "7", "[]", "[[1.0]]", "[[1.0], [2.0], [3.0]]", "[1.0, 2.0]",
             '[["x"], ["y"]]', "[[[1.0]], [[2.0]]]", '{"a": [1.0], "b": [2.0]}', '"ab"'],
)  # fmt: skip
def test_a_list_that_is_not_one_vector_a_text_is_malformed(provider: str, rows: str) -> None:
    body = rows if provider == "tei" else f'{{"embeddings": {{"float": {rows}}}}}'

    with pytest.raises(MalformedReplyError):
        read_reply(body.encode(), 2, provider)


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[]", b"{}", b'{"embeddings": []}'])
def test_a_reply_that_is_not_cohere_s_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedReplyError):
        read_reply(body, 1, "cohere")


def test_voyage_answers_as_openai_does() -> None:
    body = reply([{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}])

    assert [each.tolist() for each in read_reply(body, 2, "voyage").vectors] == [[1.0], [2.0]]
