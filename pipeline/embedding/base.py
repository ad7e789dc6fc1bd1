"""What every embedder offers, and what its vectors must pass before they are used."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import PermanentError, TransientError
from pipeline.types import Failure, FloatMatrix

Keep = Callable[[Sequence[str], FloatMatrix], None]
"""Takes texts and their vectors, shape (n, d), as they come: a later one's fault loses none."""


class Budget(Protocol):
    """What embedding may cost, in US dollars: asked before each request and told after it."""

    def reserve(self, cost: float) -> None:
        """Take note of a request that will cost so much at most.

        Raises PermanentError when there is no room for it.
        """

    def settle(self, reserved: float, cost: float) -> None:
        """Put a reservation right: the request cost less, or nothing. Raises nothing."""


class Free:
    """A budget that nothing is counted in."""

    def reserve(self, cost: float) -> None:
        """Let it pass."""

    def settle(self, reserved: float, cost: float) -> None:
        """Let it pass."""


FREE = Free()


class PaidInVainError(TransientError):
    """A fault that may pass, of a call whose other vectors the cache did not take.

    The next try pays for them again.
    """


class Embedder(Protocol):
    """Turns texts into vectors, many at a time."""

    @property
    def model(self) -> str:
        """The model's name, for records, cache keys and errors."""

    @property
    def dimensions(self) -> int | None:
        """The vector length asked for; None: whatever the model's own is."""

    def embed(
        self, texts: Sequence[str], *, keep: Keep | None = None, budget: Budget = FREE
    ) -> FloatMatrix:
        """Return vectors of shape (n, dimensions), float32, in the order of the n texts.

        `keep` is given all vectors too, a part as soon as it is there, also where another part
        fails; what it raises ends the call. Each request of a provider with a price asks `budget`.

        A text that gets no vector while the others do (blank, or too long for the model) has a row
        of NaN or of zeros, which `check` turns into its Failure. With no vector for any text the
        matrix may have no columns.

        Raises TransientError when the same call may work later, PermanentError when it will not.
        """


def usable(vectors: FloatMatrix) -> NDArray[np.bool_]:
    """Return, for each row, whether it is a vector that a search can use: finite and not zero."""
    return np.array(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1), dtype=np.bool_)


def check_shape(vectors: FloatMatrix, n: int, model: str, dimensions: int | None) -> None:
    """Raise PermanentError unless the shape of `vectors` is (n, dimensions).

    None stands for any number of dimensions; rows that no search can use may have any number.
    """
    if len(vectors) != n:
        raise PermanentError(f"{model} returned {len(vectors)} vectors for {n} texts")
    if dimensions not in {None, vectors.shape[1]} and usable(vectors).any():
        raise PermanentError(
            f"{model} returned vectors of {vectors.shape[1]} dimensions where {dimensions} were "
            "expected: check embedding.model and embedding.dimensions"
        )


def check(
    vectors: FloatMatrix, ids: Sequence[str], model: str, dimensions: int | None
) -> dict[int, Failure]:
    """Return position -> Failure for the rows that no search can use.

    `ids` names the n texts in the failures. Raises PermanentError as `check_shape` does.
    """
    check_shape(vectors, len(ids), model, dimensions)
    return {
        row: Failure(_what_is_wrong(vectors[row], ids[row], model))
        for row in np.flatnonzero(~usable(vectors)).tolist()
    }


def _what_is_wrong(vector: NDArray[np.float32], text_id: str, model: str) -> str:
    if np.isnan(vector).all():
        return f"{model} gave text {text_id} no vector: it is blank, or too long for the model"
    if not np.isfinite(vector).all():
        return f"{model} returned a vector with NaN or infinite values for text {text_id}"
    return f"{model} returned a vector of zero norm for text {text_id}: is the text blank?"
