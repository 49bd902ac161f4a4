"""The server's processes: they start, fall, start again, take each other's place, and end in time."""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.serve.priority import FIXED_MAX, can_raise_again
from tests.serve.server import Server

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300)]

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
HEALTHY_S = 30.0


def create_orders(home: Path, broker: str, topic: str, *more: str) -> None:
    """The recipe's table and its 14 events, by the command line."""
    configs = ("--config", str(DATA / "orders_table.json"), "--config", str(DATA / "orders_offline_table.json"))
    words = ("--schema", str(DATA / "orders_schema.json"), *configs, "--set", f"stream.kafka.topic.name={topic}", *more)
    assert run(["--home", str(home), "table", "create", *words, "--kafka", broker]) == 0
    assert run(["kafka", "produce", topic, str(DATA / "events.jsonl"), "--kafka", broker]) == 0


def kill(server: Server, *roles: str) -> None:
    """Kills what plays `roles`, once all of it is there."""
    await_all(server, *roles)
    for pid in [pid for role in roles for pid in server.pids(role)]:
        os.kill(pid, signal.SIGKILL)


def await_all(server: Server, *roles: str) -> None:
    """Waits for what plays `roles`: a pipeline is ready before its JVM is."""
    deadline = time.monotonic() + HEALTHY_S
    while not all(server.pids(role) for role in roles):
        assert time.monotonic() < deadline, (roles, server.logged())
        time.sleep(0.1)


def healthy_again(server: Server) -> None:
    """Ready, after a moment in which the old state may still be told."""
    time.sleep(1.5)
    server.await_ready(HEALTHY_S)


def test_life_of_a_server(home: Path, broker: str, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    create_orders(home, broker, topic)
    with Server(home, broker) as server:
        assert server.rows("select count(*) from orders") == [[14]]
        if Path("/proc/self/maps").exists():
            assert "libjvm" not in Path(f"/proc/{server.pids('query')[0]}/maps").read_text()

        # A second one on the same home is refused; the first goes on.
        second = subprocess.run(
            [sys.executable, "-m", "hybrid.cli", "--home", str(home), "serve", "--port", "0"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert second.returncode == 4 and "runs on" in second.stderr

        # The command line finds it, and lets it do the work.
        capsys.readouterr()
        assert run(["--home", str(home), "move", "orders", "--json"]) == 0
        out, said = capsys.readouterr()
        assert json.loads(out)["rows_read"] == 7 and "Moved 7 rows" in said
        assert run(["--home", str(home), "task", "list", "--json"]) == 0
        newest = json.loads(capsys.readouterr().out)[0]
        assert newest["id"].startswith("Task_RealtimeToOfflineSegmentsTask_") and newest["state"] == "DONE"
        assert run(["--home", str(home), "ingest", "orders"]) == 2
        assert "ingests 'orders' all the time" in capsys.readouterr().err
        assert run(["--home", str(home), "move", "ordres"]) == 1
        assert "Did you mean 'orders'?" in capsys.readouterr().err
        assert run(["--home", str(home), "query", "select nope from orders"]) == 1

        for roles in (["query"], ["pipeline"], ["query", "pipeline"], ["java"]):
            kill(server, *roles)
            healthy_again(server)
            assert server.rows("select count(*) from orders") == [[14]], roles

        first = server.address["pid"]
        kill(server, "serve")
        deadline = time.monotonic() + HEALTHY_S
        while server.address["pid"] == first or not server.is_ready():
            assert time.monotonic() < deadline, server.logged()
            time.sleep(0.1)
        assert server.rows("select count(*) from orders") == [[14]]

        assert server.terminate() < 10
    assert not (home / "server.json").exists()
    assert run(["--home", str(home), "query", "select count(*) from orders"]) == 0


def test_a_task_whose_process_fell_is_taken_up_and_not_done_twice(home: Path, broker: str, topic: str) -> None:
    create_orders(home, broker, topic)
    with Server(home, broker, {"HYBRID_FAILPOINT": "move.commit.after"}) as server:
        status, queued = server.call("POST", "/verbs/move", {"table": "orders"})
        assert status == 202
        run_ = server.await_task(queued["run"])
        assert run_["state"] == "DONE" and "died before it could report" in run_["result"], run_
        server.await_ready(HEALTHY_S)
        segments = server.ok("POST", "/verbs/segments", {"table": "orders"})
        assert [one["name"] for one in segments if one["half"] == "OFFLINE"] == ["orders_1632463351000_1632467070000_0"]
        assert server.rows("select count(*) from orders") == [[14]]


def test_a_task_that_falls_before_its_commit_is_done_by_the_next_process(home: Path, broker: str, topic: str) -> None:
    create_orders(home, broker, topic)
    with Server(home, broker) as server:
        os.kill(server.pids("pipeline")[0], signal.SIGSTOP)
        status, queued = server.call("POST", "/verbs/move", {"table": "orders"})
        assert status == 202
        kill(server, "pipeline")
        run_ = server.await_task(queued["run"])
        assert run_["state"] == "DONE" and run_["report"]["rows_read"] == 7, run_


def test_a_server_that_nobody_ends_well_is_followed_by_a_new_one(home: Path, broker: str) -> None:
    with Server(home, broker, {"HYBRID_PIPELINE_NICENESS": "10"}) as server:
        await_all(server, "query", "pipeline", "java")
        _check_who_gives_way(server)
        kill(server, "serve", "query", "pipeline")
        time.sleep(0.5)
        with Server(home, broker) as next_one:
            next_one.await_ready()
            assert next_one.terminate() < 10


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="niceness counts per session on Linux only")
def test_ingestion_keeps_its_share_beside_busy_sessions(home: Path, broker: str, topic: str) -> None:
    """With a fixed niceness of 10 it would have a thirtieth of two processors here, and take ten times as long."""
    create_orders(home, broker, topic)
    with Server(home, broker) as server:
        _commit_s(server, broker, topic, 28)
        alone_s = statistics.median(_commit_s(server, broker, topic, rows) for rows in (42, 56, 70))
        busy = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
            for _ in range(3 * (os.cpu_count() or 1) // 2)
        ]
        try:
            beside_s = statistics.median(_commit_s(server, broker, topic, rows) for rows in (84, 98, 112))
        finally:
            for process in busy:
                process.kill()
                process.wait()
        assert beside_s < 6 * alone_s, (alone_s, beside_s)


def _commit_s(server: Server, broker: str, topic: str, rows: int) -> float:
    """Produces the 14 events once more; the seconds until all `rows` are committed."""
    assert run(["kafka", "produce", topic, str(DATA / "events.jsonl"), "--kafka", broker]) == 0
    started = time.monotonic()
    while (found := server.ok("POST", "/verbs/status", {})["tables"][0])["realtime_rows"] != rows:
        assert time.monotonic() < started + 120, (found, server.logged())
        time.sleep(0.05)
    return time.monotonic() - started


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
