"""What a format could not hold of the questions it was given, counted, to be said."""

from collections import Counter
from collections.abc import Iterable


class Losses:
    """Counts questions that were left out, and fields that were left behind."""

    def __init__(self, format_name: str) -> None:
        self._format = format_name
        self._left_out: Counter[str] = Counter()
        self._fields: Counter[str] = Counter()

    def leave_out(self, reason: str) -> None:
        """Count a question that is not written at all."""
        self._left_out[reason] += 1

    def leave_behind(self, fields: Iterable[str]) -> None:
        """Count the fields of a question that is written without them."""
        self._fields.update(fields)

    def warnings(self) -> list[str]:
        """Say what was lost, one line each; empty where nothing was."""
        found = [
            f"{self._format}: {count:,} questions were left out: {reason}"
            for reason, count in self._left_out.items()
        ]
        if self._fields:
            fields = ", ".join(f"{name} ({count:,})" for name, count in self._fields.items())
            found.append(
                f"{self._format} has no place for these fields, which were left behind (questions):"
                f" {fields}"
            )
        return found
