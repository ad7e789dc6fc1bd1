"""Load the settings: defaults, over them recallwatch.toml, over that the environment.

The only reader of either. What is wrong is said in one line a fault: which file or environment
variable, which key, what was given, what is allowed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.alerts.settings import secret_values
from pipeline.errors import SettingsError
from pipeline.retrieval.strategies import variables_of
from pipeline.secret_files import known
from pipeline.server_urls import unprotected_host
from pipeline.settings import ENVIRONMENT_ONLY, Settings
from pipeline.settings_faults import explain, unknown_key
from pipeline.settings_sources import (
    BEYOND_READING,
    Environment,
    find_file,
    flatten,
    read_file,
)

DEFAULT = "default"

IN_FILE = Settings.model_fields.keys() - set(ENVIRONMENT_ONLY)
"""The keys that the top level of recallwatch.toml may hold."""


@dataclass(frozen=True)
class LoadedSettings:
    """The effective settings, and where each came from.

    `origins`: dotted key -> "default", the file's name, or "environment DATABASE_URL".
    `file`: the settings file, if there is one. `root`: its folder, else the current one;
    the settings' own folders are already resolved against it.
    """

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None
    root: Path

    def secret_values(self) -> list[str]:
        """Return what logs must not show: the secrets of settings, channels and strategies."""
        of_channels = secret_values(self.settings.alerts.channels, os.environ)
        names = variables_of(self.settings.strategies)
        of_strategies = [value for name in names if (value := known(name, os.environ))]
        return self.settings.secret_values() + of_channels + of_strategies


def load_settings(path: Path | None = None) -> LoadedSettings:
    """Load the settings; `path` is the value of --config.

    Raises SettingsError with one line for each fault.
    """
    file = find_file(path)
    label = _label(file) if file else ""
    try:
        return _load(file, label)
    except RecursionError as error:
        raise SettingsError(f"settings: {BEYOND_READING}") from error


def _load(file: Path | None, label: str) -> LoadedSettings:
    in_file = read_file(file, label) if file else {}
    environment = Environment()
    in_environment = environment()
    origins = dict.fromkeys(flatten(in_file), label) | _variables(environment, in_environment)
    faults = [*_forbidden(in_file, label), *environment.faults()]
    known = {key: value for key, value in in_file.items() if key in IN_FILE}
    settings = _validate(_merge(known, in_environment), origins, label, faults)
    root = file.parent if file else Path.cwd()
    _check_protection(settings, origins)
    folders = {name: root / getattr(settings, name) for name in ("state_dir", "python_folder")}
    settings = settings.model_copy(update=folders)
    defaults = dict.fromkeys(flatten(settings.model_dump()), DEFAULT)
    return LoadedSettings(settings, defaults | origins, file, root)


def _label(file: Path) -> str:
    """Return the shortest name that is right from here."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def _variables(environment: Environment, values: Mapping[str, Any]) -> dict[str, str]:
    """Return for each key that the environment sets the variable that sets it."""
    by_depth = sorted(environment.names, key=lambda key: key.count("."))
    return {
        key: f"environment {environment.names[name]}"
        for name in by_depth
        for key in flatten(values)
        if key == name or key.startswith(f"{name}.")
    }


def _forbidden(values: Mapping[str, Any], label: str) -> list[str]:
    """Return a line for each key of the file's top level that may not stand there.

    These never reach `Settings`: it would take a key with a leading underscore, as `_env_file`,
    for an option of pydantic-settings.
    """
    secret = [
        f"{label}: {key}: only from the environment ({key.upper()}), as files get committed"
        for key in ENVIRONMENT_ONLY
        if key in values
    ]
    unknown = [key for key in values if key not in {*IN_FILE, *ENVIRONMENT_ONLY}]
    return secret + [unknown_key((key,), lambda _: label) for key in unknown]


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one tree of tables over another; lists are replaced whole."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged


def _validate(
    values: Mapping[str, Any], origins: Mapping[str, str], label: str, faults: list[str]
) -> Settings:
    """Make the settings, or raise SettingsError with the faults known so far and all others."""
    try:
        settings = Settings(**values)
    except ValidationError as error:
        details = error.errors(include_url=False)
        found = [explain(d, lambda key: _source_of(key, origins) or label) for d in details]
        raise SettingsError("\n".join(faults + found)) from error
    if faults:
        raise SettingsError("\n".join(faults))
    return settings


def _check_protection(settings: Settings, origins: Mapping[str, str]) -> None:
    """Raise SettingsError with a line for each server elsewhere that is reached without password.

    Whoever reaches such a broker can start tasks and read questions, and such a database has all.
    """
    if settings.allow_no_password:
        return
    urls = {name: getattr(settings, name) for name in ("database_url", "corpus_url", "redis_url")}
    faults = [
        f"{origins[name]}: {name}: holds no password, and {host} is not this machine: add one,"
        " or set allow_no_password = true (RECALLWATCH_ALLOW_NO_PASSWORD=true)"
        for name, url in urls.items()
        if url and (host := unprotected_host(url.get_secret_value(), os.environ))
    ]
    if faults:
        raise SettingsError("\n".join(faults))


def _source_of(key: str, origins: Mapping[str, str]) -> str:
    """Return where a key was set; of a table, where its keys were."""
    for table in (key, key.rpartition(".")[0]):  # a key that is missing: where its table is
        within = [v for k, v in origins.items() if k == table or k.startswith(f"{table}.")]
        if within:
            return " and ".join(dict.fromkeys(within))
    return ""
