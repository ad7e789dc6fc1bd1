import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pipeline.embedding.base import check, usable
from pipeline.errors import PermanentError
from pipeline.types import FloatMatrix

NUMBERS = st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e-45, 3e38, math.nan, math.inf, -math.inf])
MATRICES = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=NUMBERS)


def matrix(*rows: list[float]) -> FloatMatrix:
    return np.array(rows, dtype=np.float32)


@given(MATRICES)
def test_a_row_fails_exactly_when_it_holds_nan_or_infinity_or_only_zeros(
    vectors: FloatMatrix,
) -> None:
    ids = [f"q{i}" for i in range(len(vectors))]
    expected = {
        i
        for i, row in enumerate(vectors.tolist())
        if any(not math.isfinite(x) for x in row) or not any(row)
    }
    assert check(vectors, ids, "m", None).keys() == expected


def test_a_failure_names_the_model_the_text_and_the_fault() -> None:
    vectors = matrix([1, 2], [math.nan, 1], [math.inf, 1], [0, 0], [math.nan, math.nan])

    failures = check(vectors, ["a", "b", "c", "d", "e"], "some-model", 2)

    assert {i: failure.reason for i, failure in failures.items()} == {
        1: "some-model returned a vector with NaN or infinite values for text b",
        2: "some-model returned a vector with NaN or infinite values for text c",
        3: "some-model returned a vector of zero norm for text d: is the text blank?",
        4: "some-model gave text e no vector: it is blank, or too long for the model",
    }


def test_a_wrong_dimension_is_an_error_that_names_the_model_and_both_numbers() -> None:
    with pytest.raises(
        PermanentError, match=r"some-model .* of 2 dimensions where 3 were expected"
    ):
        check(matrix([1, 2]), ["a"], "some-model", 3)


def test_a_wrong_count_is_an_error_that_names_the_model_and_both_numbers() -> None:
    with pytest.raises(PermanentError, match=r"some-model returned 1 vectors for 2 texts"):
        check(matrix([1, 2]), ["a", "b"], "some-model", 2)


def test_texts_without_any_vector_are_failures_whatever_the_width() -> None:
    nothing = np.empty((2, 0), dtype=np.float32)

    assert check(nothing, ["a", "b"], "m", 1536).keys() == {0, 1}
    assert not usable(nothing).any()
