"""How few of many judged texts a chunk is compared with, and that none is left out."""

import pytest

from pipeline.golden.passages import squash
from pipeline.golden.shared_windows import SharedWindows

HEADER = squash("Handbook of the company, chapter on returns and refunds, general terms of trade: ")
MANY = 200


def long_text(number: int) -> str:
    return "".join(f"w{number}x{place * place}" for place in range(20))


def short_text(number: int) -> str:
    return f"no{number:03}{'abcdefgh'[number % 8]}{number * 7919 % 1009}"


def candidates(texts: list[str], chunks: list[str]) -> list[set[int]]:
    windows = SharedWindows(["d"] * len(texts), texts)
    return [set(windows.of("d", chunk)) for chunk in chunks]


@pytest.mark.parametrize("header", ["", HEADER], ids=["plain", "header"])
def test_a_chunk_is_compared_with_its_own_text_and_few_others(header: str) -> None:
    texts = [header + long_text(number) for number in range(MANY)]

    found = candidates(texts, [f"{text}andmore" for text in texts])

    assert all(number in each for number, each in enumerate(found))
    assert sum(map(len, found)) < 4 * MANY


@pytest.mark.parametrize("around", ["{}", "{}x", HEADER + "{}" + HEADER])
def test_short_texts_are_looked_up_and_not_compared_with_every_chunk(around: str) -> None:
    texts = [short_text(number) for number in range(MANY)]

    found = candidates(texts, [around.format(text) for text in texts])

    assert all(number in each for number, each in enumerate(found))
    assert sum(map(len, found)) < 20 * MANY


def test_a_short_text_that_was_edited_is_compared_with_the_short_chunk() -> None:
    assert candidates(["price:10euramonth"], ["price:12euramonth", "open9to5"]) == [{0}, set()]


def test_texts_of_nothing_but_what_all_have_are_still_compared() -> None:
    texts = [f"{HEADER}{number}" for number in range(MANY)]

    found = candidates(texts, [f"{texts[7]}andmore"])

    assert 7 in found[0]
