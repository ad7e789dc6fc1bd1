"""Which servers a URL reaches, and whether anything protects them."""

from pathlib import Path
from urllib.parse import quote

import pytest
from celery import Celery
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from redis import Redis
from sqlalchemy import create_engine, make_url

from pipeline.server_urls import (
    check_postgres,
    check_readable,
    check_redis,
    passwords,
    unprotected_host,
)
from workers.app import broker_url

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
    "url", ["postgresql:///app", "postgresql://localhost/app", "postgresql:///app?host=/run/pg",
            "postgresql://localhost/app?hostaddr="],
)  # fmt: skip
def test_an_address_in_the_environment_wins_over_any_host_of_the_url(url: str) -> None:
    assert unprotected_host(url, {"PGHOSTADDR": "10.0.0.5"}) == "10.0.0.5"
    assert unprotected_host(url, {"PGHOSTADDR": "127.0.0.1"}) is None
    assert unprotected_host(url, {"PGHOSTADDR": "10.0.0.5", "PGPASSWORD": "pw"}) is None


def test_an_address_of_the_url_wins_over_one_in_the_environment() -> None:
    url = "postgresql://localhost/app?hostaddr=127.0.0.1"
    assert unprotected_host(url, {"PGHOSTADDR": "10.0.0.5"}) is None


