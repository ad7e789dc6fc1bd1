import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
import pytest

from pipeline.corpus import loading
from pipeline.corpus.loading import LoadReport, load
from pipeline.corpus.reading import Chunk
from pipeline.errors import InputError, PermanentError, TransientError
from pipeline.types import Failure, FloatMatrix
from tests.integration.pipeline.corpus.conftest import CHUNKS, FakeModel, load_all, rows

Conn = psycopg.Connection[Any]


def _stored(conn: Conn) -> dict[str, list[float] | None]:
    """Return content -> vector."""
    return {
        content: None if vector is None else vector.to_list()
        for content, vector in rows(conn, b"content, embedding")
    }


def test_a_first_load_stores_every_column(conn: Conn, model: FakeModel) -> None:
    report = load_all(conn, CHUNKS, model)

    assert report == LoadReport(
        inserted=4,
        updated=0,
        unchanged=0,
        embedded=3,
        without_embedding=1,
        total=4,
        warnings=(),
    )
    assert rows(
        conn,
        b"document_id, chunk_index, content, tenant, language, text_config::text, embedding_model",
    ) == [
        ("a", 0, "Blue whales sing.", "acme", "en", "english", "fake"),
        ("a", 1, "As baleias cantam.", "acme", "pt-BR", "portuguese", "fake"),
        ("d", 0, " \n", None, None, "simple", None),
        ("https://b.example:80/c", 0, "Whales.", None, "xx", "simple", "fake"),
    ]


def test_each_chunk_gets_the_vector_of_its_own_content(conn: Conn, model: FakeModel) -> None:
    load_all(conn, CHUNKS, model)

    expected = {chunk.content: model.vector(chunk.content).tolist() for chunk in CHUNKS[:3]}
    assert _stored(conn) == expected | {" \n": None}


def test_texts_are_stemmed_in_their_language(conn: Conn, model: FakeModel) -> None:
    load_all(conn, CHUNKS, model)

    assert rows(conn, b"text_search @@ to_tsquery('english', 'whale & song | whale & sings')") == [
        (True,),
        (False,),
        (False,),
        (False,),
    ]
    assert rows(conn, b"text_search @@ to_tsquery('portuguese', 'baleia & cantar')")[1] == (True,)


def test_a_second_load_of_the_same_file_writes_and_embeds_nothing(
    conn: Conn, model: FakeModel
) -> None:
    load_all(conn, CHUNKS, model)
    before = rows(conn, b"xmin, ctid, updated_at")

    report = load_all(conn, CHUNKS, model)

    assert (report.inserted, report.updated, report.unchanged) == (0, 0, 4)
    assert (report.embedded, report.without_embedding, report.total) == (0, 1, 4)
    assert model.embedded == []
    assert rows(conn, b"xmin, ctid, updated_at") == before


def test_only_what_changed_is_embedded_again(conn: Conn, model: FakeModel) -> None:
    load_all(conn, CHUNKS, model)

    changed = [
        *CHUNKS[:1],
        dataclasses.replace(CHUNKS[1], content="Novo texto."),
        Chunk("e", 0, "New."),
    ]
    report = load_all(conn, changed, model)

    assert (report.inserted, report.updated, report.unchanged) == (1, 1, 1)
    assert model.embedded == ["Novo texto.", "New."]
    assert report.total == 5
    assert _stored(conn)["Novo texto."] == model.vector("Novo texto.").tolist()
    assert "As baleias cantam." not in _stored(conn)


@pytest.mark.parametrize("change", [{"tenant": "zeta"}, {"tenant": None}, {"language": "es"}])
def test_a_changed_label_is_stored_without_embedding(
    conn: Conn, model: FakeModel, change: dict[str, Any]
) -> None:
    load_all(conn, CHUNKS, model)
    before = _stored(conn)

    report = load_all(conn, [dataclasses.replace(CHUNKS[0], **change), *CHUNKS[1:]], model)

    assert (report.updated, report.unchanged, report.embedded) == (1, 3, 0)
    assert model.embedded == []
    assert _stored(conn) == before
    (stored,) = rows(conn, b"tenant, language, text_config::text")[:1]
    expected = {"tenant": "acme", "language": "en"} | change
    assert stored[:2] == (expected["tenant"], expected["language"])
    assert stored[2] == ("spanish" if change.get("language") else "english")


def test_another_model_embeds_everything_again(conn: Conn, model: FakeModel) -> None:
    load_all(conn, CHUNKS, model)

    report = load_all(conn, CHUNKS, model, name="other")

    assert (report.updated, report.unchanged, report.embedded) == (3, 1, 3)
    assert report.warnings == ()


def test_chunks_left_with_another_models_vectors_are_warned_of(
    conn: Conn, model: FakeModel
) -> None:
    load_all(conn, CHUNKS, model)

    report = load_all(conn, CHUNKS[:1], model, name="other")

    (warning,) = report.warnings
    assert warning.startswith("2 chunks that the file does not hold keep vectors of fake")


def test_a_lost_vector_is_made_again(conn: Conn, model: FakeModel) -> None:
    load_all(conn, CHUNKS, model)
    conn.execute("UPDATE recallwatch_corpus.chunks SET embedding = NULL WHERE document_id = 'a'")

    report = load_all(conn, CHUNKS, model)

    assert (report.updated, report.embedded) == (2, 2)
    assert _stored(conn)["Blue whales sing."] == model.vector("Blue whales sing.").tolist()


def test_content_that_becomes_blank_loses_its_vector(conn: Conn, model: FakeModel) -> None:
    load_all(conn, CHUNKS, model)

    report = load_all(conn, [dataclasses.replace(CHUNKS[0], content="\t")], model)

    assert (report.updated, report.embedded, report.without_embedding) == (1, 0, 1)
    assert _stored(conn)["\t"] is None


