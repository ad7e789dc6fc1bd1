"""Vectors of the corpus that a process keeps, so that exact searches need not read them again."""

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.retrieval.similarities import Doubles
from pipeline.types import FloatMatrix


@dataclass(frozen=True, slots=True)
class Block:
    """Some chunks' keys, vectors, shape (number of keys, dimensions), and the vectors' lengths."""

    keys: Sequence[str]
    vectors: FloatMatrix
    lengths: Doubles


class KeptVectors:
    """The blocks of vectors that were read last, under names that say which they are."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, list[Block]] = OrderedDict()

    def blocks(
        self, name: Hashable, read: Callable[[], Iterator[Block]], most: int
    ) -> Generator[Block, None, None]:
        """Yield the blocks of a name, read now where they are not kept.

        Kept are those that were asked for last, of `most` bytes together.
        """
        if name in self._kept:
            self._kept.move_to_end(name)
            yield from self._kept[name]
            return
        blocks = []
        for block in read():
            blocks.append(block)
            yield block
        self._kept[name] = blocks
        while self._size() > most:
            self._kept.popitem(last=False)

    def _size(self) -> int:
        return sum(block.vectors.nbytes for blocks in self._kept.values() for block in blocks)