def test_a_host_without_an_address_of_its_own_counts() -> None:
    hosts = "postgresql:///app?host=localhost,db.example.org&hostaddr=127.0.0.1"
    assert unprotected_host(f"{hosts},", {}) == AWAY
    assert unprotected_host(hosts, {}) == AWAY
    assert unprotected_host(f"{hosts},127.0.0.2", {}) is None


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
        "postgresql://localhost/d#?host=canary",
        "postgresql://localhost/d?application_name=a#&host=canary",
        "postgresql://[::1],canary/d",
        "postgresql://[::1]canary/d",
        "postgresql://localhost,canary/d",
        "postgresql://u@canary@localhost/d",
    ],
)
def test_a_url_that_programs_read_differently_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be read|cannot be seen") as caught:
        check_readable(url)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "option"),
    [
        ("postgresql://u@/d?host=canary&host=localhost", "the option host"),
        ("postgresql://u@/d?host=canary&host=", "the option host"),
        ("postgresql://u@/d?host=canary&h%6Fst=localhost", "the option host"),
        ("postgresql://u@/d?hostaddr=127.0.0.1&port=1&hostaddr=canary", "the option hostaddr"),
        ("unix:///run/s?db=1&db=2", "the option db"),
        ("postgresql://u:1?canary=w&canary=x@h/d", "an option"),
        ("postgresql:///d?CANARY=w&CANARY=x", "an option"),
    ],
)
def test_an_option_that_is_repeated_is_refused(url: str, option: str) -> None:
    with pytest.raises(ValueError, match=f"^repeats {option}: give it once$"):
        check_readable(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://h/d?foo=canary", "^holds the option foo, which libpq does not know"),
        ("postgresql://h/d?ssl=true", "the option ssl, which"),
        ("postgresql://h/d?foo", "the option foo"),
        ("postgresql://u:1?canary=w@h/d", "holds an option, which"),
        ("postgresql://h/d?host=a;canary=b", "cannot be read"),
        ("postgresql://h/d?host=%zzcanary", "cannot be read"),
    ],
)
def test_what_the_two_clients_of_postgresql_do_not_both_take_is_refused(
    url: str, words: str
) -> None:
    check_readable(url)
    with pytest.raises(ValueError, match=words) as caught:
        check_postgres(url)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql://u:p%2F%3B@h:1/d",
        "postgresql:///d?host=h1,h2&port=1,2&sslmode=require&options=-c%20geqo%3Doff",
        "postgresql://[::1]:5432/d?connect_timeout=5&application_name=x",
    ],
)
def test_what_is_taken_both_clients_of_postgresql_take(url: str) -> None:
    check_readable(url)
    check_postgres(url)

    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    _, arguments = engine.dialect.create_connect_args(engine.url)
    arguments.pop("context")  # SQLAlchemy's own, for types
    assert conninfo_to_dict(url) == conninfo_to_dict(make_conninfo(**arguments))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://localhost?host=10.0.0.5", "the option host, which not both clients know"),
        ("redis://localhost?foo=bar", r"a redis:// URL may have: none$"),
        ("redis://localhost?foo", "the option foo"),
        ("redis://localhost?db=1", "the option db"),
        ("redis://localhost?password=canary", "the option password"),
        ("redis://localhost?socket_timeout=5", "the option socket_timeout"),
        ("redis://localhost?virtual_host=1", "the option virtual_host"),
        ("redis://localhost?credential_provider=os.x", "the option credential_provider"),
        ("redis://localhost?ssl_cert_reqs=none", "the option ssl_cert_reqs"),
        ("redis://:1?canary=w@h", "holds an option, which"),
        ("rediss://h?ssl_min_version=1", "may have: ssl_cert_reqs, ssl_check_hostname, ssl_ca"),
        ("rediss://h?ssl_cert_reqs=canary", r"value of ssl_cert_reqs that .* none\|optional"),
        ("rediss://h?ssl_check_hostname=0", "value of ssl_check_hostname"),
        ("rediss://h?ssl_ca_certs=", "value of ssl_ca_certs"),
        ("unix:///run/s?virtual_host=1", "may have: db, username, password"),
        ("unix:///run/s?db=canary", "value of db"),
        ("redis://localhost/canary", "must end with the number of its database"),
        ("redis://localhost/0/", "must end with the number of its database"),
        ("redis://localhost/0;redis://canary", "holds a semicolon"),
        ("redis://:p;canary@localhost/0", "holds a semicolon"),
    ],
)
def test_what_the_two_clients_of_redis_do_not_both_take_is_refused(url: str, words: str) -> None:
    check_readable(url)
    with pytest.raises(ValueError, match=words) as caught:
        check_redis(url)
    assert "canary" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://h/",
        "redis://u:p%3B@h:1/2",
        "rediss://h/1?ssl_cert_reqs=optional&ssl_check_hostname=False",
        "rediss://h?ssl_ca_certs=/ca.pem&ssl_ca_path=/ca&ssl_ciphers=DEFAULT",
        "rediss://h?ssl_cert_reqs=none&ssl_certfile=/c.pem&ssl_keyfile=/k.pem&ssl_password=p",
        "unix:///run/s",
        "unix:///run/s?db=3&username=u&password=p",
    ],
)
def test_what_is_taken_both_clients_of_redis_take(url: str) -> None:
    check_readable(url)
    check_redis(url)

    pool = Redis.from_url(url).connection_pool
    pool.connection_class(**pool.connection_kwargs)
    connection = Celery(broker=broker_url(url), set_as_current=False).connection_for_write()
    assert (connection.transport.driver_type, connection.alt) == ("redis", [])


PASSWORDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)


@given(PASSWORDS)
def test_the_password_is_the_one_that_the_clients_would_send(password: str) -> None:
    encoded = quote(password, safe="")
    postgres, redis = f"postgresql://u:{encoded}@h/d", f"redis://:{encoded}@h"
    sent = Redis.from_url(redis).connection_pool.connection_kwargs["password"]
    assert conninfo_to_dict(postgres)["password"] == sent == password
    check_postgres(postgres)
    check_redis(redis)
    for url in (postgres, redis):
        check_readable(url)
        assert set(passwords(url)) == {encoded, password}


def test_passwords_in_a_query_are_found_too() -> None:
    url = "postgresql:///d?host=h&password=open%40sesame&sslpassword=key"
    assert set(passwords(url)) == {"open@sesame", "key"}
    assert passwords("rediss://h?ssl_password=key") == ["key"]


def test_a_url_without_a_password_has_none() -> None:
    assert passwords("postgresql://u@h/d?sslmode=require") == []
