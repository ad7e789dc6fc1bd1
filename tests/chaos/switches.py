"""Files by which the suite tells the workers' bootstrap what to do, while they run."""

import os
import signal
import time
from pathlib import Path

FOLDER_VARIABLE = "CHAOS_SWITCHES"

SECOND_IS_SLOW = 1.5
"""Seconds that the second process takes at a point where the first was stopped."""

TRIPLE = "triple"
"""Every message is sent three times."""


def folder() -> Path:
    return Path(os.environ[FOLDER_VARIABLE])


def is_on(name: str) -> bool:
    return (folder() / name).exists()


def pause(point: str, work: str) -> None:
    """Stop this process as SIGSTOP does, if it is the first to come to an armed point.

    The second one with the same work is slow, so that it is still at it when the first is let go;
    all others pass.
    """
    if not is_on(f"arm-{point}"):
        return
    for arrival in (0, 1):
        if _enter(f"work-{point}-{arrival}", work):
            (folder() / f"pid-{point}-{arrival}").write_text(str(os.getpid()))
            if arrival == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                time.sleep(SECOND_IS_SLOW)
            return
        if (folder() / f"work-{point}-{arrival}").read_text() != work:
            return


def _enter(name: str, work: str) -> bool:
    """Write the file whole, or not at all because it is there."""
    draft = folder() / f"{name}-{os.getpid()}"
    draft.write_text(work)
    try:
        os.link(draft, folder() / name)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


class Switches:
    """The same files, from the suite's side."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        os.environ[FOLDER_VARIABLE] = str(path)

    def set(self, name: str, on: bool) -> None:
        if on:
            (self.path / name).touch()
        else:
            (self.path / name).unlink(missing_ok=True)

    def arrived(self, point: str, arrival: int) -> int | None:
        """Return the process that came to a point as first (0) or second (1), once it has."""
        try:
            return int((self.path / f"pid-{point}-{arrival}").read_text())
        except (OSError, ValueError):
            return None

    def clear(self) -> None:
        for file in self.path.iterdir():
            file.unlink(missing_ok=True)
