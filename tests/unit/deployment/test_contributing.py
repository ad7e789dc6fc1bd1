"""CONTRIBUTING.md: what it says of the dependencies and the checks is so."""

import re
import tomllib

from tests.conftest import REPOSITORY
from tests.unit.deployment.files import read


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=]", requirement)[0].lower()


def explained(heading: str) -> list[str]:
    """Return the first column of the table under a heading, in its order."""
    section = read("CONTRIBUTING.md").partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    return [
        name.lower()
        for name in re.findall(r"^\| `([\w-]+)[^`]*` \| .+ \|$", section, flags=re.MULTILINE)
    ]


def test_each_dependency_has_its_reason() -> None:
    project = tomllib.loads(read("pyproject.toml"))
    runtime = project["project"]["dependencies"]
    assert explained("At run time") == sorted(name_of(each) for each in runtime)
    development = project["dependency-groups"]["dev"]
    assert explained("For development") == sorted(name_of(each) for each in development)


def test_each_make_target_that_it_names_exists() -> None:
    named = set(re.findall(r"`make (\w+)", read("CONTRIBUTING.md")))
    targets = set(re.findall(r"^(\w+):", read("Makefile"), flags=re.MULTILINE))
    assert named >= {"test", "lint", "types", "imports", "format", "lock"}
    assert named <= targets


def test_each_file_that_it_names_exists() -> None:
    paths = set(re.findall(r"`((?:\w+/)+[\w.]*)`", read("CONTRIBUTING.md")))
    assert paths
    assert [path for path in sorted(paths) if not (REPOSITORY / path).exists()] == []
