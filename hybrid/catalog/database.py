"""A catalog in PostgreSQL: its address, its engine, and the errors of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import sqlalchemy as sa

from hybrid.catalog.schema import OWNER_LOST, OWNER_SETTING
from hybrid.errors import MachineError, SpecError

_DRIVER = "postgresql+psycopg"
_NAMES = frozenset({"postgresql", "postgres", _DRIVER})
_EXAMPLE = "postgresql://hybrid@db.example.org/hybrid"
_PORT = "5432"
# Parameters of a URL that hold no secret: they belong into a command that a hint names.
_PUBLIC_PARAMETERS = frozenset({
    "hostaddr", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslnegotiation", "channel_binding",
    "gssencmode", "require_auth", "target_session_attrs", "connect_timeout", "options",
})  # fmt: skip
# What makes the first schema of a search path the only one: tables of the same name in others are not ours. Without
# any schema nothing is set, and PostgreSQL says so when the first table is created.
_ONE_SCHEMA = (
    "SELECT set_config('search_path', quote_ident(current_schema()), false) WHERE current_schema() IS NOT NULL"
)
_SET_OWNER = f"SELECT set_config('{OWNER_SETTING}', %s, false)"
# A system that vanished is noticed on a connection that only listens, too.
_KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_WAITS = "ingestion and queries go on without it, queued work waits"


@dataclass(frozen=True)
class DatabaseLimits:
    """How long a database is waited for.

    `answer_s`: for a new connection, for a free one of the pool, and for a sign of life of an idle one.
    `statement_ms` and `lock_ms`: for a statement and a lock, by the database itself. A database that is silent is
    given up `grace_s` after it should have ended the statement.
    """

    answer_s: int = 5
    statement_ms: int = 30_000
    lock_ms: int = 10_000
    grace_s: float = 3.0

    @property
    def silence_s(self) -> float:
        """How long a database that works may be silent."""
        return self.statement_ms / 1000 + self.grace_s


def database_url(text: str) -> sa.URL:
    """The URL of a catalog as a user writes it, with the driver that is used. SpecError for any other database."""
    if text.count("@") > 1:  # else a part of the password would be taken for the host, and shown
        message = "a character of its user or password is not escaped: write %40 for @, %2F for /, %3A for :"
        raise SpecError.at("setting", "catalog", message)
    try:
        url = sa.make_url(_with_hosts_as_parameters(text))
    except (sa.exc.ArgumentError, ValueError) as error:
        raise SpecError.at("setting", "catalog", f"this is not a URL such as {_EXAMPLE}") from error
    if url.drivername not in _NAMES or not url.database:
        what = "names no database" if url.drivername in _NAMES else f"'{url.drivername}' is not supported"
        raise SpecError.at("setting", "catalog", f"{what}: PostgreSQL is, as in {_EXAMPLE}; without it SQLite is used")
    return url.set(drivername=_DRIVER)


def _with_hosts_as_parameters(text: str) -> str:
    """The list of hosts that libpq takes, `//user@h1:5432,h2/db`, in SQLAlchemy's form: a parameter for each."""
    scheme, separator, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    login, at, hosts = authority.rpartition("@")
    if "," not in hosts:
        return text
    named = [host if ":" in host else f"{host}:{_PORT}" for host in hosts.split(",")]
    joined = "&" if "?" in path else "?"
    return f"{scheme}{separator}{login}{at}{slash}{path}{joined}{urlencode([('host', host) for host in named])}"


def shown_url(url: sa.URL) -> str:
    """The URL without driver, password and options."""
    login = f"{quote(url.username or '')}{':***' if url.password else ''}"
    return f"postgresql://{login}{'@' if login else ''}{_hosts(url)}/{url.database}"


def _command_url(url: sa.URL) -> str:
    """The URL for psql on a command line: without secrets, which psql asks for."""
    login = f"{quote(url.username)}@" if url.username else ""
    values = url.normalized_query.items()
    query = urlencode([(name, value) for name, each in values if name in _PUBLIC_PARAMETERS for value in each])
    return f"postgresql://{login}{_hosts(url)}/{quote(url.database or '')}{'?' if query else ''}{query}"


def _hosts(url: sa.URL) -> str:
    hosts = url.normalized_query.get("host", ())
    if hosts:
        return ",".join(quote(host, safe=":[],") for host in hosts)
    host = f"[{url.host}]" if ":" in (url.host or "") else url.host or ""
    return f"{host}:{url.port}" if url.port else host


