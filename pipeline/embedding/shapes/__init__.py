"""How each provider is asked over HTTP, and how it answers."""

from collections.abc import Mapping

from pipeline.embedding.shapes.base import Shape
from pipeline.embedding.shapes.cohere import CohereShape
from pipeline.embedding.shapes.openai import OpenAIShape
from pipeline.embedding.shapes.tei import TeiShape
from pipeline.embedding.shapes.voyage import VoyageShape

SHAPES: Mapping[str, Shape] = {
    "openai": OpenAIShape(),
    "tei": TeiShape(),
    "voyage": VoyageShape(),
    "cohere": CohereShape(),
}
"""By `embedding.provider`; the local model is asked over no wire."""
