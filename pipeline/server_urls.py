"""URLs of PostgreSQL and Redis: whether they can be read, and what protects the server.

Messages never quote more than the host: a URL holds a password.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from pipeline.alerts.address import is_loopback

SECRET_OPTIONS = ("password", "sslpassword")
"""What a URL's query may hold that must not be shown."""

# What libpq takes in a password's place: https://www.postgresql.org/docs/current/libpq-envars.html.
_POSTGRES_OPTIONS = ("password", "passfile", "service", "sslcert")
_POSTGRES_VARIABLES = ("PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSSLCERT")
_PASSWORD_FILE = ".pgpass"  # noqa: S105 - a file's name
_REDIS_OPTIONS = ("password", "ssl_certfile")


def check_readable(url: str) -> None:
    """Raise ValueError where user, password, host and port cannot be told apart for certain."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        unquote(parts.netloc, errors="strict").encode()
    except ValueError:
        raise ValueError(
            "cannot be read: write special characters of user and password as %XX (/ is %2F), and"
            " several hosts as ?host=a,b&port=1,2"
        ) from None
    if not url.isprintable():
        raise ValueError("holds a character that cannot be seen: copy it again")


def passwords(url: str) -> list[str]:
    """Return the passwords that a URL holds, each as it stands there and decoded."""
    parts = urlsplit(url)
    options = _options(parts)
    raw = [parts.password or "", *(options.get(name, "") for name in SECRET_OPTIONS)]
    return list(dict.fromkeys(form for each in raw for form in (each, unquote(each)) if form))


def unprotected_host(url: str, environment: Mapping[str, str]) -> str | None:
    """Return another machine that the URL reaches without any password; None: there is none.

    This machine and sockets need none. A client certificate counts as a password, and so does,
    for PostgreSQL, what libpq looks up by itself: a service, a password file, PGPASSWORD.
    """
    parts = urlsplit(url)
    is_postgres = parts.scheme == "postgresql"
    hosts = _postgres_hosts(parts, environment) if is_postgres else _redis_hosts(parts)
    away = [host for host in hosts if not _is_local(host)]
    taken = _POSTGRES_OPTIONS if is_postgres else _REDIS_OPTIONS
    if not away or parts.password or any(map(_options(parts).get, taken)):
        return None
    return None if is_postgres and _libpq_knows_one(environment) else away[0]


def _options(parts: SplitResult) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(parts.query).items()}


def _postgres_hosts(parts: SplitResult, environment: Mapping[str, str]) -> Sequence[str]:
    options = _options(parts)
    named = options.get("hostaddr") or options.get("host") or unquote(parts.hostname or "")
    return (named or environment.get("PGHOSTADDR") or environment.get("PGHOST") or "").split(",")


def _redis_hosts(parts: SplitResult) -> Sequence[str]:
    return [] if parts.scheme == "unix" else [unquote(parts.hostname or "")]


def _is_local(host: str) -> bool:
    # Empty: a socket or localhost. libpq takes a path, or a name behind an @, for a socket.
    return not host or host.startswith(("/", "@")) or is_loopback(host)


def _libpq_knows_one(environment: Mapping[str, str]) -> bool:
    home = environment.get("HOME")
    has_file = home is not None and Path(home, _PASSWORD_FILE).is_file()
    return has_file or any(map(environment.get, _POSTGRES_VARIABLES))
