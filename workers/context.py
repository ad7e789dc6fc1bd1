"""What one process holds open: settings, our database, the corpus, the cache, the embedder.

Built in the process that uses it and never carried over a fork: `current()` looks at the pid, so
a prefork child builds its own (an engine that crossed a fork gave wrong answers in a trial).
"""

import json
import math
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import psycopg
import redis
from psycopg.pq import TransactionStatus
from pydantic import SecretStr

from db.session import IDLE_LIMIT, Database, application_name
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable, describe
from pipeline.embedding.base import Embedder
from pipeline.embedding.build import (
    Sharing,
    build_cached_embedder,
    build_embedder,
    build_pause,
)
from pipeline.embedding.cache import connect
from pipeline.embedding.cached import CachedEmbedder
from pipeline.embedding.checked import CheckedEmbedder
from pipeline.embedding.pause import Pause
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes.base import InputType
from pipeline.errors import SettingsError, TransientError
from pipeline.retrieval.base import Retriever
from pipeline.retrieval.build import Resources, build
from pipeline.retrieval.explaining import ExplainingSession
from pipeline.retrieval.kept_vectors import KeptVectors
from pipeline.retrieval.lexemes import FrequentLexemes
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.session import STATEMENT_TIMEOUT, CorpusSession
from pipeline.retrieval.tree import StrategyTree
from pipeline.settings import Settings
from pipeline.settings_loading import load_settings

KEPT_RETRIEVERS = 16

Session = TypeVar("Session", bound=CorpusSession)


