import hashlib
from collections.abc import Iterator, Sequence
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from pipeline.embedding.base import FREE, Budget, Keep, PaidInVainError, check
from pipeline.embedding.build import Sharing, build_cached_embedder
from pipeline.embedding.cache import VectorCache, connect
from pipeline.embedding.cached import CachedEmbedder, Stats
from pipeline.embedding.local import LocalEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import PermanentError, TransientError
from pipeline.types import FloatMatrix
from tests.integration.pipeline.embedding.conftest import Breakable
from tests.loopback.openai_server import OpenAIServer, vectors_for

EACH_EXAMPLE_HAS_A_MODEL_OF_ITS_OWN = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WORDS = st.lists(st.text("abé 日", max_size=3), max_size=9)


class Recorder:
    """Gives the loopback server's vectors, and zeros to blank texts; by default a new model."""

    def __init__(
        self, width: int = 4, dimensions: int | None = 4, *, model: str | None = None
    ) -> None:
        self.model = model or uuid4().hex
        self.dimensions = dimensions
        self.width = width
        self.calls: list[list[str]] = []

    def embed(
        self, texts: Sequence[str], *, keep: Keep | None = None, budget: Budget = FREE
    ) -> FloatMatrix:
        self.calls.append(list(texts))
        budget.reserve(len(texts))
        vectors = vectors_for(texts, self.width)
        vectors[[not text.strip() for text in texts]] = 0
        if keep is not None:
            keep(texts, vectors)
        return vectors


@pytest.fixture
def client(valkey: str) -> Iterator[Redis]:
    with connect(valkey) as client:
        yield client


def stored(client: Redis, model: str) -> list[bytes]:
    return list(client.scan_iter(match=f"rw:vec:1:{model}:*"))


def cached(embedder: Recorder, client: Redis) -> CachedEmbedder:
    return CachedEmbedder(embedder, VectorCache(client, embedder.model, embedder.dimensions, 30))


@given(asked=st.lists(WORDS, max_size=4))
@EACH_EXAMPLE_HAS_A_MODEL_OF_ITS_OWN
def test_whatever_is_cached_vectors_and_failures_are_the_embedder_s_bit_for_bit(
    valkey: str, asked: list[list[str]]
) -> None:
    plain = LocalEmbedder(64)
    with connect(valkey) as client:
        embedder = CachedEmbedder(plain, VectorCache(client, uuid4().hex, 64, 30))
        for texts in asked:
            vectors, failures = embedder.embed(texts)

            expected = plain.embed(texts)
            good = expected.any(axis=1)
            assert vectors[good].tobytes() == expected[good].tobytes()
            assert failures == check(expected, [str(i) for i in range(len(texts))], plain.model, 64)


@given(texts=WORDS)
@EACH_EXAMPLE_HAS_A_MODEL_OF_ITS_OWN
def test_each_distinct_text_is_embedded_once_and_then_never(valkey: str, texts: list[str]) -> None:
    with connect(valkey) as client:
        recorder = Recorder()
        embedder = cached(recorder, client)

        first, _ = embedder.embed(texts)
        second, _ = embedder.embed(texts)

    asked = [text for call in recorder.calls for text in call]
    usable = {text for text in texts if text.strip()}
    assert sorted(text for text in asked if text.strip()) == sorted(usable)
    rows = [i for i, text in enumerate(texts) if text.strip()]
    np.testing.assert_array_equal(first[rows], vectors_for([texts[i] for i in rows], 4))
    np.testing.assert_array_equal(second[rows], first[rows])


def test_the_statistics_count_distinct_texts_and_calls(client: Redis) -> None:
    embedder = cached(Recorder(), client)

    embedder.embed(["a", "b", "a"])
    embedder.embed(["a", "c"])
    embedder.embed(["a"])

    assert embedder.stats == Stats(hits=2, misses=3, calls=2)


def test_a_failure_is_reported_for_each_of_its_texts_and_never_cached(client: Redis) -> None:
    recorder = Recorder()
    embedder = cached(recorder, client)

    for _ in range(2):
        _, failures = embedder.embed(["a", " ", "b", " "], ids=["q1", "q2", "q3", "q4"])
        assert failures.keys() == {1, 3}
        assert recorder.model in failures[1].reason
        assert "q2" in failures[1].reason
        assert "q4" in failures[3].reason

    assert recorder.calls == [["a", " ", "b"], [" "]]
    assert len(stored(client, recorder.model)) == 2


def test_texts_without_any_vector_are_failures(client: Redis) -> None:
    vectors, failures = cached(Recorder(), client).embed([" ", "  "])

    assert len(vectors) == 2
    assert failures.keys() == {0, 1}


def test_no_texts_give_no_rows(client: Redis) -> None:
    vectors, failures = cached(Recorder(), client).embed([])

    assert (vectors.shape, failures) == ((0, 4), {})


