"""The nearest vectors, against sums over whole numbers, which have no rounding."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.distances import Distance
from pipeline.retrieval.nearest import Nearest
from pipeline.types import FloatMatrix, Ranking

VECTOR = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
STORED = st.dictionaries(st.text("aB:é1", min_size=1, max_size=3), VECTOR, max_size=40)

Vector = Sequence[int]


def cosine_order(question: Vector, vector: Vector) -> Fraction:
    """Return what orders vectors as their cosines with the question do: its sign and its square."""
    dot = sum(a * b for a, b in zip(question, vector, strict=True))
    return Fraction(dot * abs(dot), sum(a * a for a in vector))


def matrix(vectors: Sequence[Vector]) -> FloatMatrix:
    return np.array(vectors, dtype=np.float32).reshape(-1, 3)


def nearest(
    questions: Sequence[Vector], stored: dict[str, Vector], limit: int, block: int
) -> list[Ranking]:
    """Offer the vectors in blocks, in the dictionary's order."""
    found = Nearest(matrix(questions), limit)
    keys = list(stored)
    for start in range(0, len(keys), block):
        some = keys[start : start + block]
        found.offer(some, matrix([stored[key] for key in some]))
    return found.rankings()


@given(
    questions=st.lists(VECTOR, min_size=1, max_size=4),
    stored=STORED,
    limit=st.integers(1, 8),
    block=st.integers(1, 15),
)
def test_order_and_ties_are_those_of_exact_arithmetic(
    questions: list[Vector], stored: dict[str, Vector], limit: int, block: int
) -> None:
    """Parallel vectors of any length tie; small whole numbers make many of them."""
    rankings = nearest(questions, stored, limit, block)

    for question, ranking in zip(questions, rankings, strict=True):
        order = {key: cosine_order(question, vector) for key, vector in stored.items()}
        expected = sorted(stored, key=lambda key: (-order[key], key.encode()))[:limit]
        assert ranking.keys == expected
        length = np.linalg.norm(question)
        cosines = [
            np.dot(question, stored[key]) / length / np.linalg.norm(stored[key]) for key in expected
        ]
        np.testing.assert_allclose(ranking.scores, cosines, atol=1e-12)


def test_a_vector_and_its_triple_tie_although_a_processor_rounds_them_apart() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.integers(1, 1000, size=(500, 3)).tolist()
    pairs = {f"z{n}": vector for n, vector in enumerate(vectors)}
    triples = {f"a{n}": [3 * x for x in vector] for n, vector in enumerate(vectors)}

    [ranking] = nearest([[1, 2, 3]], pairs | triples, 1000, 64)

    place = {key: rank for rank, key in enumerate(ranking.keys)}
    assert all(place[f"a{n}"] < place[f"z{n}"] for n in range(500))


@pytest.mark.parametrize("seed", range(5))
def test_neither_order_nor_blocks_change_a_bit_of_what_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((700, 96)).astype(np.float32)
    vectors[350:] = vectors[:350] * rng.choice([0.5, 2, 8], size=(350, 1)).astype(np.float32)
    vectors[:100] = vectors[0] + rng.standard_normal((100, 96)).astype(np.float32) * 1e-6
    questions = rng.standard_normal((9, 96)).astype(np.float32)
    questions[:4] += vectors[0]
    keys = [f"d{n}:0" for n in range(700)]

    def found(order: Sequence[int], block: int) -> list[Ranking]:
        search = Nearest(questions, 20)
        for start in range(0, 700, block):
            some = list(order[start : start + block])
            search.offer([keys[n] for n in some], vectors[some])
        return search.rankings()

    expected = found(range(700), 700)
    for block in (1, 13, 256, 699):
        assert found(rng.permutation(700).tolist(), block) == expected


def test_vectors_of_every_length_that_has_a_direction_are_compared() -> None:
    scales = {"small": 1e-18, "one": 1.0, "large": 1e18}
    search = Nearest(np.array([[1, 2, 2]], dtype=np.float32), 10)
    for name, scale in scales.items():
        search.offer([name, f"not {name}"], np.array([[1, 2, 2], [2, -1, 0]]) * np.float32(scale))

    [ranking] = search.rankings()

    assert ranking.keys[:3] == ["large", "one", "small"]
    np.testing.assert_allclose(ranking.scores, [1, 1, 1, 0, 0, 0], atol=1e-6)


