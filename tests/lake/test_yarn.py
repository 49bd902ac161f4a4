"""YARN as Spark's master: containers that see nothing of the home, one of which is killed; and no ResourceManager."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hidden_process import needs_hidden_folders
from tests.lake.elsewhere import ROOT, CommandProcess, Elsewhere, check_each_once, create_orders, fill, once_writing
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
    """One that is not started yet. Its containers see neither the home nor the sources of our package."""
    with yarn_cluster(tmp_path_factory.mktemp("cluster") / "yarn", [tmp_path, ROOT / "hybrid"]) as found:
        yield found


@pytest.fixture
def home(cluster: YarnCluster, server: S3Server, broker: str, tmp_path: Path, topic: str) -> Iterator[Elsewhere]:
    folder = tmp_path / "homes" / f"{topic}-orders"
    found = Elsewhere.with_events(folder, cluster.settings, server, broker)
    found.environment["HADOOP_CONF_DIR"] = str(cluster.configuration)
    yield found
    found.close()


def test_a_container_is_killed_while_it_ingests_to_the_store(
    home: Elsewhere, cluster: YarnCluster, server: S3Server, broker: str
) -> None:
    """And before, what a process says that finds no ResourceManager, and goes on once there is one."""
    fill(broker, home.folder.name)
    create_orders(home)
    commands = CommandProcess(home)
    commands.run("ingest", "orders", code=1)
    assert f"YARN's ResourceManager at {cluster.address} gives no answer: ConnectException" in commands.messages
    assert f"yarn-site.xml in {cluster.configuration}" in commands.messages

    cluster.start()
    commands.begin("ingest", "orders", "--until-caught-up")
    kill_container(once_writing(commands.process, lambda: [*cluster.writing_containers()])[0])
    commands.end()
    commands.close()
    check_each_once(home, server, cluster.folder)
