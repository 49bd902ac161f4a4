"""The command line against a server in another home: the same results, messages and exit codes as on its own."""

from __future__ import annotations

import _thread
import json
import os
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.config.settings import load_settings
from hybrid.errors import AccessError, MachineError, NotFoundError, QueryError, UsageError
from hybrid.home.accounts import Accounts, Right
from hybrid.jvm.process import Process
from hybrid.progress import Silent
from hybrid.rpc.client import SERVER_FILE, Client, server_of
from hybrid.serve.app import build_app
from hybrid.serve.context import ServerLimits
from hybrid.serve.httpserver import http_server
from hybrid.serve.supervisor import Address, listening_sockets, url_of

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"


@pytest.fixture
def url(home: Path) -> Iterator[str]:
    """A query process without a pipeline, in a thread: heavy work stays in its queue."""
    hy = Hybrid(load_settings(home=home), Silent())
    _ = hy.context.catalog
    sockets = listening_sockets(Address(port=0, broker_port=0))
    where = url_of(sockets[0])
    server = http_server(build_app(hy, ServerLimits(body_bytes=200_000), where))
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets}, daemon=True)
    thread.start()
    yield where
    server.should_exit = True
    thread.join(timeout=10)
    hy.close()


@pytest.mark.slow
def test_a_command_lets_the_named_server_work(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    away = ["--home", str(tmp_path / "elsewhere"), "--server", url, "--json"]
    files = ["--schema", str(DATA / "orders_schema.json"), "--config", str(DATA / "orders_offline_table.json")]
    assert run([*away, "table", "create", *files]) == 0
    made, said = capsys.readouterr()
    assert json.loads(made)["table"] == "orders" and "Created table 'orders'" in said
    assert run([*away, "table", "create", *files]) == 4
    assert "exists already" in capsys.readouterr().err
    assert run([*away, "query", "select count(*), sum(amount) from orders"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"count(*)": 0, "sum(amount)": None}]
    assert run([*away, "query", "select nope from orders"]) == 1
    assert "Column 'nope' does not exist" in capsys.readouterr().err
    assert run([*away, "table", "show", "ordres"]) == 1
    assert "Did you mean 'orders'?" in capsys.readouterr().err
    assert run([*away, "query", "--explain", "select * from orders"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"]
    assert run([*away, "status"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["state"] == "OK"
    assert not (tmp_path / "elsewhere" / "warehouse").exists()


def test_errors_cross_the_wire_as_they_were_raised(url: str) -> None:
    client = Client(url, Silent())
    with pytest.raises(NotFoundError, match="Table 'x' does not exist"):
        client.call("table_show", {"table": "x"})
    with pytest.raises(QueryError) as failed:
        client.call("query", {"sql": "selec 1"})
    assert failed.value.pinot_code == 150
    for arguments in ({}, {"table": 7}, {"table": "x", "more": 1}):
        with pytest.raises(UsageError):
            client.call("table_show", arguments)
    with pytest.raises(NotFoundError, match="Did you mean 'table_show'"):
        client.call("table_sho", {})
    with pytest.raises(UsageError, match="longer than 200000 bytes"):
        client.call("query", {"sql": "select " + "1" * 300_000})


def test_a_server_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MachineError, match="does not answer"):
        Client("http://127.0.0.1:1", Silent()).call("table_list", {})
    for wrong in ("ftp://x", "http://"):
        with pytest.raises(UsageError, match="is not a server's address"):
            Client(wrong, Silent())
    assert run(["--home", str(tmp_path / "h"), "--server", "http://127.0.0.1:1", "table", "list"]) == 1
    assert "hybrid serve" in capsys.readouterr().err


def test_an_address_left_by_a_server_that_is_gone_counts_for_nothing(home: Path) -> None:
    home.mkdir()
    assert server_of(home) is None
    (home / "server.json").write_text("{")
    assert server_of(home) is None
    Process(2**22 - 1, "0").save(home / "server.json", url="http://127.0.0.1:1")
    assert server_of(home) is None
    assert run(["--home", str(home), "table", "list"]) == 0


@pytest.mark.slow
def test_an_interrupt_says_that_the_server_goes_on(
    url: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    away = ["--home", str(tmp_path / "elsewhere"), "--server", url]
    files = ["--schema", str(DATA / "orders_schema.json"), "--config", str(DATA / "orders_offline_table.json")]
    assert run([*away, "table", "create", *files]) == 0
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    assert run([*away, "task", "run", "orders", "VacuumTask"]) == 130
    said = capsys.readouterr().err
    (queued,) = hybrid.connect(home).runs("orders")
    assert f"continues run {queued.id}" in said and f"hybrid task show {queued.id}" in said
    assert said.endswith("interrupted\n") and queued.state == "QUEUED"


@pytest.mark.slow
def test_credentials_in_an_address_are_used(url: str, home: Path) -> None:
    _, secret = Accounts(home).add("ada", Right.READ)
    time.sleep(1.1)  # a server looks at the accounts once a second
    named = url.replace("http://", f"http://ada:{secret}@")
    assert Client(named, Silent()).call("table_list", {}) == []
    with pytest.raises(AccessError, match="No account has this secret and this name"):
        Client(url.replace("http://", "http://ada:wrong@"), Silent()).call("table_list", {})
    with pytest.raises(AccessError):
        Client(url, Silent()).call("table_list", {})


@pytest.mark.slow
def test_a_token_counts_on_the_servers_own_home(url: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = Process.of(os.getpid())
    assert own is not None
    own.save(home / SERVER_FILE, url=url, broker_url=url, secret="of the home")
    _, reader = Accounts(home).add("reader", Right.READ)
    time.sleep(1.1)
    here = ["--home", str(home)]
    assert run([*here, "table", "list"]) == 0, "the home's own secret"
    assert run([*here, "--token", reader, "table", "list"]) == 0
    for verb in (["table", "undrop", "x"], ["move", "x"], ["access", "add", "eve", "--right", "admin"]):
        assert run([*here, "--token", reader, *verb]) == 1, verb
        assert "has the right read" in capsys.readouterr().err
    assert run([*here, "--token", "wrong", "table", "list"]) == 1
    assert "No account has this secret" in capsys.readouterr().err


def test_a_name_that_is_not_loopback_is_refused(url: str) -> None:
    import http.client

    address = url.removeprefix("http://")
    for host, status in ((address, 200), ("localhost", 200), ("evil.example:9000", 421), ("", 421)):
        connection = http.client.HTTPConnection(address)
        connection.putrequest("GET", "/livez", skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        assert connection.getresponse().status == status, host
        connection.close()


@pytest.mark.slow
def test_a_statement_of_the_command_line_is_counted(url: str, tmp_path: Path) -> None:
    away = ["--home", str(tmp_path / "elsewhere"), "--server", url]
    files = ["--schema", str(DATA / "orders_schema.json"), "--config", str(DATA / "orders_offline_table.json")]
    assert run([*away, "table", "create", *files]) == 0
    for _ in range(2):
        assert run([*away, "query", "select count(*) from orders"]) == 0
    assert run([*away, "query", "select nope from orders"]) == 1
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        text = answer.read().decode()
    (count,) = re.findall(r'hybrid_queries_total\{[^}]*route="/verbs/query"[^}]*\} ([0-9.]+)', text)
    assert float(count) == 2
    (failed,) = re.findall(r'hybrid_errors_total\{[^}]*"query"[^}]*\} ([0-9.]+)', text)
    assert float(failed) == 1
