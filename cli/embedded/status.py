"""What runs in the stack at the moment, for `recallwatch status`. Nothing is started."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from cli.embedded import records, workers
from cli.embedded.layout import Layout
from cli.embedded.records import Record
from cli.embedded.server import Server
from cli.embedded.stack import Servers, all_servers

_BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the file system's own."""


@dataclass(frozen=True)
class ProcessState:
    """A process that runs: since when (UTC), and a worker's fingerprint or a command's line."""

    pid: int
    since: datetime
    label: str


@dataclass(frozen=True)
class StackState:
    """The stack as it is. A server that does not run is None; sizes are in bytes on disk."""

    state_dir: Path
    log_dir: Path
    servers: Servers
    postgres: ProcessState | None
    valkey: ProcessState | None
    workers: tuple[ProcessState, ...]
    users: tuple[ProcessState, ...]
    postgres_bytes: int
    valkey_bytes: int
    log_bytes: int


def inspect(state_dir: Path) -> StackState:
    """Look at the stack whose data live in `state_dir`, which need not exist.

    A server counts as running when its process does; whether it answers is for a client to see.
    """
    layout = Layout.of(state_dir)
    valkey, postgres = all_servers(layout)
    valkey_state, postgres_state = _server_state(valkey), _server_state(postgres)
    return StackState(
        state_dir=layout.state,
        log_dir=layout.logs,
        servers=Servers(
            database_url=postgres.url if postgres_state else None,
            redis_url=valkey.url if valkey_state else None,
        ),
        postgres=postgres_state,
        valkey=valkey_state,
        workers=_states(worker.record for worker in workers.find(layout)),
        users=_states(records.read(layout.users)),
        postgres_bytes=_size(layout.postgres),
        valkey_bytes=_size(layout.valkey),
        log_bytes=_size(layout.logs),
    )


def _server_state(server: Server) -> ProcessState | None:
    process = server.find()
    return _state(process.pid, server.title) if process else None


def _states(found: Iterable[Record]) -> tuple[ProcessState, ...]:
    states = (_state(record.pid, record.label) for record in found)
    return tuple(state for state in states if state is not None)


def _state(pid: int, label: str) -> ProcessState | None:
    """Return the state of a process, None if it ended meanwhile."""
    with suppress(psutil.Error):
        return ProcessState(
            pid, datetime.fromtimestamp(psutil.Process(pid).create_time(), UTC), label
        )
    return None


def _size(folder: Path) -> int:
    """Return the disk space that the files below `folder` take; what cannot be read counts 0."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            # Servers remove files while we look.
            with suppress(OSError):
                size += Path(place, name).lstat().st_blocks * _BLOCK_BYTES
    return size
