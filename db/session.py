"""Connections to our own database, and its errors in our own words."""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import psycopg
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    create_engine,
    event,
    make_url,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from pipeline.errors import PermanentError, RecallwatchError, TransientError

__all__ = [
    "Database",
    "Session",
    "allow_idling",
    "apart",
    "application_name",
    "driver_connection",
    "end_frozen",
    "plan_for_many",
    "server_version",
    "try_lock",
]


_Kinds = tuple[type[psycopg.Error], ...]

IDLE_LIMIT = 60
"""Seconds after which the server ends a worker's transaction whose process sends nothing.

A process that is frozen, or whose host is gone, would keep its locks for as long as that lasts.
"""


LOCK_LIMIT = 10
"""Seconds that who holds an advisory lock waits for a row that another transaction has locked."""


class Database:
    """Our own database: hands out one transaction at a time.

    Never carry one over a fork: build it in each child (an engine that crossed a fork gave wrong
    answers in a trial). `pooled=False` opens a connection per transaction, for tests. `idle_limit`
    is for processes that never wait for a person within a transaction: see `IDLE_LIMIT`.
    """

    def __init__(self, url: str, *, pooled: bool = True, idle_limit: int | None = None) -> None:
        self.url: URL = make_url(url).set(drivername="postgresql+psycopg")
        pool: dict[str, Any] = {} if pooled else {"poolclass": NullPool}
        self.engine: Engine = create_engine(
            self.url,
            pool_pre_ping=pooled,
            connect_args={"connect_timeout": 10, "application_name": application_name()},
            **pool,
        )
        if idle_limit is not None:
            event.listen(self.engine, "connect", partial(_end_with_its_process, idle_limit))
        event.listen(self.engine, "handle_error", _leave_a_former_primary)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Give a connection inside one transaction: committed at the end, undone on an error."""
        with self._errors() as ended, self.engine.begin() as connection, ended.noted():
            yield connection

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """Give an ORM session inside one transaction; loaded objects stay readable after it."""
        with self._errors() as ended, self._sessions.begin() as session, ended.noted():
            yield session

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()

    @property
    def name(self) -> str:
        """The database as a person may read it: host and name, no password."""
        host = self.url.query.get("host") or self.url.host or "local socket"
        return f"{host}/{self.url.database}"

    @contextmanager
    def _errors(self) -> Iterator["_Ended"]:
        ended = _Ended()
        try:
            yield ended
        except (DBAPIError, psycopg.Error) as error:
            if ended.by is not None:
                raise ended.by from None
            mapped = self._in_our_words(error)
            if mapped is None:
                raise
            raise mapped from error

    def _in_our_words(self, error: DBAPIError | psycopg.Error) -> RecallwatchError | None:
        """Return our error for SQLAlchemy's, or for psycopg's own, which a COPY raises."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        reason = str(cause).strip().partition("\n")[0]
        for kinds, ours, words in _IN_OUR_WORDS:
            if isinstance(cause, kinds):
                return ours(f"database {self.name}" + words.format(reason=reason))
        if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
            if cause.sqlstate is not None:
                return TransientError(f"database {self.name}: {reason}")
            return TransientError(
                f"database {self.name} does not answer ({reason}): is it running, and is"
                " DATABASE_URL right?"
            )
        return None


_IN_OUR_WORDS: Sequence[tuple[_Kinds, type[RecallwatchError], str]] = (
    (
        (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn),
        PermanentError,
        " lacks recallwatch's tables or they are of another version; run: recallwatch migrate",
    ),
    (
        (psycopg.errors.InsufficientPrivilege,),
        PermanentError,
        ": {reason}; grant it to the role in DATABASE_URL",
    ),
    (
        (psycopg.errors.ReadOnlySqlTransaction,),
        TransientError,
        " takes no writes ({reason}): DATABASE_URL has to lead to the primary",
    ),
    ((psycopg.errors.IdleInTransactionSessionTimeout,), TransientError, ": {reason}"),
)


