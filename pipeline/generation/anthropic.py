"""The generator that asks Claude, by Anthropic's Messages API or a server that speaks it."""

from anthropic import AsyncAnthropic
from pydantic import SecretStr

from pipeline.generation.anthropic_calls import FAULTS, Caller, decoded
from pipeline.generation.anthropic_errors import AskRefusedError
from pipeline.generation.base import Answer, Ask, Usage
from pipeline.generation.replies import read_message
from pipeline.generation.requests import message_of
from pipeline.generation.settings import GenerationSettings


class ClaudeGenerator:
    """Asks with one forced, strict tool, and takes only what keeps to its form.

    Raises SettingsError when the key or the base URL cannot be used.
    """

    def __init__(self, settings: GenerationSettings, api_key: SecretStr | None) -> None:
        self._model = settings.model
        self._caller = Caller(settings, api_key)

    def ask(self, ask: Ask) -> Answer:
        """Send one request, once; raises what `Generator.ask` says."""

        async def send(client: AsyncAnthropic) -> bytes:
            reply = await client.messages.with_raw_response.create(**message_of(ask, self._model))
            return await reply.read()

        try:
            return read_message(decoded(self._caller.call(send)), ask)
        except FAULTS as error:
            ours = self._caller.faults.of(error)
        if isinstance(ours, AskRefusedError):
            return Answer((), Usage(0, 0), str(ours))
        raise ours
