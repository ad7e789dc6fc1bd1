"""A generator for a loopback server of Anthropic's API."""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from pipeline.errors import RecallwatchError
from pipeline.generation.anthropic import ClaudeGenerator
from pipeline.generation.base import Ask, SourceChunk
from pipeline.generation.message_batches import ClaudeBatches
from pipeline.generation.settings import GenerationSettings
from tests.loopback.anthropic_server import AnthropicServer

KEY = "sk-ant-canary-0123456789"

WARRANTY = SourceChunk("terms:0", "The warranty lasts twenty-four months from the day of purchase.")
RETURNS = SourceChunk("terms:1", "Goods that were opened may be sent back within fourteen days.")
ASK = Ask([WARRANTY], ["factual", "procedural"], language="en")

Build = Callable[..., ClaudeGenerator]
BuildBatches = Callable[..., ClaudeBatches]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AnthropicServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with AnthropicServer() as anthropic_server:
        yield anthropic_server


def settings_for(server: AnthropicServer, **given: Any) -> GenerationSettings:  # noqa: ANN401 - of several types
    return GenerationSettings.model_validate({"base_url": server.url} | given)


@pytest.fixture
def build(server: AnthropicServer) -> Build:
    """Build a generator for the server; keywords are settings."""
    return lambda **given: ClaudeGenerator(settings_for(server, **given), SecretStr(KEY))


@pytest.fixture
def build_batches(server: AnthropicServer) -> BuildBatches:
    return lambda **given: ClaudeBatches(settings_for(server, **given), SecretStr(KEY))


def failing(call: Callable[[], object]) -> RecallwatchError:
    """Return the error that a call raises, after looking for the key in it."""
    with pytest.raises(RecallwatchError) as caught:
        call()
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    return caught.value
