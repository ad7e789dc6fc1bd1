import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from cli.embedded.layout import Layout
from cli.embedded.sockets import private_folder
from cli.embedded.stack import open_stack
from cli.embedded.status import inspect
from pipeline.errors import UsageError
from tests.integration.cli.embedded.support import make_folder, pids_of


def use(state: Path) -> None:
    with open_stack(state, postgres=True, valkey=True):
        pass


@pytest.fixture(scope="module")
def opened() -> Iterator[Path]:
    """Give the state folder of a stack that is open: for tests that only look at it."""
    folder = make_folder()
    with open_stack(folder, postgres=True, valkey=True):
        yield folder
    shutil.rmtree(folder)


def test_both_servers_answer_while_the_stack_is_open_and_are_gone_after(fresh: Path) -> None:
    with open_stack(fresh, postgres=True, valkey=True) as stack:
        assert stack.servers.database_url is not None
        assert stack.servers.redis_url is not None
        with psycopg.connect(stack.servers.database_url) as connection:
            connection.execute("CREATE EXTENSION vector")
            assert connection.info.dbname == "recallwatch"
            assert connection.info.server_version >= 180000
        with redis.Redis.from_url(stack.servers.redis_url) as client:
            assert client.ping()
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        folder = Path(stack.servers.redis_url.removeprefix("unix://")).parent
    assert not pids_of(fresh)
    assert not folder.exists()


def test_what_was_written_is_there_at_the_next_start(state: Path) -> None:
    with open_stack(state, postgres=True, valkey=True) as stack:
        with psycopg.connect(str(stack.servers.database_url)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        with redis.Redis.from_url(str(stack.servers.redis_url)) as client:
            client.set("kept", "42")
    with open_stack(state, postgres=True, valkey=True) as stack:
        with psycopg.connect(str(stack.servers.database_url)) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
        with redis.Redis.from_url(str(stack.servers.redis_url)) as client:
            assert client.get("kept") == b"42"


def test_only_what_is_asked_for_starts(fresh: Path) -> None:
    with open_stack(fresh, postgres=False, valkey=True) as stack:
        assert stack.servers.database_url is None
        assert inspect(fresh).postgres is None
        assert not (fresh / "postgres").exists()


def test_texts_sort_by_code_point_and_know_letters_beyond_ascii(opened: Path) -> None:
    with psycopg.connect(str(inspect(opened).servers.database_url)) as connection:
        ordered = connection.execute("SELECT 'Z' < 'a', lower('ÄȘ'), 'a' < 'ä'").fetchone()
        encoding = connection.execute("SHOW server_encoding").fetchone()
    assert ordered == (True, "äș", True)
    assert encoding == ("UTF8",)


def test_no_server_listens_on_the_network(opened: Path) -> None:
    assert len(pids_of(opened)) > 2
    for pid in pids_of(opened):
        assert not psutil.Process(pid).net_connections(kind="inet")


def test_servers_lead_sessions_of_their_own_so_that_ctrl_c_spares_them(opened: Path) -> None:
    seen = inspect(opened)
    assert seen.postgres is not None
    assert seen.valkey is not None
    for pid in (seen.postgres.pid, seen.valkey.pid):
        assert os.getsid(pid) == pid


def test_the_users_own_postgres_variables_do_not_reach_the_server(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    monkeypatch.setenv("PGDATA", "/nowhere")
    with open_stack(state, postgres=True, valkey=False) as stack:
        url = f"{stack.servers.database_url}&port=5432"
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "name", ["my project, größe's", "p" * 200 + "/" + "q" * 200], ids=["special", "long"]
)
def test_any_place_will_do(scratch: Path, name: str) -> None:
    state = scratch / name / ".recallwatch"
    with open_stack(state, postgres=True, valkey=True) as stack:
        with psycopg.connect(str(stack.servers.database_url)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with redis.Redis.from_url(str(stack.servers.redis_url)) as client:
            client.set("place", name)
    assert (state / "valkey" / "dump.rdb").exists()


def test_a_state_folder_that_is_a_file_is_one_clear_error(scratch: Path) -> None:
    file = scratch / "file"
    file.touch()
    with (
        pytest.raises(UsageError, match=r"file: (File exists|Not a directory).*state_dir"),
        open_stack(file, postgres=True, valkey=True),
    ):
        pass


def test_data_of_another_postgres_version_are_refused_and_left_alone(fresh: Path) -> None:
    (fresh / "postgres").mkdir(parents=True)
    version = fresh / "postgres" / "PG_VERSION"
    version.write_text("16\n")
    with pytest.raises(UsageError, match="written by PostgreSQL 16, and the embedded one is 18"):
        use(fresh)
    assert version.read_text() == "16\n"


def test_a_folder_of_other_things_in_the_place_of_the_data_is_refused(fresh: Path) -> None:
    (fresh / "postgres").mkdir(parents=True)
    (fresh / "postgres" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not a PostgreSQL data folder, though not empty"):
        use(fresh)


def test_a_start_that_fails_quotes_the_log_and_leaves_nothing_running(state: Path) -> None:
    use(state)
    (state / "postgres" / "global" / "pg_control").unlink()
    with pytest.raises(UsageError, match=r"did not start: .*pg_control.*log: .*postgres\.log"):
        use(state)
    assert not pids_of(state)
    assert not private_folder(Layout.of(state).mark).exists()


def test_a_data_folder_that_others_may_enter_is_closed_again(state: Path) -> None:
    use(state)
    (state / "postgres").chmod(0o777)
    use(state)
    assert (state / "postgres").stat().st_mode & 0o777 == 0o700


def test_valkey_data_that_cannot_be_read_are_set_aside(fresh: Path) -> None:
    with (
        open_stack(fresh, postgres=False, valkey=True) as stack,
        redis.Redis.from_url(str(stack.servers.redis_url)) as client,
    ):
        client.set("lost", "1")
    (fresh / "valkey" / "dump.rdb").write_bytes(b"REDIS0011 torn")
    with (
        open_stack(fresh, postgres=False, valkey=True) as stack,
        redis.Redis.from_url(str(stack.servers.redis_url)) as client,
    ):
        assert client.get("lost") is None
    assert (fresh / "valkey" / "dump.unreadable").read_bytes() == b"REDIS0011 torn"


def test_without_the_binaries_the_error_says_what_to_do(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.embedded.postgres.find_spec", lambda _: None)
    with (
        pytest.raises(UsageError, match=r"no PostgreSQL binaries for this machine.*DATABASE_URL"),
        open_stack(fresh, postgres=True, valkey=False),
    ):
        pass
    monkeypatch.setattr("cli.embedded.valkey.find_spec", lambda _: None)
    with (
        pytest.raises(UsageError, match=r"no Valkey binary for this machine.*REDIS_URL"),
        open_stack(fresh, postgres=False, valkey=True),
    ):
        pass


def test_a_server_whose_binary_cannot_run_here_is_one_clear_error(
    fresh: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alien = scratch / "bin" / "valkey-server"
    alien.parent.mkdir()
    alien.write_bytes(b"\x7fELF of another machine")
    alien.chmod(0o755)
    monkeypatch.setattr("cli.embedded.valkey.binary", lambda: alien)
    with (
        pytest.raises(UsageError, match=r"valkey-server cannot be run.*Exec format error"),
        open_stack(fresh, postgres=False, valkey=True),
    ):
        pass


def test_the_state_folder_keeps_itself_out_of_git(opened: Path) -> None:
    assert (opened / ".gitignore").read_text() == "*\n"
