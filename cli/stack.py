"""`recallwatch up` and `recallwatch status`: what runs on this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NoReturn

import click
from rich.console import Console

from cli.context import Context, pass_context
from cli.embedded.locks import FileLock
from cli.embedded.stack import Stack
from cli.embedded.status import ProcessState, StackState, inspect
from cli.lazy import examples
from cli.output import Column, clean, print_json, table
from cli.servers import open_servers
from pipeline.errors import TransientError, UsageError
from pipeline.schedules import upcoming
from pipeline.settings import Settings

LOOK = 0.5
"""Seconds between two looks at the processes and their log."""

PATIENCE = 15
"""Seconds that beat gets to end before it is killed."""


@click.command(
    epilog=examples(
        "recallwatch up",
        "DATABASE_URL=postgresql://... REDIS_URL=redis://... recallwatch up",
    )
)
@pass_context
def up(context: Context) -> None:
    """Run servers, workers and the schedule in the foreground, until Ctrl-C.

    Servers are started where none are configured. Other commands share what runs here; your own
    processes can too, with the two URLs that are printed.
    """
    from cli.workers import beat_command, ensure_workers

    with open_servers(context) as opened, _only_one(context.settings.state_dir):
        settings = opened.work.settings
        ensure_workers(opened.stack, settings)
        schedule = settings.state_dir / "beat-schedule"
        beat = subprocess.Popen(
            beat_command(str(schedule)), start_new_session=True, stdout=sys.stderr
        )
        try:
            _wait_for_worker(opened.stack)
            _announce(context.console, opened.stack, settings)
            _follow(opened.stack, beat, settings.state_dir / "log" / "worker.log")
        except KeyboardInterrupt:
            context.console.print("stopping")
        finally:
            _end(beat)


@contextmanager
def _only_one(state_dir: Path) -> Iterator[None]:
    """Refuse a second `up` in the same folder: it would ring everything twice."""
    lock = FileLock(state_dir / "up.lock")
    try:
        if not lock.try_to_own():
            raise UsageError("recallwatch up runs in this folder already; see: recallwatch status")
        yield
    finally:
        lock.close()


def _wait_for_worker(stack: Stack) -> None:
    """Return when a worker answers; raises UsageError when ours ended instead."""
    from workers.presence import answering

    while not answering(LOOK):
        stack.check_workers()


def _announce(console: Console, stack: Stack, settings: Settings) -> None:
    """Print how another process reaches the embedded servers."""
    urls = {"DATABASE_URL": stack.servers.database_url, "REDIS_URL": stack.servers.redis_url}
    for name, url in urls.items():
        if url is not None:
            console.print(f"export {name}='{url}'", soft_wrap=True)
    console.print(
        f"ready: {settings.queue.workers} worker processes and the schedule; Ctrl-C stops",
        soft_wrap=True,
    )
    coming = upcoming(settings.schedule, datetime.now(UTC))
    if coming is not None:
        schedule, due = coming
        when = f"{due.astimezone(schedule.zone):%a %Y-%m-%d %H:%M} {schedule.timezone}"
        console.print(f"next scheduled batch: {schedule.name}, {when}", soft_wrap=True)


def _follow(stack: Stack, beat: "subprocess.Popen[bytes]", log_file: Path) -> NoReturn:
    """Show the workers' log as it grows; raises when a process ends by itself."""
    with log_file.open("r", encoding="utf-8", errors="replace") as log:
        log.seek(0, os.SEEK_END)
        while True:
            _show_new(log)
            stack.check_workers()
            if beat.poll() is not None:
                raise TransientError(f"beat ended with exit code {beat.returncode}; see above")
            time.sleep(LOOK)


def _show_new(log: IO[str]) -> None:
    while line := log.readline():
        click.echo(clean(line), nl=False, err=True)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@click.command(epilog=examples("recallwatch status", "recallwatch status --json"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def status(context: Context, as_json: bool) -> None:
    """Show the embedded servers and workers of this folder. Starts nothing."""
    state = inspect(context.settings.state_dir)
    if as_json:
        print_json(state)
        return
    columns: list[str | Column] = [
        "what",
        Column("state", wrap=True),
        Column("pid", right=True),
        "since",
    ]
    context.console.print(table(None, columns, _rows(context.settings, state)))


def _rows(settings: Settings, state: StackState) -> list[list[object]]:
    servers = (
        ("PostgreSQL", settings.database_url, state.postgres),
        ("Valkey", settings.redis_url, state.valkey),
    )
    rows: list[list[object]] = []
    for name, url, process in servers:
        if url is not None:
            rows.append([name, "your own: see recallwatch doctor", None, None])
        else:
            rows.append([name, *_process(process)])
    rows += [["worker", *_process(worker)] for worker in state.workers]
    rows += [["used by", user.label, user.pid, _local(user)] for user in state.users]
    size = (state.postgres_bytes + state.valkey_bytes + state.log_bytes) / 2**20
    return [*rows, ["data", f"{state.state_dir} ({size:,.0f} MiB)", None, None]]


def _process(process: ProcessState | None) -> list[object]:
    if process is None:
        return ["stopped", None, None]
    return ["running", process.pid, _local(process)]


def _local(process: ProcessState) -> str:
    return process.since.astimezone().strftime("%Y-%m-%d %H:%M:%S")
