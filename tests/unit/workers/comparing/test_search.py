import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import CorpusError
from pipeline.types import Failure, FloatMatrix, Ranking
from workers.comparing.search import NO_VECTOR, TenantSearch


def random(n: int, dimensions: int = 4, seed: int = 0) -> FloatMatrix:
    return np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)


def brute_force(
    question: FloatMatrix, tenant: str | None, tenants: list[str | None], chunks: FloatMatrix
) -> list[str]:
    """Return the keys by falling cosine, in double precision, of the chunks that may answer."""
    wide, asked = chunks.astype(float), question.astype(float)
    cosines = wide @ asked / np.linalg.norm(wide, axis=1) / np.linalg.norm(asked)
    allowed = [n for n in range(len(chunks)) if tenant is None or tenants[n] == tenant]
    return [f"{n:03}" for n in sorted(allowed, key=lambda n: (-cosines[n], n))]


@given(st.integers(1, 4), st.integers(0, 30), st.integers(1, 9), st.integers(1, 8))
def test_each_tenant_s_questions_find_its_own_nearest_chunks_whatever_the_blocks(
    questions: int, chunks: int, block: int, limit: int
) -> None:
    asked, offered = random(questions, seed=1), random(chunks, seed=2)
    whose: list[str | None] = [None, "a", "b"]
    asking = [whose[n % 3] for n in range(questions)]
    owners = [whose[n % 3] for n in range(chunks)]
    search = TenantSearch(asked, asking, limit)
    for start in range(0, chunks, block):
        part = range(chunks)[start : start + block]
        search.offer([f"{n:03}" for n in part], [owners[n] for n in part], offered[part])

    for n, found in enumerate(search.rankings()):
        assert isinstance(found, Ranking)
        assert list(found.keys) == brute_force(asked[n], asking[n], owners, offered)[:limit]


def test_a_question_without_a_usable_vector_is_a_failure_and_no_miss() -> None:
    asked = np.array([[1, 0], [np.nan, np.nan], [0, 0]], np.float32)
    search = TenantSearch(asked, [None, None, None], 1)
    search.offer(["k"], [None], np.array([[1, 1]], np.float32))

    first, *others = search.rankings()
    assert isinstance(first, Ranking)
    assert others == [NO_VECTOR, NO_VECTOR]
    assert isinstance(NO_VECTOR, Failure)


def test_chunks_without_a_usable_vector_are_counted_and_never_found() -> None:
    search = TenantSearch(random(1), [None], 5)
    vectors = random(3)
    vectors[1] = np.nan

    assert search.offer(["a", "b", "c"], [None] * 3, vectors) == 1
    (found,) = search.rankings()
    assert isinstance(found, Ranking)
    assert set(found.keys) == {"a", "c"}


def test_a_block_without_any_vector_is_passed_over() -> None:
    search = TenantSearch(random(1), [None], 5)

    assert search.offer(["a"], [None], np.full((1, 0), np.nan, np.float32)) == 1


def test_vectors_of_another_length_are_another_model_s() -> None:
    search = TenantSearch(random(1, 4), [None], 5)

    with pytest.raises(CorpusError, match=r"have 8 dimensions, and the questions' 4"):
        search.offer(["a"], [None], random(1, 8))
