"""Vectors in Redis or Valkey. It may lose everything, or be down: slower, and no other number."""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from pipeline.embedding.base import usable
from pipeline.errors import SettingsError
from pipeline.types import FloatMatrix

KEYS_PER_CALL = 256
PAUSE = 30.0
"""Seconds without a try after a call that failed: a frozen server costs its timeout once."""

_FLOAT_BYTES = 4
_SECONDS_A_DAY = 86_400

_log = structlog.get_logger(__name__)


def connect(url: str, timeout: float = 2.0) -> Redis:
    """Return a client that gives up after `timeout` seconds and retries nothing.

    The client's own default is ten retries of five seconds: too long for what may be skipped.
    Raises SettingsError when the URL is none. Connects at the first command.
    """
    try:
        return Redis.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise SettingsError(f"REDIS_URL cannot be used: {error}") from None


class Breaker:
    """Holds calls back for `pause` seconds after one that failed (a circuit breaker)."""

    def __init__(self, pause: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = pause
        self._clock = clock
        self._held_until: float | None = None

    @property
    def lets_through(self) -> bool:
        """True when a call may be tried."""
        return self._held_until is None or self._clock() >= self._held_until

    def succeeded(self) -> None:
        """Take note of a call that worked."""
        self._held_until = None

    def failed(self) -> bool:
        """Take note of a call that failed; return whether the one before had worked."""
        first = self._held_until is None
        self._held_until = self._clock() + self._pause
        return first


class VectorCache:
    """Vectors of one model, by text.

    Key: `rw:vec:1:<model>:<dimensions, or "default">:<SHA-256 of the text, hex>`. Value: the
    vector's little-endian float32 bytes. `days` is how long a value stays (0: for ever). Only
    faults of the server are absorbed: they are logged once an outage, and calls are then left out
    for `pause` seconds (reading and writing apart, as a full server can still be read).
    """

    def __init__(
        self, client: Redis, model: str, dimensions: int | None, days: int, *, pause: float = PAUSE
    ) -> None:
        self._client = client
        self._prefix = f"rw:vec:1:{model}:{dimensions or 'default'}:"
        self._dimensions = dimensions
        self._lifetime = days * _SECONDS_A_DAY or None
        self._reading = Breaker(pause)
        self._writing = Breaker(pause)

    @property
    def keeps(self) -> bool:
        """False while writing is held back after a fault."""
        return self._reading.lets_through and self._writing.lets_through

    def get_many(self, texts: Sequence[str]) -> tuple[FloatMatrix, NDArray[np.bool_]]:
        """Return vectors of shape (n, d), float32, and which of the n rows were found.

        Rows that were not found are NaN. A value of the wrong length, or that no search can use,
        counts as not found. Where the dimensions are the model's own, d is the length of the first
        value found (0: none).
        """
        values: list[bytes | None] = []
        for part in _parts(len(texts)):
            values += self._read(texts[part])
        return _decoded(values, self._dimensions)

    def has_many(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it has a value, whatever that is worth.

        While the cache does not answer, none has one.
        """
        there: list[bool] = []
        for part in _parts(len(texts)):
            pipe = self._client.pipeline(transaction=False)
            for text in texts[part]:
                pipe.exists(self._key(text))
            there += map(bool, self._ask(pipe.execute, len(texts[part])))
        return there

    def _read(self, texts: Sequence[str]) -> list[bytes | None]:
        keys = [self._key(text) for text in texts]
        found = self._ask(lambda: self._client.mget(keys), len(keys))
        return [value if isinstance(value, bytes) else None for value in found]

    def _ask(self, call: Callable[[], Sequence[Any]], n: int) -> Sequence[Any]:
        """Return what a reading call does; n times None while the server does not answer."""
        if not self._reading.lets_through:
            return [None] * n
        try:
            found = call()
        except RedisError as error:
            self._report("embedding_cache_not_readable", self._reading, error)
            return [None] * n
        self._reading.succeeded()
        return found

    def set_many(self, texts: Sequence[str], vectors: FloatMatrix) -> bool:
        """Store the vectors, shape (n, d), of the n texts; False: not all of them could be."""
        stored = np.ascontiguousarray(vectors, dtype="<f4")
        written = [self._write(texts[part], stored[part]) for part in _parts(len(texts))]
        return all(written)

    def _write(self, texts: Sequence[str], vectors: FloatMatrix) -> bool:
        if not self.keeps:
            return False
        try:
            with self._client.pipeline(transaction=False) as pipe:
                for text, vector in zip(texts, vectors, strict=True):
                    pipe.set(self._key(text), vector.tobytes(), ex=self._lifetime)
                pipe.execute()
        except RedisError as error:
            self._report("embedding_cache_not_writable", self._writing, error)
            return False
        self._writing.succeeded()
        return True

    def _key(self, text: str) -> str:
        return self._prefix + hashlib.sha256(text.encode()).hexdigest()

    def _report(self, event: str, breaker: Breaker, error: RedisError) -> None:
        if breaker.failed():
            _log.warning(event, error=type(error).__name__, reason=str(error))


def _parts(n: int) -> Iterator[slice]:
    for start in range(0, n, KEYS_PER_CALL):
        yield slice(start, start + KEYS_PER_CALL)


def _decoded(
    values: Sequence[bytes | None], dimensions: int | None
) -> tuple[FloatMatrix, NDArray[np.bool_]]:
    """Turn the values into a matrix with one copy."""
    if dimensions is None:
        dimensions = next((len(v) // _FLOAT_BYTES for v in values if v), 0)
    size = dimensions * _FLOAT_BYTES
    kept = [v if v and len(v) == size else None for v in values]
    found = np.array([v is not None for v in kept], dtype=np.bool_)
    packed = np.frombuffer(b"".join(v for v in kept if v is not None), dtype="<f4")
    vectors = np.full((len(values), dimensions), np.nan, dtype=np.float32)
    vectors[found] = packed.reshape(int(found.sum()), dimensions)
    found &= usable(vectors)
    vectors[~found] = np.nan
    return vectors, found