def test_a_wrong_dimension_is_an_error_and_is_not_cached(client: Redis) -> None:
    recorder = Recorder(width=5, dimensions=4)

    with pytest.raises(PermanentError, match=r"of 5 dimensions where 4 were expected") as caught:
        cached(recorder, client).embed(["a"])
    assert recorder.model in str(caught.value)
    assert stored(client, recorder.model) == []


def test_a_model_that_changed_its_length_under_its_name_overrules_the_cache(client: Redis) -> None:
    old = Recorder(width=4, dimensions=None)
    cached(old, client).embed(["a", "b"])
    embedder = cached(Recorder(width=6, dimensions=None, model=old.model), client)

    vectors, failures = embedder.embed(["a", "new", "b"])

    np.testing.assert_array_equal(vectors, vectors_for(["a", "new", "b"], 6))
    assert failures == {}
    np.testing.assert_array_equal(embedder.embed(["b"])[0], vectors_for(["b"], 6))


def test_vectors_of_another_length_than_the_corpus_are_refused_and_do_not_stay(
    client: Redis,
) -> None:
    """A provider that once answered with another model must not spoil a month of runs."""
    wrong = Recorder(width=5, dimensions=None)
    cache = VectorCache(client, wrong.model, 4, 30)
    with pytest.raises(PermanentError, match="5"):
        CachedEmbedder(wrong, cache, 4).embed(["a question"])
    assert stored(client, wrong.model) == []
    right = Recorder(width=4, dimensions=None, model=wrong.model)
    vectors, failures = CachedEmbedder(right, cache, 4).embed(["a question"])
    assert (vectors.shape, failures, right.calls) == ((1, 4), {}, [["a question"]])


def test_warming_embeds_what_is_missing_once(client: Redis) -> None:
    recorder = Recorder()
    embedder = cached(recorder, client)
    embedder.embed(["a"])

    embedder.warm(["a", "b", "b", " "])
    embedder.embed(["a", "b"])

    assert recorder.calls == [["a"], ["b", " "]]
    assert embedder.stats == Stats(hits=3, misses=3, calls=2)


def test_with_the_cache_down_the_numbers_are_the_same(breakable: Breakable) -> None:
    texts = ["a", "b", " ", "a"]
    with connect(breakable.url, timeout=0.2) as client:
        recorder = Recorder()
        up = cached(recorder, client).embed(texts)
        breakable.freeze()
        embedder = cached(recorder, client)
        down = [embedder.embed(texts) for _ in range(2)]

    for vectors, failures in down:
        assert vectors[[0, 1, 3]].tobytes() == up[0][[0, 1, 3]].tobytes()
        assert failures == up[1]
    assert recorder.calls == [["a", "b", " "]] * 3


def test_warming_a_cache_that_is_down_embeds_nothing(breakable: Breakable) -> None:
    breakable.stop()
    recorder = Recorder()
    with connect(breakable.url) as client:
        cached(recorder, client).warm(["a"])

    assert recorder.calls == []


def test_two_servers_with_a_model_of_one_name_share_no_vectors(
    client: Redis, openai_server: OpenAIServer
) -> None:
    chosen = EmbeddingSettings(provider="openai", model="m", base_url=openai_server.url)

    build_cached_embedder(chosen, None, Sharing(client)).embed(["a"])

    digest = hashlib.sha256(b"a").hexdigest()
    key = f"rw:vec:1:m@{openai_server.host}:default:{digest}"
    assert client.get(key) == vectors_for(["a"], 8).astype("<f4").tobytes()


class Breaking(Recorder):
    """Gives the vectors of all texts but the last, and then has its server ask for patience."""

    def embed(
        self, texts: Sequence[str], *, keep: Keep | None = None, budget: Budget = FREE
    ) -> FloatMatrix:
        if texts[:-1]:
            super().embed(texts[:-1], keep=keep, budget=budget)
        raise TransientError("429", retry_after=30.0)


def test_a_fault_says_whether_what_came_before_it_was_paid_for_in_vain(
    breakable: Breakable,
) -> None:
    with connect(breakable.url) as client:
        embedder = cached(Breaking(), client)
        with pytest.raises(TransientError) as kept:
            embedder.embed(["a", "b"])
        client.config_set("maxmemory", "1mb")
        client.config_set("maxmemory-policy", "noeviction")

        with pytest.raises(PaidInVainError) as lost:
            embedder.embed(["c", "d"])
        with pytest.raises(TransientError) as nothing_came:
            embedder.embed(["d"])

    assert not isinstance(kept.value, PaidInVainError)
    assert (str(lost.value), lost.value.retry_after) == ("429", 30.0)
    assert not isinstance(nothing_came.value, PaidInVainError)
