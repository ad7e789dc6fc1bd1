import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wordllama
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.embedding import local
from pipeline.embedding.base import check
from pipeline.embedding.local import MAX_CHARACTERS, LocalEmbedder
from pipeline.errors import PermanentError, SettingsError

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), max_size=8)


def reference(dimensions: int = 256) -> Any:  # noqa: ANN401 - the library has no types
    """Return the library's own model of that many dimensions."""
    return wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True, trunc_dim=dimensions
    )


@pytest.mark.parametrize("dimensions", [64, 128, 256])
def test_the_vectors_are_the_library_s_own(dimensions: int) -> None:
    texts = ["How do I return an item?", "hello", "x " * 400, "Devolução em 30 dias"]

    vectors = LocalEmbedder(dimensions).embed(texts)

    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, reference(dimensions).embed(texts))


@given(TEXTS)
@settings(deadline=None)  # the first example loads the model
def test_a_vector_does_not_depend_on_the_texts_beside_it(texts: list[str]) -> None:
    embedder = LocalEmbedder()
    alone = [embedder.embed([text])[0] for text in texts]

    together = embedder.embed([*texts, "a longer text that the others are padded to " * 9])

    np.testing.assert_array_equal(together[:-1], np.reshape(alone, (len(texts), 256)))


def test_many_texts_of_mixed_lengths_keep_their_order() -> None:
    texts = [f"word{i} " * (1 + i * 37 % 101) for i in range(200)]

    vectors = LocalEmbedder().embed(texts)

    np.testing.assert_array_equal(vectors, reference().embed(texts))


def test_no_texts_give_no_rows() -> None:
    assert LocalEmbedder(64).embed([]).shape == (0, 64)


def test_without_dimensions_it_says_256() -> None:
    assert LocalEmbedder().dimensions == 256


def test_other_dimensions_are_refused_with_the_allowed_ones() -> None:
    with pytest.raises(SettingsError, match=r"embedding\.dimensions is 100: .* 64, 128 or 256"):
        LocalEmbedder(100)


def test_a_blank_text_becomes_a_failure_and_its_neighbours_do_not() -> None:
    embedder = LocalEmbedder()

    failures = check(embedder.embed(["", "delivery"]), ["q1", "q2"], embedder.model, 256)

    assert failures.keys() == {0}
    assert "wordllama-l2-supercat-256" in failures[0].reason
    assert "q1" in failures[0].reason


def test_only_the_first_characters_of_a_huge_text_are_read() -> None:
    embedder = LocalEmbedder()
    start = "ship " * (MAX_CHARACTERS // 5)

    vectors = embedder.embed([start, start + "refund " * 1000])

    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_missing_model_files_are_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(**_: object) -> None:
        raise FileNotFoundError("Weights file 'x' not found")

    monkeypatch.setattr(wordllama.WordLlama, "load", load)

    with pytest.raises(PermanentError, match="reinstall wordllama"):
        local._load.__wrapped__()


def test_the_root_logger_is_left_as_it_was() -> None:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)

    with local._root_logger_kept():
        root.addHandler(logging.NullHandler())
        root.setLevel(logging.DEBUG)

    assert (root.handlers, root.level) == before
