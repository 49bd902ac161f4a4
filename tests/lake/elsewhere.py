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

from deltalake import DeltaTable

from hybrid.kafka.topics import TopicRecord, create_topic, produce
from tests.mirrors import new_url
from tests.s3_server import S3Server

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")

PARTITIONS, ROWS = 4, 60_000
_MAIN = "from hybrid.cli.main import main; main()"


class Elsewhere:
    """A home with some settings of Spark; each command is a process of its own."""

    def __init__(self, folder: Path, spark: str, server: S3Server, broker: str) -> None:
        self.folder, self.url, self.broker = folder, new_url(), broker
        folder.mkdir(parents=True)
        (folder / "hybrid.toml").write_text(f'warehouse = "{self.url}"\n{spark}')
        self.messages, self.processes = "", list[subprocess.Popen[str]]()
        self.environment = {**os.environ, **server.environment, "PYTHONPATH": str(ROOT)}

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _MAIN, "--home", str(self.folder), *words, "--json"]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**self.environment, **environment},
            start_new_session=True,
        )
        self.processes.append(process)
        return process

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

    def run(self, *words: str, code: int = 0, **environment: str) -> Any:
        process = self.start(*words, **environment)
        out, self.messages = process.communicate(timeout=250)
        assert process.returncode == code, f"hybrid {' '.join(words)}: exit {process.returncode}\n{self.messages}"
        return json.loads(out) if out.strip() else None


def corrections_of(home: Elsewhere, which: str) -> dict[str, Any]:
    """What a process of the home says and has after `tests.lake.corrections`, in topics of the home's name."""
    words = [sys.executable, "-m", "tests.lake.corrections", str(home.folder), home.broker, home.folder.name, which]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=home.environment, timeout=400)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


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
    for partition in range(PARTITIONS):
        numbers = range(partition, ROWS, PARTITIONS)
        values = (
            f'{{"order_id":{n},"customer_id":{n % 100},"order_status":"OPEN","amount":1.5,"ts":{1632463351000 + n}}}'
            for n in numbers
        )
        produce(broker, topic, [TopicRecord(value.encode(), partition=partition) for value in values])


def holding(text: str, *folders: Path) -> list[Path]:
    """The files below some folders that have a text: event logs, logs, and what workers leave on their disks."""
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert any("events" in str(path.parent) for path in paths), "there is an event log"
    return [path for path in paths if text.encode() in path.read_bytes()]


def once_writing(ingestion: subprocess.Popen[str], writers: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Who writes a file, as soon as somebody does."""
    end = time.monotonic() + 200
    while not (busy := writers()):
        assert ingestion.poll() is None and time.monotonic() < end, ingestion.communicate()
        time.sleep(0.01)
    return busy


def check_each_once(home: Elsewhere, server: S3Server, *folders: Path) -> None:
    """Each order is there once, here and on the store; the store's secret is in no file of the home or of `folders`."""
    (counts,) = home.run("query", "select count(*) as n, count(distinct order_id) as ids from orders")
    assert (counts["n"], counts["ids"]) == (ROWS, ROWS)
    halves = {half["half"]: half for half in home.run("warehouse", "show")["halves"]}
    assert {half["state"] for half in halves.values()} == {"SAME"}
    table = DeltaTable(str(halves["REALTIME"]["url"]), storage_options=server.options)
    ids = table.to_pyarrow_table().column("order_id").to_pylist()
    assert len(set(ids)) == len(ids) == ROWS
    assert holding(server.environment["AWS_SECRET_ACCESS_KEY"], home.folder, *folders) == []
