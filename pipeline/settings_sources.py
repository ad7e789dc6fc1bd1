"""Where settings come from: recallwatch.toml and the environment."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from pipeline.errors import SettingsError
from pipeline.settings import Settings
from pipeline.settings_schema import dotted_keys

FILE_NAME = "recallwatch.toml"
CONFIG_VARIABLE = "RECALLWATCH_CONFIG"

PREFIX = "RECALLWATCH_"
DELIMITER = "__"
WELL_KNOWN = (
    "DATABASE_URL",
    "CORPUS_URL",
    "REDIS_URL",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "SLACK_WEBHOOK_URL",
)
"""Read without the prefix as well: other tools use the same names. With the prefix wins."""

NOT_SETTINGS = (CONFIG_VARIABLE, "RECALLWATCH_DEBUG")
"""Variables of the command line that begin with the prefix."""


def find_file(path: Path | None) -> Path | None:
    """Return the settings file: the one named, or in RECALLWATCH_CONFIG, or the nearest.

    The nearest recallwatch.toml is looked for in this folder and those above it, up to the home
    folder or the root. Raises SettingsError where a file that was named is not there.
    """
    named = path or (Path(os.environ[CONFIG_VARIABLE]) if _given(CONFIG_VARIABLE) else None)
    if named is None:
        return next((f / FILE_NAME for f in _upward(Path.cwd()) if (f / FILE_NAME).is_file()), None)
    if not named.exists():
        by = "--config" if path else f"environment {CONFIG_VARIABLE}"
        raise SettingsError(f"{named}: no such file (named by {by}); `recallwatch init` writes one")
    return named.absolute()


def read_file(file: Path, label: str) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises SettingsError that names the line."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{label}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{label}: not UTF-8 text (byte {error.start + 1})") from error
    except tomllib.TOMLDecodeError as error:
        reason, where = _split_position(str(error))
        raise SettingsError(f"{label}: {where}: {reason}") from error


class Environment(EnvSettingsSource):
    """RECALLWATCH_<SECTION>__<KEY> and the well-known names; empty counts as unset.

    A list is JSON or separated by commas, a table is JSON.
    """

    def __init__(self) -> None:
        super().__init__(Settings, env_prefix=PREFIX, env_nested_delimiter=DELIMITER)
        self.names = {_key(name): name for name in _prefixed()}
        known = {_key(PREFIX + name): name for name in WELL_KNOWN if _given(name)}
        self.names = known | self.names
        self.env_vars = {
            (PREFIX + key.replace(".", DELIMITER)).lower(): os.environ[name].strip()
            for key, name in self.names.items()
        }

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: str) -> Any:  # noqa: ANN401 - pydantic-settings' signature
        """Decode a list or table; what cannot be is left as it is, for validation to name."""
        if value.startswith(("[", "{")):
            try:
                return super().decode_complex_value(field_name, field, value)
            except ValueError:
                return value
        annotation: Any = field.annotation if field else None
        if get_origin(annotation) is not list:
            return value
        (item,) = get_args(annotation)
        return [_convert(part.strip(), TypeAdapter(item)) for part in value.split(",")]

    def faults(self) -> list[str]:
        """Return a line for each variable that is no setting."""
        return [
            _unknown_variable(name)
            for key, name in self.names.items()
            if key.partition(".")[0] not in Settings.model_fields
        ]


def _convert(text: str, item: TypeAdapter[Any]) -> Any:  # noqa: ANN401 - the list's item type
    try:
        return item.validate_python(text)
    except ValidationError:
        return text


def _given(name: str) -> bool:
    return bool(os.environ.get(name, "").strip())


def _prefixed() -> Iterator[str]:
    """Yield the variables that are ours; the rest of the environment is not looked at."""
    for name in sorted(os.environ):
        if name.upper().startswith(PREFIX) and name not in NOT_SETTINGS and _given(name):
            yield name


def _key(name: str) -> str:
    return name[len(PREFIX) :].lower().replace(DELIMITER, ".")


def _unknown_variable(name: str) -> str:
    near = get_close_matches(_key(name), dotted_keys(), n=1)
    if near:
        hint = f"did you mean {PREFIX}{near[0].replace('.', DELIMITER).upper()}?"
    else:
        hint = (
            f"allowed: {PREFIX}<SECTION>{DELIMITER}<KEY>, as `recallwatch config show` lists them"
        )
    return f"environment {name}: no such setting; {hint}"


def _upward(folder: Path) -> Iterator[Path]:
    home = _home()
    for here in (folder, *folder.parents):
        yield here
        if here == home:
            return


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a container's user often has none
        return None


def _split_position(message: str) -> tuple[str, str]:
    """Split tomllib's "reason (at line 3, column 5)" into the reason and the position."""
    found = re.fullmatch(r"(?s)(.*) \(at (.*)\)", message)
    return (found[1], found[2]) if found else (message, "invalid TOML")


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return dotted key -> value of nested tables; a list is one value."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
