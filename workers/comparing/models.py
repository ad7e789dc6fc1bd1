"""Which embedding models are compared: read from what a person wrote on the command line."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes import SHAPES
from pipeline.errors import UsageError
from pipeline.settings import Settings

CORPUS = "corpus"
"""The model that stands for production: the vectors that the corpus holds."""

PROVIDERS = ("local", *SHAPES)

_OF_THE_MODEL = {"price", "query_prefix", "document_prefix", "dimensions", "model"}
"""Settings that say something of one model; the others are of its server, or of us."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model by the name that it is shown under.

    `stored`: its vectors of chunks are those in the corpus, and only questions are embedded.
    """

    name: str
    embedding: EmbeddingSettings
    stored: bool = False


def models_of(settings: Settings, names: Sequence[str]) -> list[Model]:
    """Return the models to compare, the first of which is the baseline.

    A single one is held against what the corpus holds. Raises UsageError for a name that says
    nothing, or stands twice, and where there is nothing to compare.
    """
    wanted = [CORPUS, *names] if len(names) == 1 and names[0] != CORPUS else list(names)
    if len(wanted) < 2:  # noqa: PLR2004 - a comparison is of two
        raise UsageError(
            "nothing to compare: name a model, as --model openai:text-embedding-3-large"
        )
    twice = next((name for name in wanted if wanted.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--model {twice} is given twice")
    return [model_of(settings, name) for name in wanted]


def one_model(settings: Settings, name: str | None) -> Model:
    """Return the model to embed all chunks with; None: that of [embedding]. Raises UsageError."""
    if name is None:
        embedding = settings.embedding
        return Model(embedding.model or embedding.provider, embedding)
    if name == CORPUS:
        raise UsageError(f"--model {CORPUS}: other chunks have no vectors in the corpus")
    return model_of(settings, name)


def model_of(settings: Settings, name: str) -> Model:
    """Return one model: `corpus`, a name of [models], or provider:name[@dimensions].

    What `name` does not say is taken from [embedding] where that is of the same provider. Raises
    UsageError.
    """
    if name == CORPUS:
        return Model(name, settings.embedding, stored=True)
    if name in settings.models:
        return Model(name, settings.models[name])
    written, dimensions = _split_dimensions(name)
    provider, _, model = written.partition(":")
    if provider not in PROVIDERS:
        raise UsageError(_unknown(settings, name))
    values = _shared(settings.embedding, provider, model)
    values |= {"provider": provider, "model": model, "dimensions": dimensions}
    try:
        return Model(name, EmbeddingSettings.model_validate(values))
    except ValidationError as error:
        said = str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(
            f"--model {name}: {said}; or describe it in [models.NAME] of recallwatch.toml"
        ) from None


def _split_dimensions(name: str) -> tuple[str, int | None]:
    """Split `local@64`; an @ before anything but a number belongs to the model's name."""
    head, at, tail = name.rpartition("@")
    return (head, int(tail)) if at and head and tail.isdecimal() else (name, None)


def _shared(embedding: EmbeddingSettings, provider: str, model: str) -> dict[str, object]:
    """Return what a model of a provider has in common with the model of [embedding]."""
    if embedding.provider != provider:
        return {}
    values = embedding.model_dump(exclude_unset=True)
    if embedding.model == model:
        return values
    return {name: value for name, value in values.items() if name not in _OF_THE_MODEL}


def _unknown(settings: Settings, name: str) -> str:
    named = ", ".join(settings.models)
    return (
        f"--model {name}: write provider:name[@dimensions], as openai:text-embedding-3-large@256,"
        f" with a provider of {', '.join(PROVIDERS)}; or {CORPUS}; or a name of [models]"
        + (f" ({named})" if named else "")
    )