def test_vectors_of_the_file_are_stored_as_they_are(conn: Conn, model: FakeModel) -> None:
    vector = np.arange(1, 9, dtype=np.float32)

    report = load_all(conn, [dataclasses.replace(CHUNKS[0], embedding=vector), CHUNKS[1]], model)

    assert (report.inserted, report.embedded) == (2, 1)
    assert model.embedded == ["As baleias cantam."]
    assert _stored(conn)["Blue whales sing."] == vector.tolist()
    assert rows(conn, b"embedding_model") == [("file",), ("fake",)]


def test_the_files_vectors_are_compared_number_by_number(conn: Conn, model: FakeModel) -> None:
    vector = np.arange(1, 9, dtype=np.float32)
    chunks = [dataclasses.replace(chunk, embedding=vector) for chunk in CHUNKS]
    load_all(conn, chunks, model)
    before = rows(conn, b"xmin")

    assert load_all(conn, chunks, model).unchanged == 4
    assert rows(conn, b"xmin") == before

    nudged = np.nextafter(vector, np.float32(9))
    report = load_all(conn, [dataclasses.replace(chunks[0], embedding=nudged), *chunks[1:]], model)
    assert (report.updated, report.unchanged) == (1, 3)
    assert _stored(conn)["Blue whales sing."] == nudged.tolist()


def test_without_its_vector_in_the_file_a_chunk_is_embedded(conn: Conn, model: FakeModel) -> None:
    load_all(conn, [dataclasses.replace(CHUNKS[0], embedding=np.ones(8, np.float32))], model)

    report = load_all(conn, CHUNKS[:1], model)

    assert (report.updated, report.embedded) == (1, 1)
    assert _stored(conn)["Blue whales sing."] == model.vector("Blue whales sing.").tolist()


def test_a_chunk_that_the_model_cannot_embed_is_named(conn: Conn, model: FakeModel) -> None:
    model.failing = {"Whales."}

    with pytest.raises(InputError) as caught:
        load_all(conn, CHUNKS, model)

    assert str(caught.value) == (
        "chunk https://b.example:80/c:0: no vector from model fake: unknown"
    )


def test_a_vector_of_another_length_in_the_file_is_named(conn: Conn, model: FakeModel) -> None:
    short = dataclasses.replace(CHUNKS[1], embedding=np.ones(3, np.float32))

    with pytest.raises(InputError, match=r"chunk a:1 brings a vector of 3 .* holds 8"):
        load_all(conn, [CHUNKS[0], short], model)


def test_vectors_of_a_length_that_the_model_did_not_announce_are_an_error(
    conn: Conn, model: FakeModel
) -> None:
    with pytest.raises(PermanentError, match="expected 9 dimensions, not 8"):
        load(conn, CHUNKS, model, model="fake", dimensions=9)


def test_a_chunk_too_long_to_be_indexed_is_named(conn: Conn, model: FakeModel) -> None:
    words = " ".join(map(str, range(200_000)))

    with pytest.raises(InputError, match=r"too long .* long:0 with 1\d{6} characters"):
        load_all(conn, [*CHUNKS, Chunk("long", 0, words)], model)


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "BATCH", 10)


class _FailingModel(FakeModel):
    """Loses its server while it embeds the second batch."""

    def __call__(self, texts: Sequence[str]) -> tuple[FloatMatrix, dict[int, Failure]]:
        if self.embedded:
            raise TransientError("the server went away")
        return super().__call__(texts)


def test_a_second_load_looks_each_chunk_up_in_the_index(conn: Conn, model: FakeModel) -> None:
    chunks = [Chunk("a", n, f"Text {n}.") for n in range(3 * loading.BATCH)]
    load_all(conn, chunks, model)
    scans = b"SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'chunks'"

    with conn.transaction():
        before = conn.execute(scans).fetchone() or (0, 0)
        load_all(conn, chunks, model)
        after = conn.execute(scans).fetchone() or (0, 0)

    counting_the_whole_table = 2
    assert after[0] - before[0] <= counting_the_whole_table
    assert after[1] - before[1] >= len(chunks)


@pytest.mark.usefixtures("_small_batches")
def test_an_interrupted_load_is_taken_up_by_the_next(conn: Conn, model: FakeModel) -> None:
    chunks = [Chunk("a", n, f"Text {n}.") for n in range(25)]
    with pytest.raises(TransientError, match="went away"):
        load(conn, chunks, _FailingModel(), model="fake", dimensions=8)
    assert len(rows(conn, b"1")) == 10

    report = load_all(conn, chunks, model)

    assert (report.inserted, report.unchanged, report.embedded) == (15, 10, 15)
    assert model.embedded == [chunk.content for chunk in chunks[10:]]
    assert all(_stored(conn).values())


@pytest.mark.usefixtures("_small_batches")
def test_progress_is_told_batch_by_batch(conn: Conn, model: FakeModel) -> None:
    steps: list[int] = []

    chunks = (Chunk("a", n, f"Text {n}.") for n in range(25))
    load(conn, chunks, model, model="fake", dimensions=8, on_progress=steps.append)

    assert steps == [10, 10, 5]


@pytest.mark.usefixtures("_small_batches")
def test_a_bad_line_far_down_leaves_what_stood_before_it(conn: Conn, model: FakeModel) -> None:
    def chunks() -> Iterator[Chunk]:
        yield from (Chunk("a", n, f"Text {n}.") for n in range(15))
        raise InputError("line 16")

    with pytest.raises(InputError, match="line 16"):
        load(conn, chunks(), model, model="fake", dimensions=8)

    assert len(rows(conn, b"1")) == 10
