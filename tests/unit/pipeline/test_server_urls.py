"""Which servers a URL reaches, and whether anything protects them."""

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from redis import Redis

from pipeline.server_urls import check_readable, passwords, unprotected_host

AWAY = "db.example.org"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("postgresql://db.example.org/app", AWAY),
        ("postgresql://user@db.example.org:5432/app", AWAY),
        ("postgresql://user:@db.example.org/app", AWAY),
        ("postgresql:///app?host=db.example.org", AWAY),
        ("postgresql:///app?host=/run/pg,db.example.org", AWAY),
        ("postgresql:///app?host=localhost&hostaddr=10.0.0.1", "10.0.0.1"),
        ("postgresql://10.0.0.1/app", "10.0.0.1"),
        ("postgresql://[fd00::1]/app", "fd00::1"),
        ("postgresql://postgres/app", "postgres"),
        ("postgresql://localhost.example.org/app", "localhost.example.org"),
        ("redis://redis:6379/0", "redis"),
        ("redis://user@redis", "redis"),
        ("redis://user:@redis", "redis"),
        ("rediss://cache.example.org", "cache.example.org"),
        ("redis://[fd00::1]:6379", "fd00::1"),
    ],
)
def test_another_machine_without_a_password_is_named(url: str, host: str) -> None:
    assert unprotected_host(url, {}) == host


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///app",
        "postgresql://user@/app?host=/var/run/postgresql",
        "postgresql://%2Fvar%2Frun%2Fpostgresql/app",
        "postgresql://localhost/app",
        "postgresql://127.0.0.1:5432/app",
        "postgresql://[::1]/app",
        "postgresql:///app?host=@abstract",
        "redis://",
        "redis://localhost:6379/1",
        "redis://127.0.0.1",
        "unix:///run/valkey.sock?db=0",
    ],
)
def test_this_machine_needs_no_password(url: str) -> None:
    assert unprotected_host(url, {}) is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:pw@db.example.org/app",
        "postgresql://db.example.org/app?user=u&password=pw",
        "postgresql://db.example.org/app?passfile=/run/secrets/pgpass",
        "postgresql://db.example.org/app?sslmode=verify-full&sslcert=/c.pem&sslkey=/k.pem",
        "postgresql://db.example.org/?service=app",
        "redis://:pw@redis:6379/0",
        "redis://user:pw@redis",
        "redis://redis?password=pw",
        "rediss://redis?ssl_certfile=/c.pem&ssl_keyfile=/k.pem",
    ],
)
def test_a_password_or_a_certificate_in_the_url_protects(url: str) -> None:
    assert unprotected_host(url, {}) is None


@pytest.mark.parametrize("variable", ["PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSSLCERT"])
def test_what_libpq_looks_up_by_itself_protects_postgresql_only(variable: str) -> None:
    environment = {variable: "x"}
    assert unprotected_host("postgresql://db.example.org/app", environment) is None
    assert unprotected_host("redis://db.example.org", environment) == AWAY


def test_the_users_password_file_protects_postgresql(tmp_path: Path) -> None:
    url, environment = "postgresql://db.example.org/app", {"HOME": str(tmp_path)}
    assert unprotected_host(url, environment) == AWAY
    (tmp_path / ".pgpass").touch()
    assert unprotected_host(url, environment) is None


def test_a_host_that_libpq_takes_from_the_environment_counts() -> None:
    assert unprotected_host("postgresql:///app", {"PGHOST": AWAY}) == AWAY
    assert unprotected_host("postgresql://localhost/app", {"PGHOST": AWAY}) is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:canary/w@h/d",
        "postgresql://u:canary[@h/d",
        "postgresql://[::1/canary",
        "postgresql://h1:1,h2:2/canary",
        "postgresql://h:99999/canary",
        "postgresql://%ff/canary",
        "redis://:canary#w@h",
        "redis://h:canary",
        "redis://:can\tary@h",
    ],
)
def test_a_url_that_programs_read_differently_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be read|cannot be seen") as caught:
        check_readable(url)
    assert "canary" not in str(caught.value)


PASSWORDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)


@given(PASSWORDS)
def test_the_password_is_the_one_that_the_clients_would_send(password: str) -> None:
    encoded = quote(password, safe="")
    postgres, redis = f"postgresql://u:{encoded}@h/d", f"redis://:{encoded}@h"
    sent = Redis.from_url(redis).connection_pool.connection_kwargs["password"]
    assert conninfo_to_dict(postgres)["password"] == sent == password
    for url in (postgres, redis):
        check_readable(url)
        assert set(passwords(url)) == {encoded, password}


def test_passwords_in_a_query_are_found_too() -> None:
    url = "postgresql:///d?host=h&password=open%40sesame&sslpassword=key"
    assert set(passwords(url)) == {"open@sesame", "key"}


def test_a_url_without_a_password_has_none() -> None:
    assert passwords("postgresql://u@h/d?sslmode=require") == []
