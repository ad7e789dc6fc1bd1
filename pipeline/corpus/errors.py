"""Where psycopg's errors about the corpus become ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from pipeline.errors import CorpusError, PermanentError, TransientError


@contextmanager
def corpus_errors(doing: str) -> Iterator[None]:
    """Map psycopg's errors, as a context or a decorator; `doing` completes "could not ...".

    Raises TransientError for a lost connection, a timeout or a full server, CorpusError for a
    refused privilege or a table that is not as configured, PermanentError for anything else.
    """
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise CorpusError(
            f"could not {doing}: {_first_line(error)}; grant it to the role in CORPUS_URL"
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise TransientError(f"could not {doing}: {_first_line(error)}") from error
    except psycopg.ProgrammingError as error:
        raise CorpusError(f"could not {doing}: {_first_line(error)}") from error
    except psycopg.Error as error:
        raise PermanentError(f"could not {doing}: {_first_line(error)}") from error


def _first_line(error: psycopg.Error) -> str:
    """Return the server's sentence without the statement it quotes below it."""
    return error.diag.message_primary or str(error).strip().partition("\n")[0]
