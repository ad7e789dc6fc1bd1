import pytest

from pipeline.embedding.address import address_of, is_openai
from pipeline.errors import SettingsError


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
    address = address_of(url)

    assert (address.url, address.host, address.is_loopback) == (url, host, is_loopback)
    assert not is_openai(address)


def test_without_a_base_url_it_is_openai() -> None:
    assert is_openai(address_of(None))


def test_the_host_keeps_no_user_name_or_password() -> None:
    assert address_of("https://me:secret@embed.example.org:8443/v1").host == (
        "embed.example.org:8443"
    )


@pytest.mark.parametrize(
    "url", ["localhost:11434", "ftp://example.org", "http://", "http://a:port", "http://[::1"]
)
def test_what_is_no_http_url_is_refused_by_the_name_of_its_setting(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^embedding\.base_url "):
        address_of(url)
