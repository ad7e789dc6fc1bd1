"""`recallwatch init` and `recallwatch config`: write the settings file, show what is in effect."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.context import Context, pass_context
from cli.lazy import examples
from pipeline.errors import UsageError

if TYPE_CHECKING:
    from pipeline.settings_loading import LoadedSettings


@click.command(
    epilog=examples("recallwatch init", "recallwatch init --force deploy/recallwatch.toml")
)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@pass_context
def init(context: Context, path: Path | None, force: bool) -> None:
    """Write a commented recallwatch.toml to PATH, or to this folder.

    Each setting stands in it as a comment with its default.
    """
    from cli.settings_template import settings_template
    from pipeline.settings_sources import FILE_NAME

    target = path or context.config_path or Path(FILE_NAME)
    if target.is_dir():
        target /= FILE_NAME
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(settings_template())
    except FileExistsError as error:
        raise UsageError(f"{target}: exists already; --force overwrites it") from error
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
    context.console.print(f"wrote {target}", soft_wrap=True)


@click.group(
    epilog=examples("recallwatch config show", "recallwatch --config ci.toml config show --json")
)
def config() -> None:
    """Show the effective settings."""


@config.command(epilog=examples("recallwatch config show", "recallwatch config show --json"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def show(context: Context, as_json: bool) -> None:
    """Print the settings in effect and where each came from, secrets masked."""
    loaded = context.loaded
    values = _shown(loaded)
    if as_json:
        from cli.output import print_json

        settings = {k: {"value": v, "from": loaded.origins[k]} for k, v in values.items()}
        print_json({"file": loaded.file, "root": loaded.root, "settings": settings})
        return
    file = loaded.file or "none (`recallwatch init` writes one)"
    context.console.print(f"settings file: {file}", soft_wrap=True)
    context.console.print(_table(values, loaded))


def _shown(loaded: "LoadedSettings") -> dict[str, Any]:
    """Return dotted key -> value, ready to be shown."""
    from pipeline.settings_sources import flatten

    return {key: _mask(key, value) for key, value in flatten(loaded.settings.model_dump()).items()}


def _mask(key: str, value: object) -> object:
    """Mask a key whole, and the password alone in a URL."""
    from pydantic import SecretStr

    from pipeline.safe_text import MASK, mask_passwords
    from pipeline.settings import ENVIRONMENT_ONLY

    if key in ENVIRONMENT_ONLY and value is not None:
        return MASK
    if isinstance(value, SecretStr):
        return mask_passwords(value.get_secret_value())
    return mask_passwords(str(value)) if isinstance(value, str | Path) else value


def _table(values: dict[str, Any], loaded: "LoadedSettings") -> Any:  # noqa: ANN401 - a rich Table
    """Lay the settings out as the file does: a header for each table, then its keys."""
    from cli.output import Column, table

    rows: list[tuple[str, str, str]] = []
    section = ""
    for key, value in values.items():
        if key == "schedule" and value:
            for schedule in value:
                rows.append(("[[schedule]]", "", ""))
                rows += [(name, *_cells(each, key, loaded)) for name, each in schedule.items()]
            section = key
            continue
        table_name, name = _split(key)
        if table_name != section:
            section = table_name
            rows.append((f"[{section}]", "", ""))
        rows.append((name, *_cells(value, key, loaded)))
    return table(None, ["key", Column("value", wrap=True), Column("from", wrap=True)], rows)


def _cells(value: object, key: str, loaded: "LoadedSettings") -> tuple[str, str]:
    """Return a setting's value and where it came from."""
    from cli.output import to_json

    text = value if isinstance(value, str) and value else to_json(value)
    return "(unset)" if value is None else text, loaded.origins[key]


def _split(key: str) -> tuple[str, str]:
    """Split a dotted key into its table's name and the rest: strategies have a table each."""
    steps = key.split(".")
    depth = 2 if steps[0] == "strategies" else min(1, len(steps) - 1)
    return ".".join(steps[:depth]), ".".join(steps[depth:])
