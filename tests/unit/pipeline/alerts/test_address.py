import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from pipeline.alerts.address import check_slack_url, check_webhook_url, is_loopback
from pipeline.errors import SettingsError

PLACE = "alerts.channels.team: environment SLACK_WEBHOOK_URL"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST"])
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "example.org", "localhost.example.org", "", "::2"])
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.slack.com/services/T0/B0/x",
        "https://hooks.slack-gov.com/services/T0/B0/x",
        "https://chat.example.org/hooks/x",
        "http://127.0.0.1:8065/hooks/x",
        "http://localhost/x",
    ],
)
def test_webhooks_of_slack_of_an_allowed_host_and_of_this_machine(url: str) -> None:
    check_slack_url(SecretStr(url), PLACE, ["Chat.example.org"])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://example.org/services/canary", "not a URL of hooks.slack.com, but of example.org"),
        ("https://hooks.slack.com.evil.org/services/canary", "allow_host"),
        ("https://hooks.slack.com@evil.org/services/canary", "of evil.org"),
        ("https://hooks.slack.com/triggers/canary", "not an incoming webhook"),
        ("http://hooks.slack.com/services/canary", "must start with https"),
        ("http://chat.example.org/canary", "must start with https"),
        ("hooks.slack.com/services/canary", "must be a URL"),
        ("ftp://hooks.slack.com/services/canary", "must be a URL"),
        ("https:///services/canary", "must be a URL"),
        ("https://hooks.slack.com/services/canary\r\nx: y", "must be a URL"),
        ("https://[::1/canary", "not a URL"),
        ("https://example.org:port/canary", "not a URL"),
        ("https://a..b/canary", "not a URL"),
    ],
)
def test_what_is_no_webhook_of_slack_is_refused_without_quoting_it(url: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_slack_url(SecretStr(url), PLACE, ["chat.example.org"])

    assert said in str(caught.value)
    assert str(caught.value).startswith(PLACE)
    assert "canary" not in str(caught.value)


def test_a_generic_webhook_may_be_anywhere_but_needs_https() -> None:
    check_webhook_url(SecretStr("https://example.org/hook?key=x"), PLACE)
    check_webhook_url(SecretStr("http://127.0.0.1:9000/hook"), PLACE)
    with pytest.raises(SettingsError, match="must start with https"):
        check_webhook_url(SecretStr("http://receiver.internal/hook"), PLACE)


def test_a_generic_webhook_may_be_plain_http_where_that_is_allowed() -> None:
    check_webhook_url(SecretStr("http://receiver.internal/hook"), PLACE, allow_http=True)


@given(st.from_regex(r"https?://[!-~]{1,40}", fullmatch=True) | st.text())
def test_what_passes_is_a_url_that_the_client_can_use(url: str) -> None:
    try:
        check_webhook_url(SecretStr(url), PLACE, allow_http=True)
    except SettingsError:
        return
    assert httpx.Request("POST", url).url.host
