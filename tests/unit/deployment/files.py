"""The deployment files, read as the programs read that use them."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from tests.conftest import REPOSITORY

ENVIRONMENT = {"POSTGRES_PASSWORD": "canary-one", "REDIS_PASSWORD": "canary-two"}
"""All that docker-compose.yml may ask for."""

_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<other>[^}]*))?\})")


class MissingVariableError(Exception):
    """A variable that the file requires is unset or empty."""


def interpolate(text: str, environment: Mapping[str, str]) -> str:
    """Put variables in as Compose does: `$$`, `${A}`, `${A:-default}`, `${A:?message}`.

    Raises MissingVariableError, also for `${A}`, of which Compose only warns.
    """

    def value(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "$"
        given = environment.get(match["name"], "")
        if given or match["kind"] == "-":
            return given or match["other"]
        raise MissingVariableError(match["name"])

    return _VARIABLE.sub(value, text)


def compose(environment: Mapping[str, str] = ENVIRONMENT) -> dict[str, Any]:
    """Return docker-compose.yml with its anchors merged and its variables put in."""
    resolved: dict[str, Any] = _resolve(yaml.safe_load(read("docker-compose.yml")), environment)
    return resolved


def _resolve(value: Any, environment: Mapping[str, str]) -> Any:  # noqa: ANN401 - a YAML tree
    if isinstance(value, dict):
        return {key: _resolve(item, environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, environment) for item in value]
    return interpolate(value, environment) if isinstance(value, str) else value


def procfile() -> dict[str, list[str]]:
    """Return process type -> words of its command, of the Procfile."""
    lines = (line.partition(":") for line in read("Procfile").splitlines())
    return {name: shlex.split(interpolate(command, {})) for name, _, command in lines}


def dockerfile() -> list[str]:
    """Return the Dockerfile's instructions, one a line, without comments."""
    text = re.sub(r"^#.*\n", "", read("Dockerfile"), flags=re.MULTILINE)
    return [line for line in text.replace("\\\n", "").splitlines() if line]


def read(name: str) -> str:
    """Return the text of a file of the repository."""
    return (REPOSITORY / name).read_text(encoding="utf-8")
