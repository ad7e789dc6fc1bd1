"""What a process keeps of the vectors that it read."""

from collections.abc import Iterator

import numpy as np

from pipeline.retrieval.kept_vectors import Block, KeptVectors

SIZE = 100


class Reader:
    """Gives blocks, and counts how often it was asked to."""

    def __init__(self, blocks: int) -> None:
        self.read = 0
        self._blocks = blocks

    def __call__(self) -> Iterator[Block]:
        self.read += 1
        for number in range(self._blocks):
            yield Block([str(number)], np.full((1, 25), number, np.float32), np.ones(1))


def keys(kept: KeptVectors, name: str, reader: Reader, most: int) -> list[str]:
    return [key for block in kept.blocks(name, reader, most) for key in block.keys]


def test_what_was_asked_for_last_is_kept_within_the_bound() -> None:
    kept, one, two, three = KeptVectors(), Reader(2), Reader(1), Reader(1)
    most = 3 * SIZE
    assert keys(kept, "one", one, most) == ["0", "1"]
    assert keys(kept, "two", two, most) == ["0"]
    assert keys(kept, "one", one, most) == ["0", "1"]
    assert keys(kept, "three", three, most) == ["0"]
    for name, reader in [("one", one), ("three", three), ("two", two)]:
        keys(kept, name, reader, most)
    assert (one.read, two.read, three.read) == (1, 2, 1)


def test_a_reading_that_breaks_off_is_not_kept() -> None:
    kept, reader = KeptVectors(), Reader(3)
    blocks = kept.blocks("one", reader, 100 * SIZE)
    next(blocks)
    blocks.close()
    assert keys(kept, "one", reader, 100 * SIZE) == ["0", "1", "2"]
    assert reader.read == 2
