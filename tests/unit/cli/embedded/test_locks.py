import os
import subprocess
import sys
import threading
from pathlib import Path

from cli.embedded.locks import FileLock, exclusive


def test_shared_locks_go_together_and_keep_an_owner_out(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.share()
    second.share()
    assert not first.try_to_own()
    first.share()
    second.close()
    assert first.try_to_own()
    first.close()


def test_exclusive_waits_for_the_holder(tmp_path: Path) -> None:
    order = []
    holder = FileLock(tmp_path / "lock")
    holder.own()

    def wait() -> None:
        with exclusive(tmp_path / "lock"):
            order.append("second")

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.1)
    order.append("first")
    holder.close()
    waiting.join(10)
    assert order == ["first", "second"]


def test_a_lock_goes_with_its_process(tmp_path: Path) -> None:
    script = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX); "
    script += "print('held', flush=True); sys.stdin.read()"
    lock = FileLock(tmp_path / "lock")
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert not lock.try_to_own()
        holder.kill()
        holder.wait()
        assert lock.try_to_own()
    lock.close()


def test_other_programs_do_not_inherit_the_lock_file(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert not os.get_inheritable(lock._file)
    lock.close()
