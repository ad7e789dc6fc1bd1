import pytest

from pipeline.embedding.address import address_of, is_the_providers
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import SettingsError


def at(url: str | None, provider: str = "openai") -> EmbeddingSettings:
    given = {"provider": provider, "model": "m", "base_url": url}
    return EmbeddingSettings.model_validate(given)


@pytest.mark.parametrize(
    ("url", "host", "is_loopback"),
    [
        ("http://localhost:11434/v1", "localhost:11434", True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", True),
        ("http://[::1]:8080/v1", "[::1]:8080", True),
        ("https://embed.example.org/v1", "embed.example.org", False),
        ("http://10.0.0.3/v1", "10.0.0.3", False),
    ],
)
def test_the_host_and_whether_it_is_this_machine(url: str, host: str, is_loopback: bool) -> None:
    address = address_of(at(url))

    assert (address.url, address.host, address.is_loopback) == (url, host, is_loopback)
    assert not is_the_providers(at(url))


@pytest.mark.parametrize(
    ("provider", "host"),
    [
        ("openai", "api.openai.com"),
        ("voyage", "api.voyageai.com"),
        ("cohere", "api.cohere.com"),
    ],
)
def test_without_a_base_url_it_is_the_provider_s_own_server(provider: str, host: str) -> None:
    assert address_of(at(None, provider)).host == host
    assert is_the_providers(at(None, provider))
    assert is_the_providers(at(f"https://{host}/another", provider))


def test_a_server_that_people_run_themselves_is_no_provider_s() -> None:
    assert not is_the_providers(at("http://localhost:8080", "tei"))


@pytest.mark.parametrize(
    "url", ["localhost:11434", "ftp://example.org", "http://", "http://a:port", "http://[::1"]
)
def test_what_is_no_http_url_is_refused_by_the_name_of_its_setting(url: str) -> None:
    # Settings refuse it first; what is copied past them is not trusted either.
    with pytest.raises(SettingsError, match=r"^embedding\.base_url "):
        address_of(at(None).model_copy(update={"base_url": url}))


def test_the_host_keeps_no_user_name_or_password() -> None:
    url = "https://me:secret@embed.example.org:8443/v1"
    assert address_of(at(None).model_copy(update={"base_url": url})).host == (
        "embed.example.org:8443"
    )
