"""The server's processes: they start, serve a table that changes, fall, start again, and end in time."""

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.kafka.topics import TopicRecord, produce
from hybrid.serve.priority import FIXED_MAX, can_raise_again
from tests.serve.orders import DATA, create_orders
from tests.serve.server import Server
from tests.soak.harness import JVM_OPTIONS

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300)]

HEALTHY_S = 120.0  # tests beside this one slow down the start of a JVM
BIG, LAST = 2**40, 1_632_467_070_000


@pytest.fixture(scope="module")
def served(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests, of which the last one does not leave it whole. Each has a table of its own.

    Each of its pipeline processes falls in its second move, after the commit.
    """
    environment = {**JVM_OPTIONS, "HYBRID_FAILPOINT": "move.commit.after@2"}
    with Server(tmp_path_factory.mktemp("processes") / "home", broker, environment) as server:
        yield server


@pytest.fixture
def table(served: Server, broker: str) -> str:
    """A table with 14 rows, all committed, and its topic."""
    name = create_orders(served, broker, f"orders_{uuid.uuid4().hex[:8]}")
    served.await_true(lambda: _realtime_rows(served, name) == 14, "all is committed")
    return name


def rows_of(server: Server, table: str) -> int:
    """How many rows a query sees."""
    return int(server.rows(f"select count(*) from {table}")[0][0])


def kill(server: Server, *roles: str) -> dict[str, list[int]]:
    """Kills what plays `roles`, once all of it is there. Returns it."""
    await_all(server, *roles)
    killed = {role: server.pids(role) for role in roles}
    for pid in [pid for pids in killed.values() for pid in pids]:
        os.kill(pid, signal.SIGKILL)
    return killed


def await_all(server: Server, *roles: str) -> None:
    """Waits for what plays `roles`: a pipeline is ready before its JVM is."""
    deadline = time.monotonic() + HEALTHY_S
    while not all(server.pids(role) for role in roles):
        assert time.monotonic() < deadline, (roles, server.logged())
        time.sleep(0.1)


def kill_and_heal(server: Server, *roles: str) -> None:
    """Kills what plays `roles`, and awaits its successors; for a JVM the pipeline that starts another one, too.

    Without a JVM that fell it awaits readiness. A new one would need it for seconds of the processor's time.
    """
    watched = (*roles, "pipeline") if "java" in roles else roles
    await_all(server, *watched)
    before = {role: server.pids(role) for role in watched}
    kill(server, *roles)

    def is_healed() -> bool:
        now = {role: server.pids(role) for role in watched}
        are_new = all(now[role] and not {*now[role]} & {*before[role]} for role in watched)
        return are_new and ("java" in roles or server.is_ready())

    server.await_true(is_healed, f"{roles} are there again", HEALTHY_S)


def test_a_second_server_is_refused_and_commands_let_the_first_do_the_work(
    served: Server, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    home = str(served.home)
    if Path("/proc/self/maps").exists():
        assert "libjvm" not in Path(f"/proc/{served.pids('query')[0]}/maps").read_text()
    second = subprocess.run(
        [sys.executable, "-m", "hybrid.cli", "--home", home, "serve", "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode == 4 and "runs on" in second.stderr

    capsys.readouterr()
    assert run(["--home", home, "move", table, "--json"]) == 0
    out, said = capsys.readouterr()
    assert json.loads(out)["rows_read"] == 7 and "Moved 7 rows" in said
    assert run(["--home", home, "task", "list", "--json"]) == 0
    newest = json.loads(capsys.readouterr().out)[0]
    assert newest["id"].startswith("Task_RealtimeToOfflineSegmentsTask_") and newest["state"] == "DONE"
    assert run(["--home", home, "ingest", table]) == 2
    assert f"ingests '{table}' all the time" in capsys.readouterr().err
    assert run(["--home", home, "move", table[:-1]]) == 1
    assert f"Did you mean '{table}'?" in capsys.readouterr().err
    assert run(["--home", home, "query", f"select nope from {table}"]) == 1


def test_a_type_becomes_wider_while_rows_arrive(served: Server, broker: str, table: str) -> None:
    """Nothing restarts, and nothing that arrives meanwhile is lost."""
    server, pids = served, [served.pids(role) for role in ("query", "pipeline", "java")]

    def send(number: int) -> None:
        row = {"order_id": number, "customer_id": 1, "order_status": "OPEN", "amount": 1.5, "ts": LAST + number % 1000}
        produce(broker, table, [TopicRecord(json.dumps(row).encode())])

    def await_rows(sql: str, rows: list[list[object]]) -> None:
        server.await_true(lambda: server.rows(sql) == rows, sql)

    send(BIG)
    server.await_true(lambda: server.call("GET", f"/tables/{table}/rejected")[1]["total"] == 1, "it is rejected")
    assert server.rows(f"select count(*) from {table}") == [[14]]

    stopped, sent = threading.Event(), list[int]()

    def arrive() -> None:
        while not stopped.is_set():
            send(1_000_000 + len(sent))
            sent.append(1)
            stopped.wait(0.1)

    schema = {**json.loads((DATA / "orders_schema.json").read_text()), "schemaName": table}
    arriving = threading.Thread(target=arrive)
    arriving.start()
    try:
        schema["dimensionFieldSpecs"][0]["dataType"] = "LONG"
        schema["metricFieldSpecs"][0]["dataType"] = "DOUBLE"
        schema["dimensionFieldSpecs"].append({"name": "shop", "dataType": "STRING", "defaultNullValue": "none"})
        status, told = server.call("PUT", f"/schemas/{table}", schema)
        assert status == 200, told
        send(BIG + 1)
        await_rows(f"select order_id, shop from {table} where order_id > {BIG}", [[BIG + 1, "none"]])
        _, answer = server.call("POST", "/query/sql", {"sql": f"select order_id, amount from {table} limit 1"})
        assert answer["resultTable"]["dataSchema"]["columnDataTypes"] == ["LONG", "DOUBLE"]
        status, told = server.call("POST", f"/tables/{table}/rejected/replay")
        assert status == 200, told
    finally:
        stopped.set()
        arriving.join()
    assert server.rows(f"select count(*) from {table} where order_id >= {BIG}") == [[2]]
    await_rows(f"select count(*) from {table}", [[14 + 2 + len(sent)]])
    schema["dimensionFieldSpecs"][0]["dataType"] = "INT"
    status, told = server.call("PUT", f"/schemas/{table}", schema)
    assert status == 400 and "cannot become INT from LONG" in told["error"]
    assert server.call("GET", f"/tables/{table}/rejected")[1]["total"] == 0
    assert [server.pids(role) for role in ("query", "pipeline", "java")] == pids


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="niceness counts per session on Linux only")
def test_ingestion_keeps_its_share_beside_busy_sessions(served: Server, broker: str, table: str) -> None:
    """With a fixed niceness of 10 it would have a thirtieth of two processors here, and take ten times as long."""
    _commit_s(served, broker, table, 28)
    alone_s = statistics.median(_commit_s(served, broker, table, rows) for rows in (42, 56, 70))
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
        for _ in range(3 * (os.cpu_count() or 1) // 2)
    ]
    try:
        # The first may meet what else is busy on the machine. The second is made only when it did.
        has_share = any(_commit_s(served, broker, table, rows) < 6 * alone_s for rows in (84, 98))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert has_share, f"six times slower than alone, which took {alone_s} s"


def _commit_s(server: Server, broker: str, table: str, rows: int) -> float:
    """Produces the 14 events once more; the seconds until all `rows` are committed."""
    produce(broker, table, (DATA / "events.jsonl").read_bytes().splitlines())
    started = time.monotonic()
    while (found := _realtime_rows(server, table)) != rows:
        assert time.monotonic() < started + 120, (found, server.logged())
        time.sleep(0.05)
    return time.monotonic() - started


def _realtime_rows(server: Server, table: str) -> int:
    """How many are committed."""
    tables = server.ok("POST", "/verbs/status", {})["tables"]
    return next(int(one["realtime_rows"]) for one in tables if one["table"] == table)


def test_processes_fall_at_tasks_and_without_until_a_server_ends_in_time(
    served: Server, table: str, broker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last test of `served`. Those that follow a fall at once need no JVM: it falls before it has started."""
    for role in ("query", "java"):
        kill_and_heal(served, role)
        assert rows_of(served, table) == 14, role
    _fall_with_the_supervisor(served)
    assert rows_of(served, table) == 14
    _fall_before_a_commit(served, table)
    _fall_after_a_commit(served, table)
    await_all(served, "query", "pipeline", "java")
    kill(served, "serve", "query", "pipeline")
    time.sleep(0.5)
    with Server(served.home, broker, {**JVM_OPTIONS, "HYBRID_PIPELINE_NICENESS": "10"}) as next_one:
        next_one.await_ready(HEALTHY_S)
        assert rows_of(next_one, table) == 14
        await_all(next_one, "query", "pipeline", "java")
        _check_who_gives_way(next_one)
        assert next_one.terminate() < 10
    assert not (served.home / "server.json").exists()
    capsys.readouterr()
    assert run(["--home", str(served.home), "query", f"select count(*) from {table}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"count(*)": 14}]


def _fall_with_the_supervisor(server: Server) -> None:
    """The roles end with it. One of them becomes the next one, which starts them again."""
    first, before = server.address["pid"], {*server.pids("query"), *server.pids("pipeline")}
    kill(server, "serve")

    def is_followed() -> bool:
        roles = [server.pids(role) for role in ("query", "pipeline")]
        are_new = all(roles) and not before & {pid for pids in roles for pid in pids}
        return server.address["pid"] != first and are_new and server.answers("/livez")

    server.await_true(is_followed, "another supervisor, and one that answers", HEALTHY_S)


def _fall_before_a_commit(server: Server, table: str) -> None:
    """A task whose process falls is done by the next one. The query process falls at the same time."""
    await_all(server, "pipeline")
    os.kill(server.pids("pipeline")[0], signal.SIGSTOP)
    status, queued = server.call("POST", "/verbs/move", {"table": table})
    assert status == 202
    kill_and_heal(server, "query", "pipeline")
    run_ = server.await_task(queued["run"])
    assert run_["state"] == "DONE" and run_["report"]["rows_read"] == 7, run_
    assert rows_of(server, table) == 14


def _fall_after_a_commit(server: Server, table: str) -> None:
    """At the failpoint of `served`: what a process had committed is taken up and not done twice."""
    pipeline = server.pids("pipeline")
    status, queued = server.call("POST", "/verbs/move", {"table": table})
    assert status == 202
    run_ = server.await_task(queued["run"])
    assert run_["state"] == "DONE" and "died before it could report" in run_["result"], run_
    server.await_ready(HEALTHY_S)
    assert server.pids("pipeline") != pipeline
    segments = server.ok("POST", "/verbs/segments", {"table": table})
    assert [one["name"] for one in segments if one["half"] == "OFFLINE"] == [
        f"{table}_1632463351000_1632467070000_0", f"{table}_1632667070000_1632667170000_0"
    ]  # fmt: skip
    assert rows_of(server, table) == 14


def _check_who_gives_way(server: Server) -> None:
    """Spark is behind those who ask while nothing is late, also behind what runs in other sessions of the machine."""
    of_threads = 10 if can_raise_again() else FIXED_MAX
    expected = [of_threads, of_threads, *([10] if Path("/proc/self/autogroup").exists() else [])]
    deadline = time.monotonic() + HEALTHY_S
    while (found := _niceness(server))[1:] != [found[0] + more for more in expected]:
        assert time.monotonic() < deadline, (found, server.logged())
        time.sleep(0.1)
    assert os.getsid(server.pids("query")[0]) == os.getsid(server.pids("pipeline")[0]) == server.process.pid


def _niceness(server: Server) -> list[int]:
    """Of the query process, the pipeline process, its JVM, and of the JVM's session where that has one."""
    (query,), (pipeline,), java = (server.pids(role) for role in ("query", "pipeline", "java"))
    if len(java) != 1:
        return [0]  # its launcher is a JVM too
    autogroup = Path(f"/proc/{java[0]}/autogroup")
    of_session = (
        [int(autogroup.read_text().split()[-1])] if os.getsid(java[0]) == java[0] and autogroup.exists() else []
    )
    return [*(os.getpriority(os.PRIO_PROCESS, pid) for pid in (query, pipeline, java[0])), *of_session]
