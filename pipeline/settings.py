"""The shape of recallwatch's settings: one typed object, made by `pipeline.settings_loading`.

The field descriptions are the documentation: `recallwatch init` writes them as comments, with the
example where there is no default, and the error for a wrong value quotes the allowed ones.

Types are strict: `k = "5"` and `k = true` are wrong, not 5 and 1.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from pipeline.alerts.settings import AlertSettings
from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes import SHAPES
from pipeline.generation.settings import GenerationSettings
from pipeline.retrieval.strategies import BUILT_IN, Strategy, check_parts
from pipeline.schedules import WEEKLY, Schedule
from pipeline.server_urls import passwords
from pipeline.settings_types import (
    MAX_K,
    Folder,
    PostgresUrl,
    RedisUrl,
    Section,
    StrategyName,
    Visible,
    WebhookUrl,
)
from pipeline.types import Level
from pipeline.verdict.settings import GateSettings

SHORTEST_SECRET = 6
"""Characters. A shorter password is masked in URLs only: elsewhere it would blot out words."""

ENVIRONMENT_ONLY = (
    "openai_api_key",
    "voyage_api_key",
    "cohere_api_key",
    "tei_api_key",
    "anthropic_api_key",
    "slack_webhook_url",
)
"""Keys that recallwatch.toml may not hold: the file is made to be committed."""


def _check_brackets(value: Any) -> Any:  # noqa: ANN401 - not validated yet
    if isinstance(value, dict):
        raise ValueError("a schedule is a table of a list: write [[schedule]], with two brackets")  # noqa: TRY004 - pydantic reports ValueError
    return value


def _with_kind(name: str, table: Any) -> Any:  # noqa: ANN401 - not validated yet
    """Let [strategies.vector] go without a kind: its name says it."""
    if isinstance(table, dict) and name in BUILT_IN:
        return {"kind": BUILT_IN[name].kind} | table
    return table


class EvalSettings(Section):
    """What `recallwatch eval` does unless its options say otherwise."""

    set: Visible = Field("default", min_length=1, max_length=100, description="golden set")
    strategies: list[str] = Field(
        ["vector", "fulltext", "hybrid"], min_length=1, description="strategies to evaluate"
    )
    k: int = Field(5, ge=1, le=MAX_K, description="how many results count")
    level: Level = Field(
        Level.CHUNK, strict=False, description="chunk, or document: keys collapse to documents"
    )
    cutoffs: list[Annotated[int, Field(ge=1, le=MAX_K)]] = Field(
        [1, 3, 5, 10], max_length=30, description="smaller k at which the metrics are also given"
    )
    relevance_threshold: int = Field(
        1, ge=1, description="lowest grade that counts as relevant in all but ndcg"
    )
    look_depth: int = Field(
        50, ge=1, le=MAX_K, description="how deep to look for the first expected key of a miss"
    )
    store_stages: bool = Field(
        default=True,
        description="true: keep the rankings of a hybrid's arms and a reranker's candidates, for"
        " tune and to say in which stage a question was lost (some 1.5 kB a question and arm)",
    )
    latency_sample: int = Field(
        100,
        ge=0,
        le=10_000,
        description="questions that are also searched one at a time, for percentiles of the time"
        " a search takes; a service that charges gets so many more; 0: none",
    )
    shard_size: int = Field(500, ge=1, le=10_000, description="questions a task evaluates")
    exact_budget: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="seconds, about, for exact search beside the index; what does not fit is"
        " sampled; 0: none",
    )


class QueueSettings(Section):
    """Workers, leases and deadlines."""

    workers: int = Field(2, ge=1, le=64, description="worker processes that commands start")
    lease: int = Field(300, ge=1, le=3600, description="seconds a worker holds a shard")
    attempts: int = Field(5, ge=1, le=100, description="tries a shard gets before it is failed")
    deadline: int = Field(
        6 * 3600, ge=1, description="seconds after which an unfinished run is failed"
    )
    reindex_quiet: int = Field(
        60,
        ge=0,
        le=3600,
        description="seconds without another `recallwatch reindexed` before its batch starts",
    )


class LogSettings(Section):
    """structlog's output, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="debug, info, warning or error: the least that is written"
    )
    format: Literal["auto", "json", "console"] = Field(
        "auto", description="auto: console on a terminal, else JSON lines"
    )


