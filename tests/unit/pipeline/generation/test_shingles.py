import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.generation.shingles import SHINGLE, Shingles, shingles_of

LETTERS = "abcdefghijklmnopqrstuvwxyz    "


def text(seed: int, characters: int) -> str:
    return "".join(random.Random(seed).choices(LETTERS, k=characters))  # noqa: S311 - test data


def share(one: str, *others: str) -> float:
    """Return the largest share of `one` with any of the others."""
    kept = Shingles()
    for other in others:
        kept.add(shingles_of(other))
    return kept.largest_share(shingles_of(one))


def true_share(one: str, other: str) -> float:
    """Return the share of the shorter text's runs of SHINGLE characters, all of them."""
    runs = [
        {" ".join(each.split())[i : i + SHINGLE] for i in range(len(" ".join(each.split())))}
        for each in (one, other)
    ]
    return len(runs[0] & runs[1]) / min(map(len, runs))


@given(st.text(max_size=200))
def test_every_text_is_a_copy_of_itself(any_text: str) -> None:
    assert share(any_text, any_text) == 1


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.8, 1.0])
def test_the_sample_tells_the_share_that_all_shingles_tell(kept: float) -> None:
    errors = []
    for seed in range(20):
        one = text(seed, 2_000)
        other = one[: int(2_000 * kept)] + text(1_000 + seed, int(2_000 * (1 - kept)))
        errors.append(share(one, other) - true_share(one, other))

    assert np.abs(errors).max() < 0.15
    assert abs(np.mean(errors)) < 0.03


def test_the_largest_share_is_found_among_many_texts() -> None:
    many = [text(seed, 500) for seed in range(100)]

    assert [share(one, *many) for one in many] == [1.0] * 100
    assert share(text(777, 500), *many) < 0.1


def test_texts_that_all_share_a_heading_are_told_apart() -> None:
    heading = text(1, 100)

    assert share(heading + text(2, 900), *(heading + text(n, 900) for n in range(3, 50))) < 0.3


def test_a_text_takes_little_memory() -> None:
    sizes = [shingles_of(text(seed, 1_500)).nbytes for seed in range(50)]

    assert np.mean(sizes) < 2_000


def test_another_process_samples_the_same() -> None:
    code = "from pipeline.generation.shingles import shingles_of as s; print(s('x' * 9 + 'y' * 99))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == str(shingles_of("x" * 9 + "y" * 99))
