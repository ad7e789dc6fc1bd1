"""Search by the owner's own Python: a function or a class, plain or async, one question or many."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.errors import CorpusError, PermanentError, RecallwatchError
from pipeline.retrieval.own_code import OwnFunction, in_words, load
from pipeline.retrieval.own_results import UnreadableError, ranking
from pipeline.retrieval.strategies.python import PythonStrategy
from pipeline.types import Failure, QueryBatch, Ranking

ONE = frozenset({"question", "k", "tenant", "language", "vector"})
"""What a function for one question may take."""

MANY = frozenset({"questions", "k", "tenants", "languages", "vectors"})
"""What a function for many questions may take: lists, and an array of shape (n, dimensions)."""

Answer = Ranking | Failure


class PythonRetriever:
    """Calls `search` of the owner's class, or their function.

    One that takes `questions` is called once for all, else once a question. What it raises is a
    Failure of the question; one call for all that raises is made again for each alone. An error of
    recallwatch's own kinds, and those in `never_caught`, concern the batch and are passed on.
    """

    def __init__(
        self,
        name: str,
        strategy: PythonStrategy,
        folder: Path | None,
        never_caught: tuple[type[Exception], ...] = (),
    ) -> None:
        self._name = name
        self._strategy = strategy
        self._never_caught: tuple[type[Exception], ...] = (RecallwatchError, *never_caught)
        self._own = load(strategy, folder, "search", (ONE, MANY))
        self._check_arguments(self._own)

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
        found = self._caught(lambda: self._call(self._many(batch, positions, limit)))
        if not isinstance(found, Failure):
            return self._answers(found, len(positions), limit)
        if len(positions) == 1:
            return [found]
        return [self._ask_all(batch, [position], limit)[0] for position in positions]

    def _answers(self, found: object, questions: int, limit: int) -> list[Answer]:
        each = list(found) if isinstance(found, Iterable) else []
        if len(each) != questions:
            said = f"{self._strategy.path} returned no list of {questions} lists of results"
            return [Failure(said)] * questions
        return [
            Failure(in_words(one)) if isinstance(one, Exception) else self._read(one, limit)
            for one in each
        ]

    def _ask_each(self, batch: QueryBatch, limit: int) -> list[Answer]:
        asked = [self._one(batch, position, limit) for position in range(len(batch))]
        if self._own.is_async:
            return asyncio.run(self._ask_together(asked, limit))
        return [self._read(self._caught(partial(self._call, one)), limit) for one in asked]

    async def _ask_together(self, asked: Sequence[Mapping[str, Any]], limit: int) -> list[Answer]:
        slots = asyncio.Semaphore(self._strategy.concurrency)

        async def ask(one: Mapping[str, Any]) -> object:
            async with slots:
                try:
                    return await self._in_time(one)
                except self._never_caught:
                    raise
                except Exception as error:  # noqa: BLE001 - the owner's code may raise anything
                    return Failure(in_words(error))

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(one)) for one in asked]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [self._read(task.result(), limit) for task in tasks]

    async def _in_time(self, arguments: Mapping[str, Any]) -> object:
        timeout = self._strategy.timeout
        try:
            async with asyncio.timeout(timeout):
                return await self._own.call(**arguments)
        except TimeoutError:
            return Failure(f"{self._strategy.path} did not return within {timeout:g} s")

    def _call(self, arguments: Mapping[str, Any]) -> object:
        if self._own.is_async:
            return asyncio.run(self._in_time(arguments))
        return self._own.call(**arguments)

    def _caught(self, call: Callable[[], object]) -> object:
        try:
            return call()
        except self._never_caught:
            raise
        except Exception as error:  # noqa: BLE001 - the owner's code may raise anything
            return Failure(in_words(error))

    def _read(self, found: object, limit: int) -> Answer:
        if isinstance(found, Failure):
            return found
        try:
            return ranking(found, limit)
        except UnreadableError as error:
            return Failure(f"{self._strategy.path} returned {error}")

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

    def _check_arguments(self, own: OwnFunction) -> None:
        path = self._strategy.path
        vectors = {"vector", "vectors"} & own.takes
        if not ({"question", "questions"} | vectors) & own.takes:
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
