import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.alerts.message import Alert
from pipeline.alerts.webhook import SCHEMA, body, signature, verify
from tests.unit.pipeline.alerts.examples import regressed

NOW = 1_700_000_000

# printf '1700000000.{"a": 1}' | openssl dgst -sha256 -hmac whsec-canary
BY_OPENSSL = "53876e8c903aa73ba2eafc832f9d141a27fc71d0005f41a017eedeeaeef3016b"
HEADER = f"t={NOW},v1={BY_OPENSSL}"


def test_the_signature_is_the_one_that_openssl_makes() -> None:
    assert signature("whsec-canary", b'{"a": 1}', NOW) == HEADER


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_a_receiver_takes_it_within_the_tolerance(seconds: int) -> None:
    assert verify("whsec-canary", HEADER, b'{"a": 1}', NOW + seconds)


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_receiver_refuses_an_old_or_early_one(seconds: int) -> None:
    assert not verify("whsec-canary", HEADER, b'{"a": 1}', NOW + seconds)


@pytest.mark.parametrize(
    ("secret", "header", "payload"),
    [
        ("another", HEADER, b'{"a": 1}'),
        ("whsec-canary", HEADER, b'{"a": 2}'),
        ("whsec-canary", HEADER.replace("t=1700000000", "t=1700000001"), b'{"a": 1}'),
        ("whsec-canary", HEADER.replace("v1=5", "v1=6"), b'{"a": 1}'),
        ("whsec-canary", HEADER.replace("v1=", "v0="), b'{"a": 1}'),
        ("whsec-canary", f"v1={BY_OPENSSL}", b'{"a": 1}'),
        ("whsec-canary", f"t={NOW}", b'{"a": 1}'),
        ("whsec-canary", f"{HEADER},t={NOW}", b'{"a": 1}'),
        ("whsec-canary", f"t=,v1={BY_OPENSSL}", b'{"a": 1}'),
        ("whsec-canary", "", b'{"a": 1}'),
    ],
)
def test_a_receiver_refuses_anything_else(secret: str, header: str, payload: bytes) -> None:
    assert not verify(secret, header, payload, NOW)


def test_a_receiver_takes_any_of_several_signatures_while_secrets_change() -> None:
    header = f"t={NOW}, v1={'0' * 64}, v1={BY_OPENSSL}"

    assert verify("whsec-canary", header, b'{"a": 1}', NOW)


@given(st.text(), st.binary())
def test_no_header_makes_the_check_fail_with_an_error(header: str, payload: bytes) -> None:
    assert not verify("secret", header, payload, NOW)


def test_the_body_names_its_schema_and_holds_the_alert() -> None:
    values = json.loads(body(regressed()))

    assert values.pop("schema") == SCHEMA == "recallwatch.alert/1"
    assert Alert.from_json(values) == regressed()
