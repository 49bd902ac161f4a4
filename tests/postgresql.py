"""A PostgreSQL server of this machine's packages, on a free port, for the tests of catalogs in a database."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa

from hybrid.catalog.database import database_url
from hybrid.jvm.broker import free_port
from tests.watchdog import watch

USER = "postgres"


def _program(name: str) -> str | None:
    """The path of one of PostgreSQL's programs, which Debian keeps out of PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(installed[-1]) if installed else None)


IS_INSTALLED = _program("initdb") is not None and _program("postgres") is not None
needs_postgresql = pytest.mark.skipif(
    not IS_INSTALLED, reason="PostgreSQL is not installed (apt-get install postgresql)"
)
# initdb and postgres refuse to run as root.
_AS = {"user": USER, "group": USER} if os.getuid() == 0 else {}


@dataclass
class PostgresServer:
    """A server in a folder of its own. Stopped and started again, it keeps port and databases."""

    folder: Path
    port: int
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _made: int = 0

    def start(self) -> None:
        self._process = subprocess.Popen(
            _server_command(self.folder, "127.0.0.1", self.port),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **_AS,  # type: ignore[call-overload]
        )
        watch(self._process)
        deadline = time.monotonic() + 60
        while not self._accepts():
            assert self._process.poll() is None and time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(0.05)

    def stop(self) -> None:
        """End it as a crash would for its clients: their connections break."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:  # it waits for clients that connected and say nothing
                for pid in self._processes():
                    os.kill(pid, signal.SIGKILL)
                self._process.wait(5)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its processes: its system still acknowledges what clients send, and nothing answers."""
        processes = self._processes()
        for pid in processes:
            _send(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in processes:
                _send(pid, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """The server's process, and its children."""
        assert self._process is not None
        parents = (
            (int(status.parent.name), status.read_text().rpartition(")")[2].split()[1])
            for status in Path("/proc").glob("[0-9]*/stat")
        )
        return [self._process.pid, *(pid for pid, parent in parents if parent == str(self._process.pid))]

    def database(self, options: str = "") -> str:
        """The URL of a new, empty database."""
        self._made += 1
        name = f"hybrid_{self._made}"
        self.execute(f"CREATE DATABASE {name} {options}")
        return self.url(name)

    def url(self, database: str, user: str = USER) -> str:
        """The URL of a database, which may not exist."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Carry out a statement as the server's owner, outside of a transaction."""
        engine = sa.create_engine(database_url(self.url(database)), isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(statement)
        finally:
            engine.dispose()

    def _accepts(self) -> bool:
        with suppress(sa.exc.OperationalError):
            self.execute("SELECT 1")
            return True
        return False


def _server_command(folder: Path, address: str, port: int) -> list[str]:
    settings = {
        "listen_addresses": address, "unix_socket_directories": "", "fsync": "off", "shared_buffers": "16MB",
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(_program("postgres")), "-D", str(folder), "-p", str(port), *options]


def command(folder: Path, address: str, port: int) -> list[str]:
    """What runs a server on an address, as the user that may run it, whoever starts it."""
    as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if _AS else []
    return [*as_user, *_server_command(folder, address, port)]


def create_cluster(folder: Path, user: str = USER) -> None:
    """Prepare an empty folder for a server; its users come from this machine and need no password."""
    if _AS:
        shutil.chown(folder, USER, USER)
    subprocess.run(
        [str(_program("initdb")), "-D", str(folder), "-U", user, "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True, capture_output=True, cwd="/", **_AS,  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server for a module's tests. Each has databases of its own."""
    with postgres_server() as server:
        yield server


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server; its folder is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="hybrid-postgresql-"))
    try:
        create_cluster(folder)
        server = PostgresServer(folder, free_port())
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # a child whose client has gone may end at any time
        os.kill(pid, number)
