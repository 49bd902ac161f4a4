"""YARN as Spark's master: containers that see nothing of the home, one of which is killed; and no ResourceManager."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from hybrid.kafka.topics import TopicRecord, produce
from tests.hidden_process import needs_hidden_folders
from tests.lake.elsewhere import ROOT, ROWS, Elsewhere, create_orders, fill, holding
from tests.s3_server import S3Server, needs_s3, s3_server
from tests.yarn_cluster import YarnCluster, kill_container, yarn_cluster

pytestmark = [
    *(pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(400)),
    needs_s3,
    needs_hidden_folders,
]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        found.create_bucket("bucket")
        yield found


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[YarnCluster]:
    """Its containers see neither the home nor the sources of our package."""
    with yarn_cluster(tmp_path_factory.mktemp("cluster") / "yarn", [tmp_path, ROOT / "hybrid"]) as found:
        yield found


@pytest.fixture
def home(cluster: YarnCluster, server: S3Server, broker: str, tmp_path: Path, topic: str) -> Iterator[Elsewhere]:
    folder = tmp_path / "homes" / f"{topic}-orders"
    events = f'"eventLog.enabled" = true\n"eventLog.compress" = false\n"eventLog.dir" = "file://{folder}/events"\n'
    found = Elsewhere(folder, f'{cluster.settings}worker_files = "store"\n{events}', server, broker)
    found.environment["HADOOP_CONF_DIR"] = str(cluster.configuration)
    (folder / "events").mkdir()
    yield found
    found.close()


def test_a_container_is_killed_while_it_ingests_to_the_store(
    home: Elsewhere, cluster: YarnCluster, server: S3Server, broker: str
) -> None:
    fill(broker, home.folder.name)
    create_orders(home)
    ingestion = home.start("ingest", "orders", "--until-caught-up")
    end = time.monotonic() + 200
    while not (busy := cluster.writing_containers()):
        assert ingestion.poll() is None and time.monotonic() < end, ingestion.communicate()
        time.sleep(0.01)
    kill_container(busy.pop())
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

    cluster.kill("ResourceManager")
    produce(broker, home.folder.name, [TopicRecord(b'{"order_id":60000,"ts":1632463351000}', partition=0)])
    home.run("ingest", "orders", code=1)
    assert f"YARN's ResourceManager at {cluster.address} gives no answer: ConnectException" in home.messages
    assert f"yarn-site.xml in {cluster.configuration}" in home.messages
