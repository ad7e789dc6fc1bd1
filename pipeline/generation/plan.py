"""What one `recallwatch golden generate` asked for, as its workers read it."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.generation.settings import GenerationSettings


class GenerationPlan(BaseModel):
    """What is stored with a generation: the settings as they were, and the command's options.

    `sample`, `multi_chunk`, `unanswerable`: requests of each kind. `categories`: their weights.
    `again`: also from chunks that the set was generated from. `activate`: what passes the filters
    needs no review. `search`: strategy -> what a run of it keeps of the settings. With that,
    `corpus`, `embedding`, `k` and `look_depth`, questions are checked against the corpus that they
    were written from, whatever the settings say by then.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    generation: GenerationSettings
    search: dict[str, dict[str, Any]]
    corpus: CorpusSettings
    embedding: EmbeddingSettings
    k: int
    look_depth: int
    prompt_version: str
    sample: int
    per_chunk: int = 1
    multi_chunk: int = 0
    unanswerable: int = 0
    categories: dict[str, int]
    seed: int
    tenant: str | None = None
    again: bool = False
    forbid_terms: bool = False
    activate: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls.model_validate(value)