class _Ended:
    """What ended a transaction's block, where it was no error of the database.

    A time limit that interrupts a statement leaves the connection waiting for its answer; that the
    rollback fails then is not what went wrong.
    """

    def __init__(self) -> None:
        self.by: Exception | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, psycopg.Error):
            raise
        except Exception as error:
            self.by = error
            raise


def _end_with_its_process(
    seconds: int, connection: psycopg.Connection[Any], _record: object
) -> None:
    """Have the server end a transaction whose process is frozen, gone, or waits no longer."""
    connection.execute(f"SET idle_in_transaction_session_timeout = '{seconds}s'")
    connection.commit()
    # A server on a system that cannot tell refuses it.
    with suppress(psycopg.errors.InvalidParameterValue), connection.transaction():
        connection.execute("SET client_connection_check_interval = '1s'")


def _leave_a_former_primary(context: ExceptionContext) -> None:
    """Close pooled connections to a server that takes no writes any more: another one does."""
    if isinstance(context.original_exception, psycopg.errors.ReadOnlySqlTransaction):
        context.is_disconnect = True


def allow_idling(session: Session, seconds: int) -> None:
    """Give this transaction so long between statements: it waits for another server meanwhile."""
    query = text("SELECT set_config('idle_in_transaction_session_timeout', :limit, true)")
    session.execute(query, {"limit": f"{seconds}s"})


@contextmanager
def apart(session: Session) -> Iterator[None]:
    """Undo what fails in the block, and leave the rest of the transaction as it is."""
    with session.begin_nested():
        yield


def end_frozen(session: Session) -> list[int]:
    """End connections of ours whose process stopped within a statement; return their pids.

    The server waits without a limit for a client that neither sends the rest of a statement nor
    takes its result (`IDLE_LIMIT` is for between statements), and others wait for its locks. An
    import may wait for its input.
    """
    # Materialized: a plan may ask for the end of a connection before it looks at whose it is.
    query = text("""
        WITH frozen AS MATERIALIZED (
            SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND usename = current_user
              AND application_name LIKE 'recallwatch %' AND state = 'active'
              AND wait_event_type = 'Client' AND wait_event IN ('ClientRead', 'ClientWrite')
              AND query NOT ILIKE '%COPY incoming%'
              AND state_change < clock_timestamp() - make_interval(secs => :limit)
        )
        SELECT pid FROM frozen WHERE pg_terminate_backend(pid)
    """)
    return sorted(session.execute(query, {"limit": IDLE_LIMIT}).scalars())


def application_name() -> str:
    """Return what `pg_stat_activity` shows of this process: pid first, for the rest may be cut."""
    return f"recallwatch {os.getpid()}@{socket.gethostname()}"


def plan_for_many(session: Session) -> None:
    """Keep the transaction's joins from comparing row by row.

    Tables that were just filled have no statistics yet; guessing a few rows, the planner would
    pair 20,000 questions with 20,000 others one by one.
    """
    session.execute(text("SET LOCAL enable_nestloop = off"))


def server_version(database: Database) -> int:
    """Return the server's major version."""
    with database.connect() as connection:
        number: int = driver_connection(connection).info.server_version
    return number // 10_000


def try_lock(session: Session, key: int) -> bool:
    """Take an advisory lock until the transaction ends; False: somebody else holds it.

    Nobody holds it for ever: the transaction ends after `IDLE_LIMIT` seconds without a statement,
    and waits `LOCK_LIMIT` seconds at most for a row's lock.
    """
    query = text("""
        SELECT pg_try_advisory_xact_lock(:key),
            set_config('idle_in_transaction_session_timeout', :idle, true),
            set_config('lock_timeout', :lock, true)
    """)
    values = {"key": key, "idle": f"{IDLE_LIMIT}s", "lock": f"{LOCK_LIMIT}s"}
    return bool(session.scalar(query, values))


def driver_connection(connection: Connection | Session) -> psycopg.Connection[Any]:
    """Return the psycopg connection underneath, for COPY; it shares the transaction."""
    if isinstance(connection, Session):
        connection = connection.connection()
    driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]  # SQLAlchemy types it as Any | None; ours is always psycopg
    return driver
