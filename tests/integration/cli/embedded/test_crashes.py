"""What a crash leaves behind hinders nothing."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from cli.embedded.account import Account
from cli.embedded.layout import Layout
from cli.embedded.stack import open_stack
from tests.integration.cli.embedded.support import Command, is_alive, pids_of

ENDLESS = b"SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"


def write(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")


def read(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT answer FROM kept").fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def a_process_of_the_servers_account(state: Path) -> Iterator[subprocess.Popen[bytes]]:
    layout = Layout.of(state)
    account = Account.for_servers([layout.postgres, layout.valkey])
    process = subprocess.Popen(
        ["/bin/sleep", "600"], user=account.switch_uid, group=account.switch_gid
    )
    yield process
    assert process.poll() is None, "a process that is none of ours was ended"
    process.kill()
    process.wait()


def test_after_kill_9_of_a_command_the_next_one_uses_and_stops_its_servers(state: Path) -> None:
    killed = Command(state)
    killed.kill()
    assert is_alive(killed.said["postgres"])
    assert is_alive(killed.said["valkey"])

    following = Command(state)
    for server in ("postgres", "valkey", "database_url", "redis_url"):
        assert following.said[server] == killed.said[server]
    assert following.said["users"] == [following.pid]
    assert following.leave() == 0
    assert not pids_of(state)


def test_after_kill_9_of_everything_the_next_command_recovers_the_data(state: Path) -> None:
    killed = Command(state)
    write(killed.said["database_url"])
    with redis.Redis.from_url(killed.said["redis_url"]) as client:
        client.set("saved", "1")
        client.save()
    killed.kill()
    for server in ("postgres", "valkey"):
        psutil.Process(killed.said[server]).kill()

    with open_stack(state, postgres=True, valkey=True) as stack:
        assert read(str(stack.servers.database_url)) == 42
        with redis.Redis.from_url(str(stack.servers.redis_url)) as client:
            assert client.get("saved") == b"1"
    assert not pids_of(state)


def test_a_backend_that_outlives_the_killed_server_is_ended_before_the_next_start(
    state: Path,
) -> None:
    killed = Command(state, "p")
    write(killed.said["database_url"])
    with closing(psycopg.connect(killed.said["database_url"])) as busy:
        # A backend that computes does not notice that its server is gone.
        busy.pgconn.send_query(ENDLESS)
        backend = busy.info.backend_pid
        killed.kill()
        psutil.Process(killed.said["postgres"]).kill()
        assert is_alive(backend)
        with open_stack(state, postgres=True, valkey=False) as stack:
            assert not is_alive(backend)
            assert read(str(stack.servers.database_url)) == 42


def test_a_crash_while_another_command_uses_the_stack_is_mended_by_the_next(state: Path) -> None:
    staying = Command(state)
    psutil.Process(staying.said["valkey"]).kill()
    following = Command(state)
    assert following.said["valkey"] != staying.said["valkey"]
    assert following.said["postgres"] == staying.said["postgres"]
    assert following.said["redis_url"] == staying.said["redis_url"]
    following.leave()
    staying.leave()
    assert not pids_of(state)


def test_stale_pid_files_whose_numbers_live_on_as_other_processes_are_no_hindrance(
    state: Path,
) -> None:
    with open_stack(state, postgres=True, valkey=True) as stack:
        write(str(stack.servers.database_url))
    with a_process_of_the_servers_account(state) as other:
        lines = [other.pid, state / "postgres", 1, 5432, state, "", "1 1", "ready"]
        text = "\n".join(str(line) for line in lines)
        (state / "postgres" / "postmaster.pid").write_text(text)
        (state / "valkey" / "valkey.pid").write_text(f"{other.pid}\n")
        (state / "users.json").write_text(
            f'[{{"pid": {other.pid}, "birth": "of another", "label": "gone"}}]'
        )
        with open_stack(state, postgres=True, valkey=True) as stack:
            assert read(str(stack.servers.database_url)) == 42


@pytest.mark.parametrize("content", ["", "12", "\x00\x00", "-7\n/nowhere\n", "not a number\n"])
def test_half_written_files_are_no_hindrance(fresh: Path, content: str) -> None:
    with open_stack(fresh, postgres=False, valkey=True):
        pass
    for name in ("valkey/valkey.pid", "users.json", "workers.json"):
        (fresh / name).write_text(content)
    with open_stack(fresh, postgres=False, valkey=True):
        pass
    assert not pids_of(fresh)


def test_a_half_written_postmaster_pid_is_no_hindrance(state: Path) -> None:
    with open_stack(state, postgres=True, valkey=False):
        pass
    for content in ("", "12", "not a number\n"):
        (state / "postgres" / "postmaster.pid").write_text(content)
        with open_stack(state, postgres=True, valkey=False) as stack:
            conn = psycopg.connect(str(stack.servers.database_url))
            assert conn.execute("SELECT 1").fetchone() == (1,)
            conn.close()


def test_an_interrupted_first_start_is_begun_anew(fresh: Path) -> None:
    abandoned = fresh / "postgres-new-abandoned"
    abandoned.mkdir(parents=True)
    (abandoned / "PG_VERSION").write_text("18\n")
    with open_stack(fresh, postgres=True, valkey=False) as stack:
        psycopg.connect(str(stack.servers.database_url)).close()
    assert not abandoned.exists()


def test_servers_whose_state_folder_was_removed_make_way_for_new_ones(state: Path) -> None:
    killed = Command(state)
    killed.kill()
    shutil.rmtree(state)
    following = Command(state)
    assert following.said["postgres"] != killed.said["postgres"]
    assert not is_alive(killed.said["postgres"])
    assert not is_alive(killed.said["valkey"])
    assert following.leave() == 0
    assert not pids_of(state)


def test_a_server_that_is_stopping_is_started_anew(state: Path) -> None:
    killed = Command(state, "p")
    killed.kill()
    os.kill(killed.said["postgres"], signal.SIGINT)
    with open_stack(state, postgres=True, valkey=False) as stack:
        psycopg.connect(str(stack.servers.database_url)).close()
        assert not is_alive(killed.said["postgres"])
    assert not pids_of(state)


def test_servers_that_run_but_do_not_answer_are_replaced(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = Command(state)
    killed.kill()
    for server in ("postgres", "valkey"):
        os.kill(killed.said[server], signal.SIGSTOP)
    monkeypatch.setattr("cli.embedded.server.SILENT_SECONDS", 0.1)
    monkeypatch.setattr("cli.embedded.postgres._ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("cli.embedded.valkey._ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("cli.embedded.postgres.Postgres.emergency_steps", ((signal.SIGKILL, 10.0),))
    with open_stack(state, postgres=True, valkey=True) as stack:
        psycopg.connect(str(stack.servers.database_url)).close()
        assert not is_alive(killed.said["postgres"])
        assert not is_alive(killed.said["valkey"])
