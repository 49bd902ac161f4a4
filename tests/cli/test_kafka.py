from __future__ import annotations

import io
import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.jvm import broker_files
from hybrid.jvm.broker import LocalBroker
from tests.watchdog import watched_broker


@pytest.mark.kafka
def test_topics_and_produce(broker: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at, name = ["--home", str(home), "--kafka", broker], f"cli-{uuid.uuid4().hex[:8]}"
    lines = tmp_path / "events.jsonl"
    lines.write_text('{"a":1}\n\n{"a":2}\r\n   \n{"a":3}')
    assert run(["kafka", "produce", name, str(lines), *at]) == 1
    assert capsys.readouterr().err == (
        f"error: Topic '{name}' does not exist at {broker}. Create it: hybrid kafka topic create {name}\n"
    )
    assert run(["kafka", "topic", "create", name, "--partitions", "2", "--json", *at]) == 0
    created = json.loads(capsys.readouterr().out)
    assert (created["name"], created["partitions"]) == (name, 2)
    assert run(["kafka", "topic", "create", name, "--partitions", "3", *at]) == 4
    assert run(["kafka", "produce", name, str(lines), "--partition", "1", *at]) == 0
    assert capsys.readouterr().err.endswith(f"3 messages produced to topic '{name}'\n")
    assert run(["kafka", "topic", "list", "--json", *at]) == 0
    assert name in [row["name"] for row in json.loads(capsys.readouterr().out)]


@pytest.mark.kafka
def test_produce_from_standard_input(broker: str, topic: str, home: Path) -> None:
    done = _hybrid(home, "--json", "kafka", "produce", topic, "--kafka", broker, stdin="x\n\ny\n")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"topic": topic, "produced": 2})


@pytest.mark.kafka
def test_start_status_stop(home: Path) -> None:
    assert _hybrid(home, "kafka", "status").returncode == 3
    watched_broker(home, formats=True)
    try:
        started = _hybrid(home, "kafka", "start", "--port", "0", "--json")
        assert started.returncode == 0, started.stderr
        address = json.loads(started.stdout)["address"]
        assert f"Kafka answers at {address}" in started.stderr
        again = _hybrid(home, "kafka", "start", "--port", "0")
        assert again.returncode == 0 and f"runs already at {address}" in again.stderr
        assert _hybrid(home, "kafka", "topic", "create", "orders").returncode == 0  # finds the local broker by itself
        assert json.loads(_hybrid(home, "kafka", "status", "--json").stdout)["state"] == "running"
    finally:
        stopped = _hybrid(home, "kafka", "stop")
    assert (stopped.returncode, stopped.stderr) == (0, "Kafka stopped\n")
    assert _hybrid(home, "kafka", "stop").stderr == "Kafka was not running\n"
    produced = _hybrid(home, "kafka", "produce", "orders")
    assert produced.returncode == 1 and f"The local broker is stopped. It listened on {address}." in produced.stderr


@pytest.mark.parametrize("words", [["kafka", "topic", "list"], ["kafka", "produce", "t"], ["table", "init", "orders"]])
def test_a_stopped_local_broker_is_not_looked_for_elsewhere(
    words: list[str], home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default address may be another broker's. A home that never had its own broker still asks there."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    (home / "kafka").mkdir(parents=True)
    broker_files.write(home / "kafka", home / "kafka.log", 19999, 20000)
    assert run([*words, "--home", str(home)]) == 1
    said = capsys.readouterr().err
    assert "The local broker is stopped. It listened on 127.0.0.1:19999." in said
    assert "hybrid kafka start starts it there again" in said


def test_a_home_without_a_broker_asks_the_default_address(tmp_path: Path) -> None:
    assert LocalBroker(tmp_path).address_to_ask() == "127.0.0.1:9092"


def test_nobody_answers(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kafka", "topic", "list", "--kafka", "127.0.0.1:1", "--home", str(home)]) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_a_file_that_is_not_there(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kafka", "produce", "t", "/nope.jsonl", "--home", str(home)]) == 2
    assert "/nope.jsonl" in capsys.readouterr().err


def _hybrid(home: Path, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The real command line in its own process; returns only when no pipe of it is held open."""
    command = [sys.executable, "-c", "from hybrid.cli.main import main; main()", "--home", str(home), *args]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
