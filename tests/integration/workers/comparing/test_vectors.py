"""Vectors beside production: each text is paid for once, whatever breaks off in between."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from pipeline.embedding.local import LocalEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes.base import InputType
from pipeline.errors import PermanentError, TransientError
from tests.loopback.embedding_server import EmbeddingServer, asymmetric
from tests.loopback.openai_server import OpenAIServer, refuse, vectors, vectors_for
from workers.comparing.budget import Cap
from workers.comparing.vectors import SideVectors
from workers.context import Context

TEXTS = ["first", "second", "third", "fourth", "fifth"]


def of(provider: OpenAIServer, **settings: Any) -> EmbeddingSettings:  # noqa: ANN401 - of several types
    given = {"provider": "openai", "model": "m", "base_url": provider.url, "attempts": 1}
    return EmbeddingSettings.model_validate(given | settings)


def side(
    ctx: Context,
    embedding: EmbeddingSettings,
    input_type: InputType = InputType.DOCUMENT,
    most: float = 1.0,
) -> SideVectors:
    return SideVectors(ctx, embedding, input_type, Cap(most))


def kept(ctx: Context) -> int:
    with ctx.database.begin() as session:
        return int(
            session.execute(text("SELECT count(*) FROM recallwatch.side_vector")).scalar_one()
        )


def test_a_text_is_embedded_once_for_all_times(ctx: Context, provider: OpenAIServer) -> None:
    first = side(ctx, of(provider)).of([*TEXTS, "first"])
    again = side(ctx, of(provider))

    np.testing.assert_array_equal(first, vectors_for([*TEXTS, "first"], provider.dimensions))
    assert again.missing([*TEXTS, "new", "new", " "]) == ["new"]
    np.testing.assert_array_equal(again.of(TEXTS), first[:5])
    assert [len(each.texts) for each in provider.requests] == [5]
    assert again.spent.texts == 0


def test_what_was_paid_for_before_a_break_is_not_paid_again(
    ctx: Context, provider: OpenAIServer
) -> None:
    provider.script = [vectors(), refuse(503)]
    embedding = of(provider, max_inputs=2, concurrency=1)

    with pytest.raises(TransientError):
        side(ctx, embedding).of(TEXTS)
    found = side(ctx, embedding).of(TEXTS)

    np.testing.assert_array_equal(found, vectors_for(TEXTS, provider.dimensions))
    asked = [each.texts for each in provider.requests]
    assert asked == [TEXTS[:2], TEXTS[2:4], TEXTS[2:4], TEXTS[4:]]


def test_at_the_cap_it_stops_and_keeps_what_came(ctx: Context, provider: OpenAIServer) -> None:
    # A dollar a token: six tokens at most for "second", of which two are billed.
    embedding = of(provider, max_inputs=1, concurrency=1, price=1_000_000.0)

    with pytest.raises(PermanentError, match=r"the cap of \$9.00 is used up \(\$4.00 spent, and"):
        side(ctx, embedding, most=9.0).of(["first", "second", "a longer text"])

    assert side(ctx, embedding).missing(["first", "second", "a longer text"]) == ["a longer text"]


@pytest.mark.parametrize("name", ["voyage", "cohere"])
def test_questions_and_chunks_of_an_asymmetric_model_are_kept_apart(
    ctx: Context, asymmetric_server: EmbeddingServer, name: str
) -> None:
    given = {"provider": name, "model": "m", "base_url": asymmetric_server.url(name)}
    embedding = EmbeddingSettings.model_validate(given)

    for _ in range(2):
        for input_type in InputType:
            np.testing.assert_array_equal(
                side(ctx, embedding, input_type).of(TEXTS),
                asymmetric(TEXTS, input_type.value, 8),
            )
    assert len(asymmetric_server.requests) == 2


@pytest.fixture
def asymmetric_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with EmbeddingServer() as server:
        yield server


def test_other_dimensions_are_other_vectors(ctx: Context, provider: OpenAIServer) -> None:
    assert side(ctx, of(provider, dimensions=4)).of(TEXTS).shape == (5, 4)
    assert side(ctx, of(provider, dimensions=6)).of(TEXTS).shape == (5, 6)


def test_the_local_model_s_vectors_are_made_and_not_kept(ctx: Context) -> None:
    local = side(ctx, EmbeddingSettings())

    np.testing.assert_array_equal(local.of(TEXTS), LocalEmbedder().embed(TEXTS))
    assert local.missing(["first", "first", ""]) == ["first"]
    assert kept(ctx) == 0


def test_a_text_that_gets_no_vector_has_a_row_without_numbers_and_is_asked_for_again(
    ctx: Context, provider: OpenAIServer
) -> None:
    provider.default = vectors(spoil={1: float("nan")})

    found = side(ctx, of(provider)).of(TEXTS)

    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2, 3, 4]]).all()
    assert side(ctx, of(provider)).missing(TEXTS) == ["second"]


def test_blank_texts_alone_are_asked_of_nobody(ctx: Context, provider: OpenAIServer) -> None:
    assert side(ctx, of(provider)).of(["", " "]).shape == (2, 0)
    assert provider.requests == []


def test_a_model_that_changed_under_its_name_is_told(ctx: Context, provider: OpenAIServer) -> None:
    side(ctx, of(provider)).of(TEXTS[:2])
    provider.dimensions += 1

    with pytest.raises(PermanentError, match=r"vectors of 64 and 65 dimensions: .* --forget"):
        side(ctx, of(provider)).of(TEXTS)
