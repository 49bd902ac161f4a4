"""A Spark cluster whose workers see nothing of the home: they get our package, and write to the warehouse's store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from hybrid.kafka.topics import TopicRecord, create_topic, produce
from tests.mirrors import new_url
from tests.s3_server import S3Server, needs_s3, s3_server
from tests.spark_cluster import SparkCluster, needs_hidden_folders, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(400), needs_s3, needs_hidden_folders]

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS, ROWS = 4, 60_000
_MAIN = "from hybrid.cli.main import main; main()"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        found.create_bucket("bucket")
        yield found


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[SparkCluster]:
    """Its workers see neither the home nor the sources of our package."""
    with spark_cluster(tmp_path_factory.mktemp("cluster") / "spark", [tmp_path, ROOT / "hybrid"]) as found:
        yield found


class Elsewhere:
    """A home whose Spark is the cluster; each command is a process of its own."""

    def __init__(self, folder: Path, cluster: SparkCluster, server: S3Server, broker: str) -> None:
        self.folder, self.url, self.broker = folder, new_url(), broker
        folder.mkdir(parents=True)
        (folder / "events").mkdir()
        events = f'"eventLog.enabled" = true\n"eventLog.dir" = "file://{folder}/events"\n'
        settings = f'warehouse = "{self.url}"\n{cluster.settings}worker_files = "store"\n{events}'
        (folder / "hybrid.toml").write_text(settings)
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


@pytest.fixture
def home(cluster: SparkCluster, server: S3Server, broker: str, tmp_path: Path, topic: str) -> Iterator[Elsewhere]:
    found = Elsewhere(tmp_path / "homes" / f"{topic}-orders", cluster, server, broker)
    yield found
    found.close()


def test_a_worker_is_killed_while_it_ingests_to_the_store(
    home: Elsewhere, cluster: SparkCluster, server: S3Server, broker: str
) -> None:
    workers = [cluster.start_worker(name) for name in ("one", "two")]
    fill(broker, home.folder.name)
    create_orders(home)
    cluster.await_workers(*workers)
    home.run("ingest", "orders", code=1, HYBRID_SPARK_WORKER_PYTHON="/no/such/python")
    assert "Spark's workers have no Python '/no/such/python'" in home.messages
    ingestion = home.start("ingest", "orders", "--until-caught-up")
    end = time.monotonic() + 200
    while not (busy := [worker for worker in workers if worker.has_open_files]):
        assert ingestion.poll() is None and time.monotonic() < end, ingestion.communicate()
        time.sleep(0.01)
    busy[0].kill()
    _, messages = ingestion.communicate(timeout=250)
    assert ingestion.returncode == 0, messages
    (counts,) = home.run("query", "select count(*) as n, count(distinct order_id) as ids from orders")
    assert (counts["n"], counts["ids"]) == (ROWS, ROWS)
    halves = {half["half"]: half for half in home.run("warehouse", "show")["halves"]}
    assert {half["state"] for half in halves.values()} == {"SAME"}
    table = DeltaTable(str(halves["REALTIME"]["url"]), storage_options=server.options)
    ids = table.to_pyarrow_table().column("order_id").to_pylist()
    assert len(set(ids)) == len(ids) == ROWS
    assert holding(server.environment["AWS_SECRET_ACCESS_KEY"], home.folder, cluster.folder) == []


def holding(text: str, *folders: Path) -> list[Path]:
    """The files below some folders that have a text: event logs, logs, and what workers leave on their disks."""
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert any("events" in str(path.parent) for path in paths), "there is an event log"
    return [path for path in paths if text.encode() in path.read_bytes()]
