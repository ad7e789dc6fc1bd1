"""From settings to a generator of questions."""

from pydantic import SecretStr

from pipeline.generation.base import BatchGenerator, Generator
from pipeline.generation.settings import GenerationSettings


def build_generator(settings: GenerationSettings, api_key: SecretStr | None) -> Generator:
    """Return the generator that the settings ask for. Opens no connection.

    Raises SettingsError when a setting or the key cannot be used. It carries nothing over a fork.
    """
    from pipeline.generation.anthropic import ClaudeGenerator  # noqa: PLC0415 - the SDK loads long

    return ClaudeGenerator(settings, api_key)


def build_batch_generator(
    settings: GenerationSettings, api_key: SecretStr | None
) -> BatchGenerator:
    """Return the generator that uses message batches; as `build_generator`."""
    from pipeline.generation.message_batches import ClaudeBatches  # noqa: PLC0415 - as above

    return ClaudeBatches(settings, api_key)
