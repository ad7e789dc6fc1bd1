"""Dockerfile: what gets into the image, and who runs in it."""

import re
import tomllib
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.unit.deployment.files import compose, dockerfile, read


def packages() -> list[str]:
    """Return the top-level packages that pyproject.toml ships."""
    project = tomllib.loads(read("pyproject.toml"))
    include = project["tool"]["setuptools"]["packages"]["find"]["include"]
    return [pattern.removesuffix("*") for pattern in include]


def copied() -> list[str]:
    """Return what is copied from the checkout."""
    copies = [line.split()[1:-1] for line in dockerfile() if line.startswith("COPY ")]
    return [name for names in copies if not names[0].startswith("--from") for name in names]


def test_every_package_of_the_project_is_copied_and_no_other_code() -> None:
    files = [name for name in copied() if (REPOSITORY / name).is_file()]
    assert sorted(set(copied()) - set(files)) == sorted(packages())
    assert sorted(files) == ["LICENSE", "README.md", "pyproject.toml", "requirements.lock"]


def test_every_package_of_the_project_is_named_in_pyproject() -> None:
    outside = {"tests", "bench"}
    in_checkout = {path.parent.name for path in REPOSITORY.glob("*/__init__.py")}
    assert in_checkout - outside == set(packages())


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    lines = [line for line in read(".dockerignore").splitlines() if line and line[0] != "#"]
    assert lines[0] == "*"
    assert sorted(line[1:] for line in lines if line[0] == "!") == sorted(copied())


def test_dependencies_are_those_of_the_lock_checked_by_their_hashes() -> None:
    download, install = (line for line in dockerfile() if re.search(r"\bpip\b.*wheels", line))
    assert "pip download " in download
    assert "--require-hashes" in download
    assert "--requirement requirements.lock" in download
    assert "--no-index --find-links /wheels" in install


def test_the_image_runs_as_an_ordinary_user_that_owns_no_code() -> None:
    final = dockerfile()[max(n for n, line in enumerate(dockerfile()) if line.startswith("FROM")) :]
    assert "USER recallwatch" in final
    assert not any(line.startswith("COPY --chown") for line in final)
    assert final.index("USER recallwatch") > max(
        n for n, line in enumerate(final) if line.startswith(("COPY", "RUN"))
    )


def test_the_image_holds_no_setting_and_no_secret() -> None:
    environment = [line for line in dockerfile() if line.startswith(("ENV", "ARG"))]
    assert not re.search(r"PASSWORD|_KEY|_URL|SECRET|TOKEN", " ".join(environment))


def test_python_is_one_that_the_project_supports() -> None:
    versions = {
        tuple(map(int, match[1].split(".")))
        for line in dockerfile()
        if (match := re.match(r"FROM python:([\d.]+)-slim\b", line))
    }
    lowest = tomllib.loads(read("pyproject.toml"))["project"]["requires-python"]
    assert len(versions) == 1
    assert versions.pop() >= tuple(map(int, lowest.removeprefix(">=").split(".")))


def test_compose_builds_this_file() -> None:
    built = {service.get("build") for service in compose()["services"].values()} - {None}
    assert built == {"."}
    assert (REPOSITORY / Path("Dockerfile")).is_file()
