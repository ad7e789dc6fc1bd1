"""The recallwatch.toml that `recallwatch init` writes, made from the settings' own models.

Every setting stands there as a comment with its default, so the file changes nothing until a
line's `# ` is taken away.
"""

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import PurePath

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pipeline.retrieval.strategies import BUILT_IN
from pipeline.schedules import WEEKLY
from pipeline.settings import ENVIRONMENT_ONLY, Settings

HEAD = """\
# Settings of recallwatch. A line as "# key = value" shows a default (or, for what has none, an
# example): take the "# " away to set it. Environment variables override this file: DATABASE_URL,
# CORPUS_URL, REDIS_URL, and RECALLWATCH_<SECTION>__<KEY>, as RECALLWATCH_EVAL__K=10.
# OPENAI_API_KEY, VOYAGE_API_KEY, COHERE_API_KEY, TEI_API_KEY, ANTHROPIC_API_KEY and
# SLACK_WEBHOOK_URL are read from the environment only. Each of the nine may also be given as
# <NAME>_FILE, a file that holds the value.
"""

VARIANT = """\
# Another strategy of any kind, beside these; name it in eval.strategies or with --strategy.
# [strategies.vector-ef200]
# kind = "vector"
# ef_search = 200
"""

MODEL = """\
# Another embedding model, for `recallwatch compare-embeddings --model bge`: the keys are those of
# the table [embedding], see docs/comparing_models.md.
# [models.bge]
# provider = "tei"
# model = "BAAI/bge-m3"
# base_url = "http://localhost:8080"
"""

SCHEDULE = """\
# Batches that start by themselves, a [[schedule]] each: without any there is the weekly one, and
# with schedule = [] at the top of this file none. Workers read this when they start.
# [[schedule]]
"""

CHANNEL = """\
# Who is told what: a channel of kind slack, webhook or email, under a name of yours. Addresses and
# secrets are read from the environment. Without on and rules it gets every alert; docs/alerts.md.
# [alerts.channels.team]
# kind = "slack"
# url_env = "SLACK_WEBHOOK_URL"
# on = ["regressed", "unmeasured", "recovered", "golden_stale"]
# rules = ["noise", "exact", "threshold", "floor", "must_pass", "max_failed", "failed"]
# min_severity = "warning"
"""


def settings_template() -> str:
    """Return the text of a recallwatch.toml that loads and changes nothing."""
    defaults = Settings()
    fields = Settings.model_fields
    tables = {name: getattr(defaults, name) for name in fields}
    sections = {name: table for name, table in tables.items() if isinstance(table, BaseModel)}
    elsewhere = {*sections, *ENVIRONMENT_ONLY, "strategies", "schedule", "models"}
    top = [
        _line(name, fields[name], getattr(defaults, name))
        for name in fields
        if name not in elsewhere
    ]
    blocks = [
        *(_block(name, table) for name, table in sections.items()),
        *(_block(f"strategies.{name}", strategy) for name, strategy in BUILT_IN.items()),
    ]
    return "\n".join([HEAD, *top, "", *blocks, VARIANT, MODEL, _schedule(), CHANNEL])


def _schedule() -> str:
    """Return the default schedule; `every` stands in cron's description, whose place it takes."""
    lines = [line for line in _lines(WEEKLY) if not line.startswith("# every ")]
    return SCHEDULE + "\n".join([*lines, ""])


def _block(name: str, table: BaseModel) -> str:
    """Return a table's header and its keys."""
    return "\n".join([f"# {_purpose(table)}", f"[{name}]", *_lines(table), ""])


def _purpose(table: BaseModel) -> str:
    """Return the first sentence of the model's docstring."""
    return (type(table).__doc__ or "").partition("\n")[0].strip()


def _lines(table: BaseModel) -> Iterator[str]:
    for name, field in type(table).model_fields.items():
        if name != "channels":  # a table of its own, which CHANNEL shows
            yield _line(name, field, getattr(table, name))


def _line(name: str, field: FieldInfo, default: object) -> str:
    shown = default
    if default is None:
        (shown,) = field.examples or [name]
    return f"# {name} = {_toml(shown)}  # {field.description}"


def _toml(value: object) -> str:
    """Write a value as TOML does; strings and lists are written as in JSON."""
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, Enum):
        value = value.value
    return json.dumps(str(value) if isinstance(value, PurePath) else value)
