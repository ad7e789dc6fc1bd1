"""Which chunks a generation draws: each once, and none that says what another one says."""

from collections.abc import Callable
from itertools import chain

import numpy as np
import pytest

from pipeline.corpus.reading import Chunk
from pipeline.errors import CorpusError
from tests.integration.db.building import execute
from tests.integration.workers.conftest import TEXTS
from tests.integration.workers.generating import wanted, work
from tests.integration.workers.screened import add
from tests.integration.workers.working import DIMENSIONS, Bell
from workers.context import Context
from workers.generating import Prepared, prepare, start

Letters = Callable[[int], str]


def keys(prepared: Prepared) -> list[list[str]]:
    return [[chunk.key for chunk in ask.chunks] for ask in prepared.asks]


def vector(seed: int) -> np.ndarray:
    drawn: np.ndarray = np.random.default_rng(seed).standard_normal(DIMENSIONS)
    return drawn.astype(np.float32)


def test_no_chunk_is_asked_about_twice_alone_or_with_another(asker: Context) -> None:
    prepared = prepare(asker, wanted(asker, sample=2, unanswerable=1, multi_chunk=8))

    asked = list(chain.from_iterable(keys(prepared)))
    assert len(asked) == len(set(asked))
    assert {len(each) for each in keys(prepared)} == {1, 2}
    assert any("of 8 for --multi-chunk" in each for each in prepared.warnings)


def test_as_many_requests_of_several_chunks_as_were_wanted_are_made_where_they_can_be(
    asker: Context,
) -> None:
    prepared = prepare(asker, wanted(asker, sample=0, multi_chunk=2))

    assert [len(each) for each in keys(prepared)] == [2, 2]
    assert prepared.warnings == []


def test_a_neighbour_that_says_the_same_is_no_companion(asker: Context) -> None:
    clear = "DELETE FROM {}"
    execute(asker.database, clear.format(asker.corpus_table()))
    text = TEXTS["reset:0"]
    copies = [text, text.upper(), f"{text} Ok."]
    add(asker, *(Chunk("twin", n, each, None, "en", vector(n)) for n, each in enumerate(copies)))

    with pytest.raises(CorpusError, match="has a neighbour or a similar chunk"):
        prepare(asker, wanted(asker, sample=0, multi_chunk=1))


def test_what_says_the_same_as_a_chunk_of_before_is_not_drawn_either(
    asker: Context, bell: Bell
) -> None:
    first = prepare(asker, wanted(asker, sample=8))
    start(asker, first)
    work(asker, bell)
    add(asker, Chunk("copy", 0, TEXTS["reset:0"].upper(), None, "en", vector(1)))
    add(asker, Chunk("near", 0, "Something in other words, of its own.", None, "en", _of(asker)))
    with pytest.raises(CorpusError, match="says the same"):
        prepare(asker, wanted(asker))

    add(asker, Chunk("new", 0, "The colour of the case is a deep green.", None, "en", vector(2)))

    assert keys(prepare(asker, wanted(asker))) == [["new:0"]]
    assert len(prepare(asker, wanted(asker, sample=8, again=True)).asks) == 8


def _of(asker: Context) -> np.ndarray:
    """Return the vector of a chunk that the first generation asked for."""
    [row] = asker.corpus().execute(
        f"SELECT embedding::real[] FROM {asker.corpus_table()}"  # noqa: S608 - our own table
        " WHERE document_id = 'battery' AND chunk_index = 0"
    )
    return np.asarray(row[0], dtype=np.float32)


def test_forbidden_terms_are_told_by_the_corpus_not_by_the_sample(asker: Context) -> None:
    shared = "Every gadget of ours is shipped with cables."
    for n in range(20):
        text = f"{shared} Model{n} gadget{n} is number{n} of series{n}, with extras{n}."
        add(asker, Chunk(f"doc{n}", 0, text, "acme", "en", vector(n)))

    prepared = prepare(asker, wanted(asker, sample=1, tenant="acme", forbid_terms=True))

    [ask] = prepared.asks
    assert ask.forbidden
    assert not {"gadget", "shipped", "cables", "with", "every"} & set(ask.forbidden)


def test_a_companions_words_are_told_from_others_as_its_partners_are(asker: Context) -> None:
    prepared = prepare(asker, wanted(asker, sample=0, multi_chunk=2, forbid_terms=True))

    for ask in prepared.asks:
        for chunk in ask.chunks:
            assert {*ask.forbidden} & {*chunk.content.casefold().replace(".", "").split()}
    assert "after" not in chain.from_iterable(ask.forbidden for ask in prepared.asks)
