"""A secret from the environment, or from a file that the environment names (Docker's secrets).

OPENAI_API_KEY=sk-... is the value itself, OPENAI_API_KEY_FILE=/run/secrets/openai_api_key the file.
"""

from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import SettingsError

SUFFIX = "_FILE"

MAX_BYTES = 64 * 1024
"""Of a file: more is no key, no password and no URL."""


def secret(name: str, environment: Mapping[str, str]) -> str | None:
    """Return what a variable holds, or the file that `<name>_FILE` names; None: neither is set.

    Blanks around it are left out, and an empty variable counts as unset. Raises SettingsError,
    which never quotes the value, where both are set, and where the file cannot be read, is empty,
    above MAX_BYTES or not UTF-8.
    """
    value = environment.get(name, "").strip()
    file = environment.get(name + SUFFIX, "").strip()
    if value and file:
        raise SettingsError(f"environment {name}: {name}{SUFFIX} is set too: unset one of the two")
    return (value or None) if not file else _read(Path(file), f"environment {name}{SUFFIX}")


def known(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the same; None where it cannot be had, which is told where it is needed."""
    try:
        return secret(name, environment)
    except SettingsError:
        return None


def _read(file: Path, place: str) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = getattr(error, "strerror", None) or "no name of a file"
        raise SettingsError(f"{place}: {file} cannot be read: {reason}") from None
    if len(content) > MAX_BYTES:
        raise SettingsError(f"{place}: {file} is larger than {MAX_BYTES:,} bytes: name another")
    try:
        value = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise SettingsError(f"{place}: {file} is not UTF-8 text: name another") from None
    if not value:
        raise SettingsError(f"{place}: {file} is empty: write the value into it")
    return value
