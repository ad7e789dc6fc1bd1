"""Commands that run at the same time share one stack, and the last one stops it."""

import signal
from pathlib import Path

import pytest

from cli.embedded.status import inspect
from tests.integration.cli.embedded.support import Command, is_alive, pids_of


def test_commands_share_the_servers_and_the_last_one_stops_them(state: Path) -> None:
    first = Command(state)
    assert first.said["postgres"]
    second = Command(state)
    for server in ("postgres", "valkey", "database_url", "redis_url"):
        assert second.said[server] == first.said[server]
    assert second.said["users"] == [first.pid, second.pid]

    assert first.leave() == 0
    assert is_alive(second.said["postgres"])
    assert is_alive(second.said["valkey"])
    assert [user.pid for user in inspect(state).users] == [second.pid]

    assert second.leave() == 0
    assert not pids_of(state)


def test_commands_that_begin_at_the_same_moment_share_one_start(fresh: Path) -> None:
    commands = [Command(fresh) for _ in range(3)]
    assert len({command.said["postgres"] for command in commands}) == 1
    assert len({command.said["valkey"] for command in commands}) == 1
    for command in commands:
        assert command.leave() == 0
    assert not pids_of(fresh)


def test_a_command_may_add_the_server_that_the_first_one_did_not_need(state: Path) -> None:
    first = Command(state, "v")
    assert first.said["postgres"] is None
    second = Command(state, "pv")
    assert second.said["valkey"] == first.said["valkey"]
    assert second.leave() == 0
    # The first one needs no PostgreSQL, but it uses the stack: only the last one stops anything.
    assert is_alive(second.said["postgres"])
    assert first.leave() == 0
    assert not pids_of(state)


def test_commands_with_different_temporary_folders_share_the_servers(
    state: Path, scratch: Path
) -> None:
    other = scratch / "tmp"
    other.mkdir()
    first = Command(state, environment={"TMPDIR": str(other)})
    assert str(other) in first.said["redis_url"]
    second = Command(state)
    assert second.said["redis_url"] == first.said["redis_url"]
    assert second.said["database_url"] == first.said["database_url"]
    first.leave()
    second.leave()
    assert not pids_of(state)
    assert not list(other.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_end_stops_the_stack(fresh: Path, number: signal.Signals) -> None:
    command = Command(fresh, "v")
    assert command.said["valkey"]
    assert command.send(number) != 0
    assert not pids_of(fresh)


def test_inspecting_starts_nothing_and_makes_no_folder(fresh: Path) -> None:
    seen = inspect(fresh)
    assert (seen.postgres, seen.valkey, seen.workers, seen.users) == (None, None, (), ())
    assert seen.servers.database_url is None
    assert seen.postgres_bytes == 0
    assert not fresh.exists()


def test_inspecting_shows_servers_users_and_sizes(state: Path) -> None:
    command = Command(state)
    assert command.said
    seen = inspect(state)
    assert seen.postgres is not None
    assert seen.postgres.pid == command.said["postgres"]
    assert seen.servers.database_url == command.said["database_url"]
    assert seen.servers.redis_url == command.said["redis_url"]
    assert [user.pid for user in seen.users] == [command.pid]
    assert seen.users[0].since <= seen.postgres.since
    # An empty cluster of PostgreSQL 18 takes about 40 MB.
    assert 30e6 < seen.postgres_bytes < 200e6
    assert seen.log_bytes > 0
    command.leave()
    after = inspect(state)
    assert (after.postgres, after.valkey, after.users) == (None, None, ())
