"""Where tests find the real collections and the published metric values.

They stand beside the repository, in `../shared`, and are no part of it: a test that reads them is
marked `@needs_shared` and skips where the folder is absent.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
COLLECTIONS = ("anthropic-docs-en", "cranfield-en", "eshop-en", "faquad-pt", "mtrag-un-en")

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="shared/ folder absent")


@dataclass(frozen=True)
class Collection:
    """The two files of a collection: the chunks to load and the golden set to import."""

    chunks: Path
    golden: Path


def collection(name: str) -> Collection:
    """Return the paths of one of `COLLECTIONS`; its chunks may be gzipped."""
    folder = SHARED / "data" / name
    plain = folder / "chunks.jsonl"
    chunks = plain if plain.exists() else folder / "chunks.jsonl.gz"
    return Collection(chunks=chunks, golden=folder / "golden.jsonl")


def conformance(*parts: str) -> Path:
    """Return the path of a file of published values, such as `("trec_eval", "qrels.test")`."""
    return SHARED.joinpath("conformance", *parts)
