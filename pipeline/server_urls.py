"""URLs of PostgreSQL and Redis: whether they can be read, and what protects the server.

Messages never quote more than the host and options' names: a URL holds a password.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, parse_qsl, unquote, urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from pipeline.alerts.address import is_loopback

SECRET_OPTIONS = ("password", "sslpassword", "ssl_password", "oauth_client_secret",
                  "scram_client_key", "scram_server_key")  # fmt: skip
"""What a URL's query may hold that must not be shown."""

# What libpq takes in a password's place: https://www.postgresql.org/docs/current/libpq-envars.html.
_POSTGRES_OPTIONS = ("password", "passfile", "service", "sslcert")
_POSTGRES_VARIABLES = ("PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSSLCERT")
_PASSWORD_FILE = ".pgpass"  # noqa: S105 - a file's name
_REDIS_OPTIONS = ("ssl_certfile",)

# What both clients of a Redis URL understand, and alike: redis-py's connections take their own
# arguments, kombu only ssl_ ones, as they are, and `workers.app.broker_url` translates a socket's.
_ANY = ".+"
_REDIS_TAKES: Mapping[str, Mapping[str, str]] = {
    "redis": {},
    "rediss": {
        "ssl_cert_reqs": "none|optional|required",
        "ssl_check_hostname": "(?i:true|false)",
        **dict.fromkeys(
            ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password",
             "ssl_ciphers"), _ANY,
        ),
    },
    "unix": {"db": "[0-9]+", "username": _ANY, "password": _ANY},
}  # fmt: skip


def check_readable(url: str) -> None:
    """Raise ValueError where account, hosts and options cannot be told apart for certain."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        unquote(parts.netloc, errors="strict").encode()
    except ValueError:
        raise ValueError(_UNREADABLE) from None
    account, _, hosts = parts.netloc.rpartition("@")
    beyond_brackets = re.fullmatch(r"\[[^]]*](:\d*)?|[^][]*", hosts) is None
    # The clients know no fragment: to them, what stands there are options.
    if beyond_brackets or "," in hosts or "@" in account or "#" in url:
        raise ValueError(_UNREADABLE)
    if not url.isprintable():
        raise ValueError("holds a character that cannot be seen: copy it again")
    # Of an option that is repeated some clients take the first, some the last, and some all.
    given = Counter(name for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    if repeated := [name for name, times in given.items() if times > 1]:
        raise ValueError(f"repeats {_shown(repeated[0], parts)}: give it once")


_UNREADABLE = (
    "cannot be read: write special characters of user and password as %XX (/ is %2F), and"
    " several hosts as ?host=a,b&port=1,2"
)


def check_postgres(url: str) -> None:
    """Raise ValueError for a readable PostgreSQL URL that libpq or SQLAlchemy would not take."""
    parts = urlsplit(url)
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if name not in known:
            raise ValueError(f"holds {_shown(name, parts)}, which libpq does not know: take it out")
    try:
        conninfo_to_dict(url)
    except ProgrammingError:  # its message may quote the URL
        raise ValueError(_UNREADABLE) from None


def check_redis(url: str) -> None:
    """Raise ValueError for a readable Redis URL that one of its two clients would not take."""
    if ";" in url:
        # kombu would fail over to what stands behind it.
        raise ValueError("holds a semicolon: name one server, and write ; in a password as %3B")
    parts = urlsplit(url)
    if parts.scheme != "unix" and not re.fullmatch(r"/?[0-9]*", parts.path):
        raise ValueError("must end with the number of its database, as in redis://host:6379/0")
    takes = _REDIS_TAKES[parts.scheme]
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in takes:
            raise ValueError(
                f"holds {_shown(name, parts)}, which not both clients know; a {parts.scheme}:// URL"
                f" may have: {', '.join(takes) or 'none'}"
            )
        if not re.fullmatch(takes[name], value):
            raise ValueError(f"has a value of {name} that does not match {takes[name]}")


def _shown(option: str, parts: SplitResult) -> str:
    """Return an option with its name, unless that may be a part of a password."""
    is_word = re.fullmatch("[a-z_]{1,40}", option) and "@" not in parts.query
    return f"the option {option}" if is_word else "an option"


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
    """Return where libpq connects to: of each host its address, where one is known."""
    options = _options(parts)
    addresses = options.get("hostaddr") or environment.get("PGHOSTADDR") or ""
    hosts = options.get("host") or unquote(parts.hostname or "") or environment.get("PGHOST") or ""
    both = zip_longest(addresses.split(","), hosts.split(","), fillvalue="")
    return [address or host for address, host in both]


def _redis_hosts(parts: SplitResult) -> Sequence[str]:
    return [] if parts.scheme == "unix" else [unquote(parts.hostname or "")]


def _is_local(host: str) -> bool:
    # Empty: a socket or localhost. libpq takes a path, or a name behind an @, for a socket.
    return not host or host.startswith(("/", "@")) or is_loopback(host)


def _libpq_knows_one(environment: Mapping[str, str]) -> bool:
    home = environment.get("HOME")
    has_file = home is not None and Path(home, _PASSWORD_FILE).is_file()
    return has_file or any(map(environment.get, _POSTGRES_VARIABLES))
