"""Where the embedded stack keeps its things under the state folder."""

import hashlib
import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pipeline.errors import UsageError

ROOT = 0


@dataclass(frozen=True)
class Layout:
    """The paths of one stack; `state` is absolute and free of symbolic links."""

    state: Path

    @classmethod
    def of(cls, state_dir: Path) -> Self:
        """Return the layout of the stack that lives in `state_dir`, which need not exist yet."""
        return cls(state_dir.resolve())

    @property
    def mark(self) -> str:
        """A name that every process of this stack carries, and no other: it finds them again."""
        digest = hashlib.sha256(os.fsencode(self.state)).hexdigest()
        return f"recallwatch-{os.geteuid()}-{digest[:10]}"

    @property
    def start_lock(self) -> Path:
        """Held while the stack starts or stops."""
        return self.state / "start.lock"

    @property
    def users_lock(self) -> Path:
        """Shared by the commands that use the stack."""
        return self.state / "users.lock"

    @property
    def users(self) -> Path:
        """Records of the commands that use the stack, for `recallwatch status`."""
        return self.state / "users.json"

    @property
    def workers(self) -> Path:
        """Records of the worker processes."""
        return self.state / "workers.json"

    @property
    def postgres(self) -> Path:
        """PostgreSQL's data folder."""
        return self.state / "postgres"

    @property
    def valkey(self) -> Path:
        """Valkey's data folder."""
        return self.state / "valkey"

    @property
    def logs(self) -> Path:
        """The folder of the log files."""
        return self.state / "log"

    def log(self, name: str) -> Path:
        """Return the log file of the server or worker called `name`."""
        return self.logs / f"{name}.log"

    def create(self) -> None:
        """Make the state folder where it is missing.

        Raises `UsageError` when the stack in it belongs to another user: two users who take
        turns would lock each other out of the files.
        """
        # Root's servers run as another account, which has to pass.
        mode = 0o711 if os.geteuid() == ROOT else 0o700
        self.state.mkdir(mode=mode, parents=True, exist_ok=True)
        self._refuse_foreign_owner()
        self.logs.mkdir(mode=0o700, exist_ok=True)
        ignore = self.state / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")

    def _refuse_foreign_owner(self) -> None:
        lock = self.start_lock
        if lock.exists() and lock.stat().st_uid != os.geteuid():
            raise UsageError(
                f"{self.state}: the embedded servers in this folder belong to user "
                f"{user_name(lock.stat().st_uid)}, and this is {user_name(os.geteuid())}: run as "
                "that user, or set state_dir to another folder"
            )


def user_name(uid: int) -> str:
    """Return the name of the account `uid`, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
