"""A database that accepts what it is sent and never answers: each caller gets an error, and none waits for good."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hybrid.catalog.catalog import Catalog
from hybrid.catalog.database import DatabaseLimits
from hybrid.errors import MachineError
from tests.catalog.test_database import request
from tests.postgresql import PostgresServer, needs_postgresql, postgres

pytestmark = [needs_postgresql, pytest.mark.process, pytest.mark.timeout(60)]
__all__ = ["postgres"]

SHORT = DatabaseLimits(answer_s=2, statement_ms=500, grace_s=0.5)
SILENT = r"The catalog postgresql://.* does not answer"


def test_a_frozen_database(postgres: PostgresServer, home: Path) -> None:
    with closing(Catalog.of_home(home, postgres.database(), SHORT)) as catalog:
        watch = catalog.write_watch()
        assert watch.has_new() and not watch.has_new()
        catalog.runs.enqueue(request(1))
        with catalog._engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            with postgres.frozen():
                with pytest.raises(MachineError, match=f"{SILENT}: it has been silent for 1 s"):
                    connection.exec_driver_sql("SELECT 1")
                watch.has_new()
                with pytest.raises(MachineError, match=SILENT):
                    catalog.runs.enqueue(request(2))
        assert catalog.runs.enqueue(request(3)) is not None, "once it goes on"
        watch.close()


def test_a_frozen_database_of_which_nobody_knows_yet(postgres: PostgresServer, home: Path) -> None:
    """A connection of the pool is asked first whether it lives, which takes no more than a new one."""
    with closing(
        Catalog.of_home(home, postgres.database(), DatabaseLimits(answer_s=2, statement_ms=3_600_000))
    ) as catalog:
        catalog.runs.enqueue(request(1))
        with postgres.frozen(), pytest.raises(MachineError, match=SILENT):
            catalog.runs.list()


def test_an_answer_that_keeps_coming_is_awaited(postgres: PostgresServer, home: Path) -> None:
    with closing(Catalog.of_home(home, postgres.database(), SHORT)) as catalog, catalog._engine.connect() as connection:
        connection.connection.driver_connection.silence_s = 1.5  # type: ignore[union-attr]
        connection.exec_driver_sql("SET statement_timeout = 0")
        rows = connection.exec_driver_sql(
            "SELECT repeat('x', 20000), pg_sleep(0.1) FROM generate_series(1, 20)"
        ).fetchall()
        assert len(rows) == 20


@pytest.fixture
def silent_host() -> Iterator[str]:
    """A host that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        accepted: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    accepted.append(server.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"postgresql://me@127.0.0.1:{server.getsockname()[1]}/db"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in accepted:
            connection.close()


def test_many_threads_and_a_silent_host(silent_host: str, postgres: PostgresServer, home: Path) -> None:
    """The pool has fewer connections than there are threads: those that wait for one get the same error."""
    with pytest.raises(MachineError, match=SILENT):
        Catalog.of_home(home, silent_host, SHORT)
    with closing(Catalog.of_home(home, postgres.database(), SHORT)) as catalog:
        engine = catalog._engine
        engine.dispose()
        errors: list[type[BaseException]] = []

        def look() -> None:
            try:
                catalog.runs.list()
            except BaseException as error:
                errors.append(type(error))

        threads = [threading.Thread(target=look) for _ in range(40)]
        with postgres.frozen():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            gc.collect()  # the driver closes an attempt that it gave up when it is collected
        assert errors == [MachineError] * 40