class Context:
    """The connections of one process, opened when first used.

    `idle_limit`: see `db.session.Database`.
    """

    def __init__(self, settings: Settings, *, idle_limit: int | None = None) -> None:
        self.settings = settings
        self._idle_limit = idle_limit
        self.pid = os.getpid()
        self._corpus: psycopg.Connection[Any] | None = None
        self._embedders: dict[str, CachedEmbedder] = {}
        self._retrievers: OrderedDict[str, Retriever] = OrderedDict()
        self._frequent = FrequentLexemes()
        self._vectors = KeptVectors()

    @cached_property
    def database(self) -> Database:
        """Our own database."""
        url = _required(self.settings.database_url, "DATABASE_URL")
        return Database(url, idle_limit=self._idle_limit)

    @cached_property
    def redis(self) -> redis.Redis:
        """The Redis of queue and cache; timeouts are short, for the cache may be skipped."""
        return connect(_required(self.settings.redis_url, "REDIS_URL"))

    @cached_property
    def _host(self) -> PythonHost:
        """Where the owner's Python lives in this process."""
        return PythonHost(self.settings.python_folder, tuple(_passed_on))

    def corpus(self) -> psycopg.Connection[Any]:
        """Return the connection to the corpus, opened anew where it cannot be used.

        It broke, or a time limit ended a task in the middle of a statement, which leaves it
        waiting for the answer for ever. Raises TransientError when the server does not answer.
        """
        if self._corpus and self._corpus.info.transaction_status is not TransactionStatus.IDLE:
            self._corpus.close()
            self._corpus = None
        if self._corpus is None:
            self._retrievers.clear()
            self._corpus = self._connect_corpus()
        return self._corpus

    def _connect_corpus(self) -> psycopg.Connection[Any]:
        url = _required(self.settings.corpus_url or self.settings.database_url, "DATABASE_URL")
        try:
            return psycopg.connect(
                url, autocommit=True, connect_timeout=10, application_name=application_name()
            )
        except psycopg.OperationalError as error:
            reason = str(error).strip().partition("\n")[0]
            raise TransientError(
                f"the corpus database does not answer ({reason}): is it running, and is CORPUS_URL"
                " (or DATABASE_URL) right?"
            ) from error

    def corpus_table(self, corpus: CorpusSettings | None = None) -> CorpusTable:
        """Return the corpus table as the catalog has it now; raises CorpusError."""
        return describe(self.corpus(), corpus or self.settings.corpus)

    def embedder(
        self, embedding: EmbeddingSettings | None = None, dimensions: int | None = None
    ) -> CachedEmbedder:
        """Return the embedder for these settings, behind the cache.

        `dimensions` is the length of the corpus's vectors, for a model that may give any.
        """
        wanted = embedding or self.settings.embedding
        key = f"{wanted.model_dump_json()} {dimensions}"
        if key not in self._embedders:
            self._embedders[key] = build_cached_embedder(
                wanted, self.settings.embedding_key(wanted), self._sharing(), dimensions
            )
        return self._embedders[key]

    def provider_pause(self, embedding: EmbeddingSettings | None = None) -> Pause | None:
        """Return the pause that may be on for a provider; None: the model is in this process."""
        wanted = embedding or self.settings.embedding
        return build_pause(wanted, self.settings.embedding_key(wanted), self.redis)

    def lift_pause(self, embedding: EmbeddingSettings | None = None) -> None:
        """Have the provider asked again, though it refused: somebody starts something anew."""
        pause = self.provider_pause(embedding)
        if pause is not None:
            pause.lift()

    def _sharing(self) -> Sharing:
        """Return what this process shares with the other workers; half a lease is for waiting."""
        queue = self.settings.queue
        return Sharing(self.redis, workers=queue.workers, patience=queue.lease / 2)

    def chunk_embedder(self) -> CheckedEmbedder:
        """Return the embedder for chunks, past the cache: the table keeps their vectors."""
        return CheckedEmbedder(self.patient_embedder(self.settings.embedding, InputType.DOCUMENT))

    def patient_embedder(self, embedding: EmbeddingSettings, input_type: InputType) -> Embedder:
        """Return an embedder without a cache, for a command: nobody takes up later what it leaves.

        So it waits for rate limits as long as they last. A pause of the provider is lifted.
        """
        self.lift_pause(embedding)
        sharing = replace(self._sharing(), patience=math.inf)
        key = self.settings.embedding_key(embedding)
        return build_embedder(embedding, key, sharing, input_type)

    def retriever(
        self, run_settings: dict[str, Any], fingerprint: dict[str, Any], *, exact: bool = False
    ) -> Retriever:
        """Return the retriever that a run's settings describe, over the corpus as it was then.

        `exact`: as if there were no vector index; a statement then gets most of a shard's lease.
        The newest few are kept: they hold prepared statements and term statistics, which the
        contents of the corpus decide and not what index is on it.
        """
        self.corpus()
        contents = {part: value for part, value in fingerprint.items() if part != "index"}
        key = json.dumps([run_settings, contents, exact], sort_keys=True)
        if key not in self._retrievers:
            session = self._session(CorpusSession, run_settings, contents, exact=exact)
            self._retrievers[key] = self._build(session, run_settings, exact=exact)
            if len(self._retrievers) > KEPT_RETRIEVERS:
                self._retrievers.popitem(last=False)
        return self._retrievers[key]

    def explained_retriever(
        self, run_settings: dict[str, Any]
    ) -> tuple[Retriever, ExplainingSession]:
        """Return a retriever of its own, and the session that notes the plans of its searches."""
        session = self._session(ExplainingSession, run_settings, {}, exact=False)
        return self._build(session, run_settings, exact=False), session

    def _session(
        self,
        kind: type[Session],
        run_settings: dict[str, Any],
        contents: Mapping[str, Any],
        *,
        exact: bool,
    ) -> Session:
        """Return a session over the corpus of these contents."""
        corpus = CorpusSettings.model_validate(run_settings["corpus"])
        connection = self.corpus()
        return kind(
            connection,
            describe(connection, corpus),
            text_config=corpus.text_config,
            fingerprint=json.dumps(contents, sort_keys=True),
            hashed=contents.get("vectors") is not None,
            statement_timeout=0.9 * self.settings.queue.lease if exact else STATEMENT_TIMEOUT,
        )

    def _build(
        self, session: CorpusSession, run_settings: dict[str, Any], *, exact: bool
    ) -> Retriever:
        resources = Resources(
            session,
            self._frequent,
            self._vectors,
            exact=exact,
            environment=os.environ,
            host=self._host,
        )
        return build(StrategyTree.from_json(run_settings["strategy"]), resources)

    def close(self) -> None:
        """Close what was opened."""
        if "database" in self.__dict__:
            self.database.close()
        if "redis" in self.__dict__:
            self.redis.close()
        if self._corpus is not None:
            self._corpus.close()


_current: Context | None = None
_passed_on: list[type[Exception]] = []


def pass_on(error: type[Exception]) -> None:
    """Have no code of the owner's held for what raised this: it comes from outside of it."""
    _passed_on.append(error)


def current() -> Context:
    """Return this process's context, made from its own settings at first use."""
    global _current  # noqa: PLW0603 - one context a process is the point
    if _current is None or _current.pid != os.getpid():
        _current = Context(load_settings().settings, idle_limit=IDLE_LIMIT)
    return _current


def _required(url: SecretStr | None, name: str) -> str:
    if url is None:
        raise SettingsError(
            f"{name} is not set: set it to your server, or run `recallwatch up`, which prints the"
            " one of the embedded stack"
        )
    return url.get_secret_value()
