"""How many chunks a retriever is asked for."""

from pipeline.retrieval.limits import needed_limit
from pipeline.types import Level


def test_chunks_are_asked_for_as_many_as_count() -> None:
    assert needed_limit(7, Level.CHUNK) == 7


def test_documents_need_five_times_as_many_chunks() -> None:
    assert needed_limit(30, Level.DOCUMENT) == 150
