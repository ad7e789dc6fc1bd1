"""Workers that are killed in the middle of asking, in a process of their own."""

import os
import signal
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any

from pydantic import SecretStr

from db import generation_requests
from pipeline.settings import Settings
from workers.context import Context
from workers.generation import ask


def asking(settings: Settings, generation_id: int, *, dies_with_answer: bool) -> BaseProcess:
    """Start a worker that sends a generation's first request, and return it.

    `dies_with_answer`: it kills itself where it would store what came back.
    """
    urls = [each.get_secret_value() for each in (
        settings.database_url, settings.redis_url, settings.anthropic_api_key) if each]  # fmt: skip
    process = get_context("spawn").Process(
        target=_ask, args=(*urls, settings.model_dump(mode="json", include={"queue", "generation"}),
                           generation_id, dies_with_answer),
    )  # fmt: skip
    process.start()
    return process


def _ask(
    database_url: str, redis_url: str, key: str, rest: dict[str, Any], generation_id: int,
    dies_with_answer: bool,
) -> None:  # fmt: skip
    if dies_with_answer:
        generation_requests.store = _die  # type: ignore[assignment]  # it never returns
    settings = Settings(
        database_url=SecretStr(database_url), redis_url=SecretStr(redis_url),
        anthropic_api_key=SecretStr(key), **rest,
    )  # fmt: skip
    ask(Context(settings), generation_id, 1)


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
