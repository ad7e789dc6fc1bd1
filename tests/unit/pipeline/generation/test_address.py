import pytest

from pipeline.errors import SettingsError
from pipeline.generation.address import address_of, is_anthropic


def test_without_a_base_url_it_is_anthropic() -> None:
    address = address_of(None)

    assert (address.url, address.host) == ("https://api.anthropic.com", "api.anthropic.com")
    assert is_anthropic(address)


def test_another_server_is_not_anthropic() -> None:
    assert not is_anthropic(address_of("https://gateway.example.org/anthropic"))


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://example.org", "http://", "http://a:port"])
def test_what_is_no_http_url_is_refused_by_the_name_of_its_setting(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^generation\.base_url "):
        address_of(url)