def database_engine(url: sa.URL, owner: str, limits: DatabaseLimits | None = None) -> sa.Engine:
    """An engine that notices connections that were lost, and waits for none for long.

    Its connections write as `owner`: the database refuses it once the catalog belongs to another. It raises
    MachineError for a database that does not answer, and where the driver is not installed.
    """
    limits = limits or DatabaseLimits()
    own = " ".join(url.normalized_query.get("options", ()))  # such as a search path; the last of each counts
    options = f"{own} -c statement_timeout={limits.statement_ms} -c lock_timeout={limits.lock_ms}".strip()
    defaults: dict[str, object] = {"connect_timeout": limits.answer_s, "client_encoding": "utf8", **_KEEPALIVE}
    arguments = {name: value for name, value in defaults.items() if name not in url.query} | {"options": options}
    try:
        from psycopg import ProgrammingError

        from hybrid.catalog.limited_connection import LimitedConnection

        engine = sa.create_engine(
            url.difference_update_query(["options"]),
            pool_pre_ping=True,
            pool_timeout=limits.answer_s,
            poolclass=_pool_class(shown_url(url), limits),
            connect_args=arguments,
        )
    except ModuleNotFoundError as error:
        raise MachineError(
            f"The catalog {shown_url(url)} needs the driver psycopg, which is not installed.",
            hint="pip install 'hybrid[postgresql]'",
        ) from error
    except sa.exc.ArgumentError as error:
        raise SpecError.at("setting", "catalog", "its list of hosts cannot be read") from error

    def connect(_dialect: object, _record: object, arguments: list[Any], named: dict[str, Any]) -> LimitedConnection:
        try:
            connection = LimitedConnection.connect(*arguments, **named, autocommit=True)
        except ProgrammingError as error:
            raise SpecError.at("setting", "catalog", str(error).strip()) from error
        try:
            connection.silence_s = limits.answer_s
            connection.execute(_ONE_SCHEMA)
            connection.execute(_SET_OWNER, (owner,))
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection

    def check_out(connection: LimitedConnection, _record: object, _proxy: object) -> None:
        connection.silence_s = limits.silence_s

    def check_in(connection: LimitedConnection | None, _record: object) -> None:
        if connection is not None:  # the next user asks first whether it lives
            connection.silence_s = limits.answer_s

    sa.event.listen(engine, "do_connect", connect)
    sa.event.listen(engine, "checkout", check_out)
    sa.event.listen(engine, "checkin", check_in)
    sa.event.listen(engine, "handle_error", partial(_raise_machine_error, limits))
    return engine


def _pool_class(address: str, limits: DatabaseLimits) -> type[sa.QueuePool]:
    class AddressedPool(sa.QueuePool):
        """A pool whose error, when no connection becomes free in time, is the one of a silent database."""

        def connect(self) -> sa.PoolProxiedConnection:
            try:
                return super().connect()
            except sa.exc.TimeoutError as error:
                raise MachineError(
                    f"The catalog {address} does not answer: no connection became free within {limits.answer_s} s.",
                    hint=f"hybrid doctor; {_WAITS}",
                ) from error

    return AddressedPool


def lost_owner(address: str) -> MachineError:
    """The error of a process whose catalog another copy of its home has taken over."""
    return MachineError(
        f"The catalog {address} belongs to another copy of this home by now. Nothing was written to it.",
        hint="Stop one of the two servers; to keep both, rm catalog.id in one home, and name another database there.",
    )


def _raise_machine_error(limits: DatabaseLimits, context: sa.engine.ExceptionContext) -> None:
    """Raise an error of the connection or of the database as one that names the database and the remedy."""
    error, engine = context.original_exception, context.engine
    dbapi: Any = context.dialect.loaded_dbapi
    if engine is None or context.is_pre_ping or not isinstance(error, dbapi.Error):  # a lost connection is replaced
        return
    machine_error = _machine_error(error, engine.url, limits, dbapi)
    if machine_error is not None:
        raise machine_error from error


def _machine_error(error: Any, url: sa.URL, limits: DatabaseLimits, dbapi: Any) -> MachineError | None:
    """The error for one of the driver; None for an error of the statement."""
    address, first, state = shown_url(url), str(error).strip().partition("\n")[0], error.sqlstate or ""
    if state == OWNER_LOST:
        return lost_owner(address)
    if state == "55P03":
        return MachineError(
            f"The catalog {address} is locked by another session for more than {limits.lock_ms / 1000:g} s: {first}.",
            hint=f"psql '{_command_url(url)}' -c 'SELECT * FROM pg_stat_activity'; {_WAITS}",
        )
    if state == "57014":
        return MachineError(
            f"The catalog {address} did not finish a statement within {limits.statement_ms / 1000:g} s: {first}.",
            hint=f"psql '{_command_url(url)}' -c 'SELECT * FROM pg_stat_activity'; {_WAITS}",
        )
    if state == "25006":
        return MachineError(
            f"The catalog {address} can only be read: {first}.",
            hint="Name the primary server, or all servers with ?target_session_attrs=read-write",
        )
    if state in ("42501", "3F000"):
        return MachineError(
            f"The catalog {address} refuses what hybrid needs: {first}.",
            hint="Create the schema, and let its user create tables: GRANT CREATE, USAGE ON SCHEMA ... TO ...",
        )
    if isinstance(error, dbapi.OperationalError) and (not state or state.startswith(("08", "57P"))):
        return MachineError(
            f"The catalog {address} does not answer: {first}.",
            hint=f"psql '{_command_url(url)}' -c 'SELECT 1'; {_WAITS}",
        )
    if isinstance(error, dbapi.OperationalError | dbapi.InternalError) or state == "42P01":
        return MachineError(
            f"The catalog {address} reports an error: {first}.", hint=f"PostgreSQL's log says more; {_WAITS}"
        )
    return None
