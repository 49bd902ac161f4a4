"""A Spark cluster whose workers see nothing of the home: they get our package, and write to the warehouse's store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hidden_process import needs_hidden_folders
from tests.lake.elsewhere import ROOT, Elsewhere, check_each_once, create_orders, fill, once_writing
from tests.s3_server import S3Server, needs_s3, s3_server
from tests.spark_cluster import SparkCluster, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(400), needs_s3, needs_hidden_folders]


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


@pytest.fixture
def home(cluster: SparkCluster, server: S3Server, broker: str, tmp_path: Path, topic: str) -> Iterator[Elsewhere]:
    folder = tmp_path / "homes" / f"{topic}-orders"
    found = Elsewhere.with_events(folder, cluster.settings, server, broker)
    yield found
    found.close()


def test_a_worker_is_killed_while_it_ingests_to_the_store(
    home: Elsewhere, cluster: SparkCluster, server: S3Server, broker: str
) -> None:
    workers = [cluster.start_worker("one")]
    fill(broker, home.folder.name)
    create_orders(home)
    cluster.await_workers(*workers)
    home.run("ingest", "orders", code=1, HYBRID_SPARK_WORKER_PYTHON="/no/such/python")
    assert "Spark's workers have no Python '/no/such/python'" in home.messages
    workers.append(cluster.start_worker("two"))
    cluster.await_workers(*workers)
    ingestion = home.start("ingest", "orders", "--until-caught-up")
    busy = once_writing(ingestion, lambda: [worker for worker in workers if worker.has_open_files])
    busy[0].kill()
    _, messages = ingestion.communicate(timeout=250)
    assert ingestion.returncode == 0, messages
    check_each_once(home, server, cluster.folder)
