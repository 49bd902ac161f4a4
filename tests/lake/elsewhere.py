"""A home whose Spark is elsewhere and whose tables are on a store, and a topic of orders with keys that rise."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import KafkaError, Producer
from deltalake import DeltaTable

from hybrid.kafka.topics import create_topic
from tests.lake.commands import answer
from tests.mirrors import new_url
from tests.s3_server import S3Server

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")

PARTITIONS, ROWS = 4, 60_000


class CommandProcess:
    """A process that runs commands of a home one after the other (`tests.lake.commands`): it starts Spark once."""

    def __init__(self, home: Elsewhere, **environment: str) -> None:
        self.log = home.folder / "commands.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.lake.commands", str(home.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={**home.environment, **environment},
                start_new_session=True,
            )
        home.processes.append(self.process)
        self.messages, self._words = "", ""

    def begin(self, *words: str, **environment: str) -> None:
        """Begins a command, for whoever does something else meanwhile. `end` awaits it."""
        self._send(words=words, environment=environment)

    def end(self, code: int = 0) -> Any:
        """What the command has printed, as JSON. Its messages are in `messages`."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the process ended during {self._words}\n{self.log.read_text()[-3000:]}"
        answer = json.loads(line)
        self.messages = answer.get("messages", "")
        assert answer["code"] == code, f"{self._words}: exit {answer['code']}\n{self.messages}"
        return json.loads(answer["out"]) if answer["out"].strip() else None

    def run(self, *words: str, code: int = 0, **environment: str) -> Any:
        self.begin(*words, **environment)
        return self.end(code)

    def corrections(self, broker: str, topic: str, which: str) -> dict[str, Any]:
        """What the home says and has after `tests.lake.corrections`."""
        self._send(corrections=(broker, topic, which))
        found: dict[str, Any] = self.end()
        return found

    def _send(self, **request: Any) -> None:
        assert self.process.stdin is not None
        self._words = str(request)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """Ends the process as a command ends: its session of Spark with it."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0, self.log.read_text()[-3000:]


class Elsewhere:
    """A home with some settings of Spark. What needs Spark runs in a `CommandProcess`."""

    def __init__(self, folder: Path, spark: str, server: S3Server, broker: str) -> None:
        self.folder, self.url, self.broker = folder, new_url(), broker
        folder.mkdir(parents=True)
        (folder / "hybrid.toml").write_text(f'warehouse = "{self.url}"\n{spark}')
        self.messages, self.processes = "", list[subprocess.Popen[str]]()
        self.store = server.environment
        self.environment = {**os.environ, **self.store, "PYTHONPATH": str(ROOT)}

    @classmethod
    def with_events(cls, folder: Path, spark: str, server: S3Server, broker: str) -> Elsewhere:
        """A home whose workers write to the store, and whose Spark logs its events, where no key may be."""
        log = f'"eventLog.enabled" = true\n"eventLog.compress" = false\n"eventLog.dir" = "file://{folder}/events"\n'
        home = cls(folder, f'{spark}worker_files = "store"\n{log}', server, broker)
        (folder / "events").mkdir()
        return home

    def close(self) -> None:
        """Ends commands that a failed test has left, with their JVMs."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def run(self, *words: str, code: int = 0) -> Any:
        """A command that needs no Spark, in this process."""
        found = answer(self.folder, {"words": words, "environment": self.store})
        self.messages = found["messages"]
        assert found["code"] == code, f"hybrid {' '.join(words)}: exit {found['code']}\n{self.messages}"
        return json.loads(found["out"]) if found["out"].strip() else None


def create_orders(home: Elsewhere) -> None:
    schema, config = ROOT / "data" / "orders" / "orders_schema.json", ROOT / "data" / "orders" / "orders_table.json"
    document = json.loads(config.read_text())
    stream = document["tableIndexConfig"]["streamConfigs"]
    stream["stream.kafka.topic.name"] = home.folder.name
    stream["stream.kafka.consumer.prop.auto.offset.reset"] = "smallest"
    stream["realtime.segment.flush.threshold.rows"] = 25_000
    changed = home.folder / "orders_table.json"
    changed.write_text(json.dumps(document))
    offline = config.with_name("orders_offline_table.json")
    words = ["--schema", str(schema), "--config", str(changed), "--config", str(offline), "--kafka", home.broker]
    home.run("table", "create", *words)


def fill(broker: str, topic: str) -> None:
    create_topic(broker, topic, PARTITIONS)
    lost = list[KafkaError]()
    settings = {"bootstrap.servers": broker, "enable.idempotence": True, "linger.ms": 20}
    producer = Producer({**settings, "queue.buffering.max.messages": ROWS})
    for n in range(ROWS):
        text = f'{{"order_id":{n},"customer_id":{n % 100},"order_status":"OPEN","amount":1.5,"ts":{1632463351000 + n}}}'
        producer.produce(
            topic, text, partition=n % PARTITIONS, on_delivery=lambda error, _: lost.append(error) if error else None
        )
    assert producer.flush(60) == 0 and lost == []


def holding(text: str, *folders: Path) -> list[Path]:
    """The files below some folders that have a text: event logs, logs, and what workers leave on their disks."""
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert any("events" in str(path.parent) for path in paths), "there is an event log"
    return [path for path in paths if text.encode() in _bytes_of(path)]


def _bytes_of(path: Path) -> bytes:
    """None of a file that has gone: what ends deletes its files."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def once_writing(process: subprocess.Popen[str], writers: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Who writes a file, as soon as somebody does."""
    end = time.monotonic() + 200
    while not (busy := writers()):
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.01)
    return busy


def check_each_once(home: Elsewhere, server: S3Server, *folders: Path) -> None:
    """Each order is there once, here and on the store; the store's secret is in no file of the home or of `folders`."""
    (counts,) = home.run("query", "select count(*) as n, count(distinct order_id) as ids from orders")
    assert (counts["n"], counts["ids"]) == (ROWS, ROWS)
    halves = {half["half"]: half for half in home.run("warehouse", "show")["halves"] if half["table"] == "orders"}
    assert {half["state"] for half in halves.values()} == {"SAME"}
    table = DeltaTable(str(halves["REALTIME"]["url"]), storage_options=server.options)
    ids = table.to_pyarrow_table().column("order_id").to_pylist()
    assert len(set(ids)) == len(ids) == ROWS
    assert holding(server.environment["AWS_SECRET_ACCESS_KEY"], home.folder, *folders) == []
