"""Real servers with pinned tables over a warehouse on a store: answers, disks, a server that is killed, a take-over."""

from __future__ import annotations

import json
import os
import signal
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.config.settings import load_settings
from hybrid.home.home import Home
from hybrid.operations.warehouse.writer_sign import SignGiver
from hybrid.progress import Silent
from tests.operations.pinned_homes import table_on
from tests.operations.warehouse_homes import add, create, mirror_of
from tests.s3_server import S3Server, needs_s3
from tests.serve.server import Server
from tests.serve.test_passing_on import free_ports
from tests.soak.harness import JVM_OPTIONS

pytestmark = [needs_s3, pytest.mark.process, pytest.mark.timeout(400)]

HEALTHY_S = 120.0  # tests beside this one slow down the start of a JVM


@pytest.fixture
def writer(store: S3Server, tmp_path: Path) -> Home:
    """The home that writes, without a server."""
    return Home(load_settings(home=tmp_path / "writer"), Silent())


@contextmanager
def signs_of_life(home: Home) -> Iterator[None]:
    """Given as a server of the home would, until the end of the block."""
    ended, giver = threading.Event(), SignGiver(home, mirror_of(home))

    def give() -> None:
        while True:
            giver.give()
            if ended.wait(2):
                return

    thread = threading.Thread(target=give)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Cluster:
    """Servers of a list, by number."""

    def __init__(self, folder: Path, number: int, copies: int) -> None:
        self._folder, self._copies = folder, copies
        self.ports = free_ports(number)
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]

    def start(self, number: int, **more: str) -> Server:
        environ = {
            "HYBRID_PINNING_SERVERS": ",".join(self.urls),
            "HYBRID_PINNING_SELF": self.urls[number],
            "HYBRID_PINNING_COPIES": str(self._copies),
            **JVM_OPTIONS,
            **more,
        }
        return Server(self._folder / f"q{number}", env=environ, options=["--port", str(self.ports[number])])


def answered(server: Server, sql: str) -> tuple[list[list[object]], str, str | None]:
    """Rows and revision of a statement, and the server that it was passed on to."""
    request = urllib.request.Request(
        f"{server.url}/query/sql", json.dumps({"sql": sql}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        document = json.load(response)
        assert document["exceptions"] == [], document
        return document["resultTable"]["rows"], document["revision"], response.headers.get("x-hybrid-answered-by")


def on_disk(server: Server) -> list[str]:
    """The tables that have data files in the home of a server."""
    return sorted({file.parts[-4] for file in (server.home / "warehouse").glob("[!.]*/*/*/*.parquet")})


def lists_all(server: Server, tables: Sequence[str]) -> bool:
    return server.ok("GET", "/tables")["tables"] == sorted(tables) and not set(on_disk(server)) - set(tables)


def counts(server: Server, tables: Sequence[str]) -> list[object]:
    return [answered(server, f"select count(*) from {table}")[0][0][0] for table in tables]


@pytest.mark.spark
def test_two_copies_a_killed_server_and_a_take_over(writer: Home, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3, 2)
    a, b, c = cluster.urls
    ab, bc, ca = tables = [table_on(cluster.urls, *pair) for pair in ((a, b), (b, c), (c, a))]
    for table in tables:
        create(writer, table)
    whole = Hybrid.of(writer)
    with ExitStack() as stack:
        signs = stack.enter_context(ExitStack())
        signs.enter_context(signs_of_life(writer))
        servers = [cluster.start(0), cluster.start(1), cluster.start(2, HYBRID_TAKE_OVER_AFTER_S="9")]
        for server in servers:
            stack.enter_context(server)
        first, second, third = servers
        held = ([ab, ca], [ab, bc], [bc, ca])
        for server, here in zip(servers, held, strict=True):
            server.await_true(
                lambda s=server, h=here: lists_all(s, tables) and on_disk(s) == sorted(h), "it has its own"
            )
        for table in tables:
            add(writer, table, "c")
            expected = whole.query(f"select order_id, amount from {table}")
            for server, here in zip(servers, held, strict=True):
                server.await_true(lambda s=server, t=table: counts(s, [t]) == [3], "it follows")
                rows, revision, passed_to = answered(server, f"select order_id, amount from {table}")
                assert (len(rows), revision) == (len(expected.rows), str(expected.revision))
                assert rows == [list(row) for row in expected.rows]
                assert (passed_to is None) == (table in here)
        pair = f"select count(*) from {ab}, {bc}"
        assert [answered(server, pair)[::2] for server in servers] == [([[9]], b), ([[9]], None), ([[9]], b)]
        three = f"select count(*) from {ab}, {bc}, {ca}"
        refused = third.ok("POST", "/query/sql", {"sql": three})["exceptions"][0]["message"]
        assert "No server holds all tables of this statement" in refused

        for pid in (first.process.pid, *first.pids("query"), *first.pids("pipeline")):
            os.kill(pid, signal.SIGKILL)
        first.process.wait(timeout=10)
        for server in (second, third):
            assert counts(server, tables) == [3, 3, 3], "the other holders answer"
        assert answered(third, f"select count(*) from {ab}")[2] == b

        signs.close()
        third.await_true(lambda: on_disk(third) == sorted(tables), "the standby brings all", HEALTHY_S)
        third.await_true(lambda: not mirror_of(writer).ownership.is_mine(), "and takes over", HEALTHY_S)
        third.await_true(lambda: answered(third, f"select count(*) from {ab}")[2] is None, "it answers all", HEALTHY_S)
        assert answered(third, three)[0] == [[27]] and counts(third, tables) == [3, 3, 3]
        assert counts(second, tables) == [3, 3, 3] and on_disk(second) == sorted([ab, bc])


def test_one_copy_and_a_group(writer: Home, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2, 1)
    a, b = cluster.urls
    here, grouped = table_on(cluster.urls, a), table_on(cluster.urls, b)
    there = table_on(cluster.urls, b, other_than=[grouped])
    pair = f"select count(*) from {here}, {grouped}"
    tables = [here, grouped, there]
    for table in tables:
        create(writer, table)
    together = {"HYBRID_PINNING_TOGETHER": f"{here},{grouped}"}
    with ExitStack() as stack:
        first, second = (stack.enter_context(cluster.start(number, **together)) for number in (0, 1))
        first.await_true(lambda: on_disk(first) == sorted([here, grouped]), "a group")
        second.await_true(lambda: lists_all(second, tables) and on_disk(second) == [there], "and the rest")
        for server in (first, second):
            server.await_true(lambda s=server: counts(s, tables) == [2, 2, 2], "each answers for each")
        assert answered(first, pair)[::2] == ([[4]], None) and answered(second, pair)[::2] == ([[4]], a)
        first.kill()
        status, answer = second.call("POST", "/query/sql", {"sql": f"select count(*) from {grouped}"})
        assert status == 503 and a in answer["error"], answer
        assert counts(second, [there]) == [2]


def test_a_server_with_wrong_settings_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hybrid.toml").write_text('[pinning]\nservers = ["http://q1:8099"]\nself = "http://q1:8099"\n')
    assert run(["--home", str(tmp_path), "serve", "--port", "0"]) == 1
    assert "pinning.servers: is set, but the tables of this home are on no store" in capsys.readouterr().err
