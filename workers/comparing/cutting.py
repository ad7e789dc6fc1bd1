"""Documents as a chunking cuts them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.chunking.evidence import Letters, Piece
from pipeline.chunking.splitting import Chunking, Span, split
from workers.comparing.documents import Document

PRESENT = "present"
"""The chunking that stands for production: the chunks that the corpus has."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The chunks of one chunking, by number: texts, owners, and the letters they are."""

    name: str
    texts: Sequence[str]
    tenants: Sequence[str | None]
    pieces: Sequence[Piece]

    def limit(self, k: int, budget: int) -> int:
        """Return how many chunks are k, and so many letters however short those chunks are."""
        lengths = np.cumsum(sorted(piece.length for piece in self.pieces))
        return max(k, int(np.searchsorted(lengths, budget)) + 1)


def cuts_of(
    chunkings: Sequence[Chunking], documents: Sequence[Document], letters: Sequence[Letters]
) -> Iterator[Cut]:
    """Yield the documents cut in each way; first as they are, where the corpus cut them."""
    if all(document.present is not None for document in documents):
        yield _cut(PRESENT, documents, letters, [each.present or () for each in documents])
    for chunking in chunkings:
        spans = [split(each.text, chunking) for each in documents]
        yield _cut(str(chunking), documents, letters, spans)


def _cut(
    name: str,
    documents: Sequence[Document],
    letters: Sequence[Letters],
    spans: Sequence[Sequence[Span]],
) -> Cut:
    texts, tenants, pieces = [], [], []
    for number, (document, of_document) in enumerate(zip(documents, spans, strict=True)):
        for span in of_document:
            texts.append(document.text[span.start : span.end])
            tenants.append(document.tenant)
            first, last = letters[number].at(span.start), letters[number].at(span.end)
            pieces.append(Piece(number, first, last))
    return Cut(name, texts, tenants, pieces)
