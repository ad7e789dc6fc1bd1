"""Search by the owner's own Python: a function or a class, plain or async, one question or many."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from pipeline.errors import CorpusError, PermanentError, RecallwatchError
from pipeline.retrieval.own_code import in_words, load
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.own_results import UnreadableError, listed, ranking
from pipeline.retrieval.strategies.python import PythonStrategy
from pipeline.types import Failure, QueryBatch, Ranking

ONE = frozenset({"question", "k", "tenant", "language", "vector"})
"""What a function for one question may take."""

MANY = frozenset({"questions", "k", "tenants", "languages", "vectors"})
"""What a function for many questions may take: lists, and an array of shape (n, dimensions)."""

Answer = Ranking | Failure
Found = TypeVar("Found")


class PythonRetriever:
    """Calls `search` of the owner's class, or their function.

    One that takes `questions` is called once for all, else once a question. What it raises, or what
    it returns raises when it is read, is a Failure of the question; one call for all that raises is
    made again for each alone. An error of recallwatch's own kinds, and those in
    `PythonHost.never_caught`, concern the batch and are passed on.
    """

    def __init__(self, name: str, strategy: PythonStrategy, host: PythonHost) -> None:
        self._name = name
        self._strategy = strategy
        self._loop = host.loop
        self._never_caught: tuple[type[Exception], ...] = (RecallwatchError, *host.never_caught)
        self._own = load(strategy, host, "search", (ONE, MANY))
        self._check_arguments()

    @property
    def needs_vectors(self) -> bool:
        """Whether the settings say that it takes vectors."""
        return self._strategy.vectors

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Answer]:
        """See `Retriever.retrieve`.

        Raises CorpusError where a question has a tenant, and the function takes none.
        """
        self._check_tenants(batch)
        if "questions" in self._own.takes:
            return self._ask_all(batch, range(len(batch)), limit)
        return self._ask_each(batch, limit)

    def _ask_all(self, batch: QueryBatch, positions: Sequence[int], limit: int) -> list[Answer]:
        asked = self._many(batch, positions, limit)
        found = self._caught(lambda: listed(self._call(asked)))
        if isinstance(found, Failure):
            if len(positions) == 1:
                return [found]
            return [self._ask_all(batch, [position], limit)[0] for position in positions]
        if len(found) != len(positions):
            said = f"{self._strategy.path} returned no list of {len(positions)} lists of results"
            return [Failure(said)] * len(positions)
        return [self._caught(partial(_read, one, limit)) for one in found]

    def _ask_each(self, batch: QueryBatch, limit: int) -> list[Answer]:
        asked = [self._one(batch, position, limit) for position in range(len(batch))]
        if self._own.is_async:
            return self._loop.run(self._ask_together(asked, limit))
        return [self._caught(partial(self._answer, one, limit)) for one in asked]

    async def _ask_together(self, asked: Sequence[Mapping[str, Any]], limit: int) -> list[Answer]:
        slots = asyncio.Semaphore(self._strategy.concurrency)

        async def ask(one: Mapping[str, Any]) -> Answer:
            async with slots:
                try:
                    return ranking(await self._in_time(one), limit)
                except Exception as error:  # noqa: BLE001 - the owner's code may raise anything
                    return self._failure(error)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(one)) for one in asked]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _in_time(self, arguments: Mapping[str, Any]) -> object:
        timeout = self._strategy.timeout
        try:
            async with asyncio.timeout(timeout) as limit:
                return await self._own.call(**arguments)
        except TimeoutError as error:
            if not limit.expired():  # the owner's own, of something that it waited for
                raise
            said = f"{self._strategy.path} did not return within {timeout:g} s"
            raise _NoAnswerError(said) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise _NoAnswerError(f"{self._strategy.path} was cancelled") from error

    def _call(self, arguments: Mapping[str, Any]) -> object:
        if self._own.is_async:
            return self._loop.run(self._in_time(arguments))
        return self._own.call(**arguments)

    def _answer(self, arguments: Mapping[str, Any], limit: int) -> Ranking:
        return ranking(self._call(arguments), limit)

    def _caught(self, call: Callable[[], Found]) -> Found | Failure:
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the owner's code may raise anything
            return self._failure(error)

    def _failure(self, error: Exception) -> Failure:
        """Return what an error is to its question; raises it where it concerns the batch."""
        if isinstance(error, self._never_caught):
            raise error
        if isinstance(error, UnreadableError):
            return Failure(f"{self._strategy.path} returned {error}")
        return Failure(str(error) if isinstance(error, _NoAnswerError) else in_words(error))

    def _one(self, batch: QueryBatch, position: int, limit: int) -> dict[str, Any]:
        offered = {
            "question": batch.texts[position],
            "k": limit,
            "tenant": self._tenant(batch, position),
            "language": batch.languages[position],
            "vector": None if batch.vectors is None else batch.vectors[position],
        }
        return {name: offered[name] for name in self._own.takes & ONE}

    def _many(self, batch: QueryBatch, positions: Sequence[int], limit: int) -> dict[str, Any]:
        offered = {
            "questions": [batch.texts[i] for i in positions],
            "k": limit,
            "tenants": [self._tenant(batch, i) for i in positions],
            "languages": [batch.languages[i] for i in positions],
            "vectors": None if batch.vectors is None else batch.vectors[list(positions)],
        }
        return {name: offered[name] for name in self._own.takes & MANY}

    def _tenant(self, batch: QueryBatch, position: int) -> str | None:
        return None if self._strategy.tenant == "ignore" else batch.tenants[position]

    def _check_arguments(self) -> None:
        path, takes = self._strategy.path, self._own.takes
        vectors = {"vector", "vectors"} & takes
        if not ({"question", "questions"} | vectors) & takes:
            raise PermanentError(f"{path} takes neither question nor questions, nor vectors")
        if self._strategy.vectors and not vectors:
            raise PermanentError(f"{path} takes no vectors, but vectors = true asks for them")

    def _check_tenants(self, batch: QueryBatch) -> None:
        """Refuse to search for a tenant's question in all tenants' chunks."""
        if self._strategy.tenant == "ignore" or {"tenant", "tenants"} & self._own.takes:
            return
        tenant = next((tenant for tenant in batch.tenants if tenant is not None), None)
        if tenant is not None:
            raise CorpusError(
                f"a question has the tenant {tenant!r}, but {self._strategy.path} of strategy"
                f' {self._name} takes no tenant: filter by it, or set tenant = "ignore"'
            )


class _NoAnswerError(Exception):
    """A call took longer than the settings allow, or was cancelled by what it called."""


def _read(found: object, limit: int) -> Ranking:
    """Return the ranking of one question of many; raises what stands in its place."""
    if isinstance(found, Exception):
        raise found
    return ranking(found, limit)
