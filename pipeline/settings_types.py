"""The types of settings that need a rule of their own: URLs, names, folders."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from pipeline.server_urls import check_postgres, check_readable, check_redis

MAX_K = 1000


class Section(BaseModel):
    """A table of recallwatch.toml: unknown keys are refused, values never change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_default=True, allow_inf_nan=False
    )


def _check_scheme(url: str, *schemes: str) -> str:
    """Return what follows the scheme; the message never quotes more, as a URL holds a password."""
    scheme, colon, rest = url.partition("://")
    if not colon or scheme not in schemes:
        given = f", not {scheme}://" if colon and scheme.isalnum() else ""
        *others, last = (f"{name}://" for name in schemes)
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(f"must be a URL that starts with {allowed}{given}")
    return rest


def _check_postgres_url(given: SecretStr) -> SecretStr:
    """Take the spellings that other tools use; hand on the one that libpq documents."""
    text = given.get_secret_value().strip()
    rest = _check_scheme(text, "postgresql", "postgres", "postgresql+psycopg")
    url = f"postgresql://{rest}"
    check_readable(url)
    check_postgres(url)
    return SecretStr(url)


def _check_redis_url(url: SecretStr) -> SecretStr:
    _check_scheme(url.get_secret_value(), "redis", "rediss", "unix")
    check_readable(url.get_secret_value())
    check_redis(url.get_secret_value())
    return url


def _check_secret_http_url(url: SecretStr) -> SecretStr:
    _check_scheme(url.get_secret_value(), "https", "http")
    return url


def _check_http_url(url: str) -> str:
    """Refuse what could hold a secret: files get committed, and every run's record has the URL."""
    _check_scheme(url, "https", "http")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("is not a URL") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must end with its path and hold no user, password or query: it is stored")
    return url


def _check_visible(name: str) -> str:
    if not name.isprintable():
        raise ValueError("holds a character that cannot be seen: take it out")
    return name


def _check_folder(path: Path) -> Path:
    _check_visible(str(path))
    if path == Path():
        raise ValueError("must be a folder of its own, as .recallwatch")
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"no home folder is known for {path}") from error


Share = Annotated[float, Field(ge=0, le=1)]
Visible = Annotated[str, AfterValidator(_check_visible)]
Identifier = Annotated[Visible, Field(min_length=1, max_length=63)]
StrategyName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]
PostgresUrl = Annotated[SecretStr, AfterValidator(_check_postgres_url)]
RedisUrl = Annotated[SecretStr, AfterValidator(_check_redis_url)]
WebhookUrl = Annotated[SecretStr, AfterValidator(_check_secret_http_url)]
HttpUrl = Annotated[str, AfterValidator(_check_http_url)]
Folder = Annotated[Path, AfterValidator(_check_folder)]
