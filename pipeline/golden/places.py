"""What is said of many records in one line: how many there are, and where the first few stand."""

from collections.abc import Sequence
from dataclasses import dataclass, field

EXAMPLES = 5
"""Places that one message names."""


@dataclass
class Places:
    """Records with something to look at: how many, and where the first few are."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, place: str) -> None:
        """Count one, and keep it as an example while there are few."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(place)

    def shown(self, source: str) -> str:
        """Return the count and the places, those in `source` by their line alone."""
        return _counted(self.count, [_within(source, place) for place in self.examples])


@dataclass
class Repeats:
    """Records that meet another one: how many, and the places of the first few, as pairs."""

    count: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)

    def shown(self, source: str) -> str:
        """Return the count and the places, those in `source` by their line alone."""
        pairs = [
            f"{_within(source, place)} like {_within(source, other)}"
            for place, other in self.examples
        ]
        return _counted(self.count, pairs)


def _within(source: str, place: str) -> str:
    return place.removeprefix(f"{source}:")


def _counted(count: int, examples: Sequence[str]) -> str:
    more = ", ..." if count > len(examples) else ""
    return f"{count} (at {', '.join(examples)}{more})"
