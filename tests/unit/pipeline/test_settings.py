"""The settings' own rules, without file or environment."""

import pytest
from pydantic import ValidationError

from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.retrieval.strategies import HybridStrategy
from pipeline.settings import EvalSettings, Settings


def made(**values: object) -> Settings:
    """Make settings from raw values, as a file would hold them."""
    return Settings.model_validate(values)


def test_the_environment_does_not_change_bare_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLWATCH_EVAL__K", "7")
    assert Settings().eval.k == 5


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_postgres_url_is_handed_on_as_libpq_documents_it(scheme: str) -> None:
    url = made(database_url=f" {scheme}://u@h:5432/d\n").database_url
    assert url is not None
    assert url.get_secret_value() == "postgresql://u@h:5432/d"


@pytest.mark.parametrize("url", ["redis://h:6379/0", "rediss://h", "unix:///run/valkey.sock?db=1"])
def test_redis_urls_are_taken_as_they_are(url: str) -> None:
    given = made(redis_url=url).redis_url
    assert given is not None
    assert given.get_secret_value() == url


@pytest.mark.parametrize("given", ["5", 5.0, True])
def test_a_number_of_the_wrong_type_is_not_converted(given: object) -> None:
    with pytest.raises(ValidationError):
        EvalSettings.model_validate({"k": given})


def test_weights_have_to_be_finite() -> None:
    with pytest.raises(ValidationError):
        HybridStrategy(arms={"vector": float("inf")})


def test_the_managed_table_has_tenant_language_and_text_search_columns() -> None:
    managed = Settings().corpus
    columns = (managed.tenant, managed.language, managed.text_search)
    assert columns == ("tenant", "language", "text_search")


def test_a_table_of_the_users_own_has_no_optional_columns_unless_told() -> None:
    own = CorpusSettings(table="app.chunks", tenant="customer")
    assert (own.tenant, own.language, own.text_search) == ("customer", None, None)


def test_a_built_in_strategy_is_changed_without_naming_its_kind() -> None:
    settings = made(strategies={"vector": {"ef_search": 200}})
    assert settings.strategies["vector"].model_dump()["ef_search"] == 200
    assert set(settings.strategies) == {"vector", "fulltext", "hybrid"}


def test_secret_values_are_keys_webhook_and_passwords_in_both_spellings() -> None:
    settings = made(
        database_url="postgresql://user:open%40sesame@h/d",
        redis_url="redis://:abc@h",
        openai_api_key="sk-canary",
        slack_webhook_url="https://hooks.example/T1/B2",
    )
    # The Redis password is too short to be looked for outside of URLs.
    assert set(settings.secret_values()) == {
        "sk-canary",
        "https://hooks.example/T1/B2",
        "open%40sesame",
        "open@sesame",
    }


def test_settings_without_secrets_have_none() -> None:
    assert Settings().secret_values() == []


def test_rules_for_a_strategy_that_is_not_there_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"gate\.strategies: no strategy 'vecter'"):
        made(gate={"strategies": {"vecter": {"max_drop": 0.1}}})


@pytest.mark.parametrize(
    "url",
    [
        "https://me:canary@h/v1",
        "https://canary@h/v1",
        "https://h/v1?key=canary",
        "https://h/v1#canary",
        "https://[canary/v1",
    ],
)
def test_an_embedding_servers_url_holds_no_secret_as_every_run_stores_it(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        EmbeddingSettings(base_url=url)
    (fault,) = caught.value.errors()
    assert "canary" not in fault["msg"]


@pytest.mark.parametrize(
    "field", ["table", "document_id", "content", "embedding", "tenant", "text_config"]
)
@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a\x1b[2Jb", "a\u202eb"])
def test_no_name_holds_a_character_that_cannot_be_seen(field: str, name: str) -> None:
    with pytest.raises(ValidationError, match="cannot be seen"):
        CorpusSettings.model_validate({field: name})


def test_a_request_must_end_before_the_hold_on_its_shard_does() -> None:
    slow = {"provider": "openai", "model": "m", "timeout": 30.0}

    with pytest.raises(ValidationError, match=r"embedding\.timeout \(30 s\) must be below queue"):
        made(embedding=slow, queue={"lease": 30})
    assert made(embedding=slow, queue={"lease": 31}).queue.lease == 31
    assert made(queue={"lease": 1}).queue.lease == 1, "the local model makes no request"
