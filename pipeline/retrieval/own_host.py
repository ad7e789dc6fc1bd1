"""Where the owner's own Python lives in a process: its folder, its event loop, its objects."""

import asyncio
import weakref
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


class OwnLoop:
    """The event loop of the owner's coroutines, the same for all calls: their clients belong to it.

    A loop of its own for each call, as `asyncio.run` makes it, would close the connections that an
    HTTP client or a pool keeps, under the next call.
    """

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        weakref.finalize(self, loop.close)
        return loop

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Return what a coroutine returns; raises what it raises.

        What interrupts the loop itself, as a time limit, cancels the coroutine: nothing of it goes
        on beside the next one.
        """
        task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        finally:
            if not task.done():
                task.cancel()
                self._loop.run_until_complete(asyncio.wait([task]))


@dataclass(frozen=True, slots=True)
class PythonHost:
    """What a process keeps for the owner's code.

    It is imported from `folder`. Of what it raises, `never_caught` is none of its own, as a time
    limit. `made` are the objects of its classes, by path and settings: a model is loaded once,
    however many runs and strategies ask it.
    """

    folder: Path | None = None
    never_caught: tuple[type[Exception], ...] = ()
    loop: OwnLoop = field(default_factory=OwnLoop)
    made: dict[str, Any] = field(default_factory=dict)
