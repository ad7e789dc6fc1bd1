"""Who runs a command, as the records say."""

import getpass
from contextlib import suppress

from cli.ci import requester


def user() -> str | None:
    """Return the account's name; a container's user often has none."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return None


def person() -> str | None:
    """Return who started the CI job and where it is; elsewhere, whose account it is."""
    return requester() or user()
