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
from pipeline.secret_files import SUFFIX, secret
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
    "VOYAGE_API_KEY",
    "COHERE_API_KEY",
    "TEI_API_KEY",
    "ANTHROPIC_API_KEY",
    "SLACK_WEBHOOK_URL",
)
"""Read without the prefix as well: other tools use the same names. With the prefix wins."""

ROOT = 0

MAX_FILE_BYTES = 2**20

BEYOND_READING = "nested too deeply, or a number with too many digits: write it shorter"
"""What is said where Python's own readers give up."""

NOT_SETTINGS = (CONFIG_VARIABLE, "RECALLWATCH_DEBUG")
"""Variables of the command line that begin with the prefix."""


def find_file(path: Path | None) -> Path | None:
    """Return the settings file: the one named, or in RECALLWATCH_CONFIG, or the nearest.

    The nearest recallwatch.toml is looked for in this folder and those above it, up to the home
    folder or the root. Raises SettingsError where a file that was named is not there, and where
    the nearest is a stranger's: it says to which server questions and keys go.
    """
    named = path or (Path(os.environ[CONFIG_VARIABLE]) if _given(CONFIG_VARIABLE) else None)
    if named is None:
        return _nearest(Path.cwd())
    if not _exists(named):
        by = "--config" if path else f"environment {CONFIG_VARIABLE}"
        raise SettingsError(f"{named}: no such file (named by {by}); `recallwatch init` writes one")
    return named.absolute()


def _nearest(here: Path) -> Path | None:
    found = next((f / FILE_NAME for f in _upward(here) if (f / FILE_NAME).is_file()), None)
    if found is not None and _owner(found) not in {os.geteuid(), ROOT, _owner(here)}:
        raise SettingsError(
            f"{found}: belongs to another user, as this folder does not: name it with --config if"
            " you trust it"
        )
    return found


def _owner(path: Path) -> int:
    return path.stat().st_uid


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # a name too long for any file
        return False


def read_file(file: Path, label: str) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises SettingsError that names the line."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise SettingsError(f"{label}: larger than {MAX_FILE_BYTES:,} bytes: no settings file")
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{label}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{label}: not UTF-8 text (byte {error.start + 1})") from error
    except tomllib.TOMLDecodeError as error:
        reason, where = _split_position(str(error))
        raise SettingsError(f"{label}: {where}: {reason}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{label}: {BEYOND_READING}") from error


class Environment(EnvSettingsSource):
    """RECALLWATCH_<SECTION>__<KEY> and the well-known names; empty counts as unset.

    A list is JSON or separated by commas, a table is JSON. `<NAME>_FILE`, of a well-known name,
    names a file that holds the value. Raises SettingsError where that cannot be read.
    """

    def __init__(self) -> None:
        super().__init__(Settings, env_prefix=PREFIX, env_nested_delimiter=DELIMITER)
        found = {name: secret(name, os.environ) for name in WELL_KNOWN}
        known = {name: value for name, value in found.items() if value is not None}
        prefixed = {name: os.environ[name].strip() for name in _prefixed()}
        self.names = {_key(PREFIX + name): _given_by(name) for name in known}
        self.names |= {_key(name): name for name in prefixed}
        values = {_key(PREFIX + name): value for name, value in known.items()}
        values |= {_key(name): value for name, value in prefixed.items()}
        self.env_vars = {
            (PREFIX + key.replace(".", DELIMITER)).lower(): value for key, value in values.items()
        }

    def __call__(self) -> dict[str, Any]:
        """Return the values as a tree of tables; raises SettingsError for what none can read."""
        try:
            return super().__call__()
        except (ValueError, RecursionError) as error:
            longest = max(self.names.values(), key=lambda n: len(n) + len(os.environ.get(n, "")))
            raise SettingsError(f"environment {longest[:100]}: {BEYOND_READING}") from error

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: str) -> Any:  # noqa: ANN401 - pydantic-settings' signature
        """Decode a list or table; what cannot be is left as it is, for validation to name."""
        if value.startswith(("[", "{")):
            try:
                return super().decode_complex_value(field_name, field, value)
            except (ValueError, RecursionError):
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


def _given_by(name: str) -> str:
    """Return the variable that gives a well-known one its value: itself, or that of its file."""
    return name if _given(name) else name + SUFFIX


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
