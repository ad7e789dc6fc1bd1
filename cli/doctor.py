"""`recallwatch doctor`: look at every part, and say what to do about each fault."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import click
from rich.text import Text

from cli.context import Context, pass_context
from cli.lazy import examples
from cli.output import Column, print_json, table
from cli.servers import bring_up_to_date, open_stack_for
from pipeline.errors import RecallwatchError, SettingsError

if TYPE_CHECKING:
    from pipeline.corpus.table import CorpusTable
    from workers.context import Context as WorkContext

OLDEST_POSTGRES = 15
EXIT_FAULT = 3

RECENT = 7
"""Days after which an alert that did not arrive is old news."""

IDLE_AFTER = 5
"""Minutes after which an unfinished run that no worker has anything of is worth a word."""


class Health(StrEnum):
    """How a part is."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"


STYLES = {Health.OK: "green", Health.NOTE: "yellow", Health.FAULT: "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was seen of one part and, where it is not well, what to do."""

    part: str
    health: Health
    seen: str
    advice: str | None = None


Check = Callable[["WorkContext"], Iterator[Finding]]


@click.command(epilog=examples("recallwatch doctor", "recallwatch doctor --json"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def doctor(context: Context, as_json: bool) -> None:
    """Check servers, tables, corpus and model, and say what to do about each fault.

    Exit code 3 says that a fault was found.
    """
    with open_stack_for(context) as (stack, settings):
        from workers.context import Context as WorkContext

        work = WorkContext(settings)
        if stack.servers.database_url is not None:
            bring_up_to_date(work.database, ours=True)
        try:
            found = [finding for check in CHECKS for finding in _run(check, work)]
        finally:
            work.close()
    if as_json:
        print_json(found)
    else:
        columns: list[str | Column] = ["part", "", Column("what was seen, what to do", wrap=True)]
        context.console.print(table(None, columns, [_row(finding) for finding in found]))
    if any(finding.health is Health.FAULT for finding in found):
        click.get_current_context().exit(EXIT_FAULT)


def _row(finding: Finding) -> Sequence[object]:
    advice = f"; {finding.advice}" if finding.advice else ""
    health = Text(finding.health, style=STYLES[finding.health])
    return [finding.part, health, f"{finding.seen}{advice}"]


def _run(check: Check, work: "WorkContext") -> Iterator[Finding]:
    """Turn an error of the part into its finding: its line says what to do already."""
    try:
        yield from check(work)
    except RecallwatchError as error:
        part = check.__name__.removeprefix("_").replace("_", " ")
        yield Finding(part, Health.FAULT, str(error))


def _database(work: "WorkContext") -> Iterator[Finding]:
    from db import revision
    from db.session import server_version

    major = server_version(work.database)
    seen = f"PostgreSQL {major} at {work.database.name}"
    if major < OLDEST_POSTGRES:
        yield Finding("database", Health.FAULT, seen, f"{OLDEST_POSTGRES} or newer is needed")
    else:
        yield Finding("database", Health.OK, seen)
    now, newest = revision.current(work.database), revision.head()
    if now == newest:
        yield Finding("migrations", Health.OK, f"at revision {now}")
    else:
        seen = f"at revision {now or 'none'}, this version is at {newest}"
        yield Finding("migrations", Health.FAULT, seen, "run: recallwatch migrate")


def _queue(work: "WorkContext") -> Iterator[Finding]:
    from workers.presence import broker_facts

    facts = broker_facts(work)
    yield Finding("queue", Health.OK, f"{facts.server} {facts.version}, {facts.memory} used")
    if facts.eviction_policy == "noeviction":
        yield Finding("eviction policy", Health.OK, "noeviction")
    else:
        yield Finding(
            "eviction policy", Health.FAULT, f"{facts.eviction_policy}: may drop queued messages",
            "set maxmemory-policy noeviction (cached vectors expire by themselves)",
        )  # fmt: skip
    waiting = ", ".join(f"{name} {n}" for name, n in facts.waiting.items() if n)
    yield Finding("waiting messages", Health.OK, waiting or "none")


def _workers(_: "WorkContext") -> Iterator[Finding]:
    from workers.presence import answering

    names = answering()
    if names:
        yield Finding("workers", Health.OK, ", ".join(names))
    else:
        yield Finding(
            "workers", Health.NOTE, "none answers",
            "`recallwatch eval` starts its own; recallwatch up keeps some running",
        )  # fmt: skip


def _embedder(work: "WorkContext") -> Iterator[Finding]:
    pause = work.provider_pause()
    paused = pause.look() if pause is not None else None
    if paused is not None:
        yield Finding(
            "embedder", Health.FAULT,
            f"left alone by all workers for {paused.seconds:.0f} s more: {paused.reason}",
            "then start a batch, or resume one: it asks again at once",
        )  # fmt: skip
        return
    embedder = work.embedder()
    vectors, failures = embedder.embed(["does the embedder answer?"])
    if failures:
        yield Finding("embedder", Health.FAULT, failures[0].reason, "choose another model")
    else:
        yield Finding("embedder", Health.OK, f"{embedder.model}, {vectors.shape[1]} dimensions")


def _corpus(work: "WorkContext") -> Iterator[Finding]:
    from pipeline.corpus.statistics import show

    table_seen = work.corpus_table()
    summary = show(work.corpus(), table_seen)
    if not summary.chunks:
        yield Finding("corpus", Health.FAULT, f"{table_seen} is empty",
                      "run: recallwatch corpus load FILE")  # fmt: skip
        return
    yield Finding("corpus", Health.OK, f"{table_seen}: {summary.chunks:,} chunks")
    unexplained = summary.missing_embeddings - summary.blank_contents
    if unexplained > 0:
        yield Finding("embeddings", Health.NOTE, f"{unexplained:,} chunks with text have none",
                      "vector search cannot find them: embed them")  # fmt: skip
    yield from _vector_indexes(work, table_seen)
    yield from _dimensions(work, table_seen.dimensions)


def _vector_indexes(work: "WorkContext", table_seen: "CorpusTable") -> Iterator[Finding]:
    from pipeline.retrieval.serving import unserved
    from pipeline.retrieval.tree import tree_of

    settings = work.settings
    trees = [tree_of(name, settings.strategies) for name in settings.eval.strategies]
    found = {each for tree in trees for each in unserved(work.corpus(), table_seen, tree)}
    for each in sorted(found):
        yield Finding("vector index", Health.NOTE, f"none serves strategy {each.strategy}",
                      f"every search of it compares all chunks; run: {each.creation}")  # fmt: skip


def _dimensions(work: "WorkContext", stored: int | None) -> Iterator[Finding]:
    asked = work.embedder().dimensions
    if stored and asked and stored != asked:
        yield Finding(
            "dimensions", Health.FAULT, f"the corpus has {stored}, the embedder gives {asked}",
            "set [embedding] to the model that the corpus was embedded with",
        )  # fmt: skip
    elif stored:
        yield Finding("dimensions", Health.OK, str(stored))


def _golden_sets(work: "WorkContext") -> Iterator[Finding]:
    from db import golden

    with work.database.begin() as session:
        sets = golden.sets(session)
    if sets:
        said = ", ".join(f"{s.set_name} ({s.active} questions)" for s in sets)
        yield Finding("golden sets", Health.OK, said)
    else:
        yield Finding("golden sets", Health.NOTE, "none",
                      "run: recallwatch golden import FILE")  # fmt: skip


def _runs(work: "WorkContext") -> Iterator[Finding]:
    from db import runs

    with work.database.begin() as session:
        unfinished, idle = runs.unfinished(session), runs.idle(session, minutes=IDLE_AFTER)
    if not idle:
        yield Finding("runs", Health.OK, f"{len(unfinished)} queued or running")
        return
    ids = [str(each.run_id) for each in idle]
    yield Finding(
        "runs", Health.NOTE,
        f"no worker has a shard of run {', '.join(ids)} (queued {idle[0].minutes:.0f} minutes ago)",
        f"start workers (recallwatch up), or end it: recallwatch runs cancel {' '.join(ids)}",
    )  # fmt: skip


def _channels(work: "WorkContext") -> Iterator[Finding]:
    from pipeline.alerts.build import build_channel

    channels = work.settings.alerts.channels
    if not channels:
        yield Finding("channels", Health.NOTE, "none: nobody is told of a regression",
                      "name one in [alerts.channels]")  # fmt: skip
        return
    for name, settings in channels.items():
        try:
            build_channel(name, settings, os.environ, work.settings.alerts.allow_hosts)
        except SettingsError as error:
            # Not a fault: it is the workers' environment that counts.
            yield Finding("channels", Health.NOTE, str(error), "workers need it")
        else:
            yield Finding("channels", Health.OK, name)


def _alerts(work: "WorkContext") -> Iterator[Finding]:
    from db import alerts
    from pipeline.types import AlertState

    with work.database.begin() as session:
        counts = alerts.counts(session, days=RECENT)
    said = ", ".join(f"{n} {state}" for state, n in counts.items()) or "none"
    seen = f"in the last {RECENT} days: {said}"
    if AlertState.UNKNOWN in counts:
        yield Finding(
            "alerts", Health.NOTE, f"{seen}; the unknown may or may not have arrived",
            "look there, and see: recallwatch alerts list --state unknown, then alerts resend",
        )  # fmt: skip
    elif AlertState.FAILED in counts:
        yield Finding(
            "alerts", Health.NOTE, seen,
            "see: recallwatch alerts list --state failed, then alerts resend",
        )  # fmt: skip
    else:
        yield Finding("alerts", Health.OK, seen)


CHECKS: Sequence[Check] = (
    _database, _queue, _workers, _embedder, _corpus, _golden_sets, _runs, _channels, _alerts,
)  # fmt: skip