def test_nothing_offered_and_nothing_asked_find_nothing() -> None:
    search = Nearest(np.ones((2, 3), dtype=np.float32), 5)
    search.offer([], np.empty((0, 3), dtype=np.float32))
    assert search.rankings() == [Ranking([], []), Ranking([], [])]

    nobody = Nearest(np.empty((0, 3), dtype=np.float32), 5)
    nobody.offer(["a:0"], np.ones((1, 3), dtype=np.float32))
    assert nobody.rankings() == []


def _ones(vector: Vector) -> int:
    return sum(value > 0 for value in vector)


def _shared(one: Vector, other: Vector) -> int:
    return sum(a > 0 and b > 0 for a, b in zip(one, other, strict=True))


def closeness(distance: Distance, one: Vector, other: Vector) -> Fraction:
    """Return what orders vectors as a distance does, in whole numbers and their quotients."""
    pairs = list(zip(one, other, strict=True))
    match distance:
        case "inner_product":
            return Fraction(sum(a * b for a, b in pairs))
        case "l2":
            return Fraction(-sum((a - b) ** 2 for a, b in pairs))
        case "l1":
            return Fraction(-sum(abs(a - b) for a, b in pairs))
        case "hamming":
            return Fraction(-sum((a > 0) != (b > 0) for a, b in pairs))
        case _:
            either = _ones(one) + _ones(other) - _shared(one, other)
            return Fraction(_shared(one, other), either) if either else Fraction(0)


@pytest.mark.parametrize("distance", ["inner_product", "l2", "l1", "hamming", "jaccard"])
@given(
    questions=st.lists(VECTOR, min_size=1, max_size=4),
    stored=STORED,
    limit=st.integers(1, 8),
    block=st.integers(1, 15),
)
def test_order_and_ties_of_the_other_distances_are_those_of_exact_arithmetic(
    distance: Distance,
    questions: list[Vector],
    stored: dict[str, Vector],
    limit: int,
    block: int,
) -> None:
    found = Nearest(matrix(questions), limit, distance)
    of_bits = distance in {"hamming", "jaccard"}
    keys = list(stored)
    for start in range(0, len(keys), block):
        some = keys[start : start + block]
        offered = matrix([stored[key] for key in some])
        found.offer(some, (offered > 0).astype(np.float32) if of_bits else offered)

    for question, ranking in zip(questions, found.rankings(), strict=True):
        near = {key: closeness(distance, question, vector) for key, vector in stored.items()}
        expected = sorted(stored, key=lambda key: (-near[key], key.encode()))[:limit]
        assert ranking.keys == expected
        scores = [float(near[key]) for key in expected]
        if distance == "l2":
            scores = [-((-score) ** 0.5) for score in scores]
        np.testing.assert_allclose(ranking.scores, scores, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("distance", ["inner_product", "l2"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_bound_of_a_float32_products_error_loses_no_neighbour(
    distance: Distance, scale: float
) -> None:
    """Many vectors that are almost equally near, far from the origin: products cancel out."""
    rng = np.random.default_rng(1)
    centre = rng.standard_normal(64)
    stored = (scale * (centre + 1e-5 * rng.standard_normal((3000, 64)))).astype(np.float32)
    question = (scale * centre[np.newaxis]).astype(np.float32)
    keys = [f"{number:04}" for number in range(3000)]
    found = Nearest(question, 20, distance)
    for start in range(0, 3000, 700):
        found.offer(keys[start : start + 700], stored[start : start + 700])

    one, other = stored.astype(np.float64), question[0].astype(np.float64)
    near = one @ other if distance == "inner_product" else -np.linalg.norm(one - other, axis=1)
    best = np.sort(near)[::-1][:20]
    np.testing.assert_allclose(found.rankings()[0].scores, best, rtol=1e-10)