class Settings(BaseSettings):
    """Everything recallwatch can be told, from recallwatch.toml and the environment."""

    model_config = SettingsConfigDict(
        env_prefix="RECALLWATCH_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        strict=True,
        validate_default=True,
    )

    database_url: PostgresUrl | None = Field(
        None,
        description="PostgreSQL for recallwatch's own tables; unset: the embedded one",
        examples=["postgresql://user@localhost:5432/recallwatch"],
    )
    corpus_url: PostgresUrl | None = Field(
        None,
        description="PostgreSQL that holds the chunks; unset: database_url",
        examples=["postgresql://reader@localhost:5432/app"],
    )
    redis_url: RedisUrl | None = Field(
        None,
        description="Redis or Valkey for queue and cache; unset: the embedded one",
        examples=["redis://localhost:6379/0"],
    )
    allow_no_password: bool = Field(
        default=False, description="true: servers on other machines may go without a password"
    )
    openai_api_key: SecretStr | None = Field(None, description="only from the environment")
    voyage_api_key: SecretStr | None = Field(None, description="only from the environment")
    cohere_api_key: SecretStr | None = Field(None, description="only from the environment")
    tei_api_key: SecretStr | None = Field(None, description="only from the environment")
    anthropic_api_key: SecretStr | None = Field(None, description="only from the environment")
    slack_webhook_url: WebhookUrl | None = Field(None, description="only from the environment")
    state_dir: Folder = Field(
        Path(".recallwatch"),
        strict=False,
        description="data of the embedded stack, beside this file",
    )
    python_folder: Path = Field(
        Path(),
        strict=False,
        description="folder that your own Python is imported from, beside this file",
    )
    schedule: Annotated[list[Schedule], BeforeValidator(_check_brackets)] = Field(
        [WEEKLY], description="batches that start by themselves; []: none"
    )
    corpus: CorpusSettings = CorpusSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    eval: EvalSettings = EvalSettings()
    generation: GenerationSettings = GenerationSettings()
    gate: GateSettings = GateSettings()
    queue: QueueSettings = QueueSettings()
    alerts: AlertSettings = AlertSettings()
    log: LogSettings = LogSettings()
    strategies: dict[StrategyName, Strategy] = Field(BUILT_IN, description="named ways to retrieve")
    models: dict[StrategyName, EmbeddingSettings] = Field(
        {}, description="embedding models to compare by name, each a table like [embedding]"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings' signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take only what is passed: `Settings()` is the defaults, whatever the environment holds.

        `pipeline.settings_loading` passes the file and the environment, and knows which was which.
        """
        return (init_settings,)

    def embedding_key(self, embedding: EmbeddingSettings) -> SecretStr | None:
        """Return the key of an embedding provider; None: it is not set, or needs none."""
        if embedding.provider == "local":
            return None
        key: SecretStr | None = getattr(self, SHAPES[embedding.provider].key.lower())
        return key

    def secret_values(self) -> list[str]:
        """Return what must not be shown: the keys, the webhook and the URLs' passwords."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        texts = {n: v.get_secret_value() for n, v in given.items() if isinstance(v, SecretStr)}
        secrets = [texts[name] for name in ENVIRONMENT_ONLY if name in texts]
        in_urls = {p for text in texts.values() for p in passwords(text)}
        return secrets + sorted(each for each in in_urls if len(each) >= SHORTEST_SECRET)

    @model_validator(mode="before")
    @classmethod
    def _add_built_in_strategies(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic's signature
        given = values.get("strategies") if isinstance(values, dict) else None
        if not isinstance(given, dict):
            return values
        named = {name: _with_kind(name, table) for name, table in given.items()}
        return values | {"strategies": BUILT_IN | named}

    @model_validator(mode="after")
    def _check_evaluated(self) -> Self:
        for name in self.eval.strategies:
            if name not in self.strategies:
                there_are = ", ".join(self.strategies)
                raise ValueError(f"eval.strategies: no strategy {name!r}; there are {there_are}")
        return self

    @model_validator(mode="after")
    def _check_gate(self) -> Self:
        for name in self.gate.strategies:
            if name not in self.strategies:
                there_are = ", ".join(self.strategies)
                raise ValueError(f"gate.strategies: no strategy {name!r}; there are {there_are}")
        return self

    @model_validator(mode="after")
    def _check_schedules(self) -> Self:
        names = [schedule.name for schedule in self.schedule]
        for number, schedule in enumerate(self.schedule):
            place = f"schedule[{number}]"
            if schedule.name in names[:number]:
                raise ValueError(f"{place}.name: there is a schedule {schedule.name!r} already")
            for name in schedule.strategies or ():
                if name not in self.strategies:
                    there_are = ", ".join(self.strategies)
                    raise ValueError(
                        f"{place}.strategies: no strategy {name!r}; there are {there_are}"
                    )
        return self

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        timeout, lease = self.embedding.timeout, self.queue.lease
        if self.embedding.provider != "local" and timeout >= lease:
            raise ValueError(
                f"embedding.timeout ({timeout:g} s) must be below queue.lease ({lease} s):"
                " a request that hangs would outlast the worker's hold on its shard"
            )
        return self

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        check_parts(self.strategies)
        return self
