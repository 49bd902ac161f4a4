"""Corrections, moves that merge, and upkeep by workers of a cluster that see nothing of the home (ADR 71).

One cluster for all tests. What its workers give is compared with what workers give that see the home.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import hybrid
from hybrid.lake.commit_context import CommitContext
from tests.hidden_process import needs_hidden_folders
from tests.lake import corrections
from tests.lake.elsewhere import ROOT, Elsewhere, holding
from tests.s3_server import S3Server, needs_s3, s3_server
from tests.spark_cluster import SparkCluster, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600), needs_s3, needs_hidden_folders]


@dataclass(frozen=True)
class Place:
    """A store, a cluster with two workers, and the folder of homes, which the workers do not see."""

    server: S3Server
    cluster: SparkCluster
    homes: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    homes = tmp_path_factory.mktemp("homes")
    with (
        s3_server(tmp_path_factory.mktemp("s3") / "store") as server,
        spark_cluster(tmp_path_factory.mktemp("cluster") / "spark", [homes, ROOT / "hybrid"]) as cluster,
    ):
        server.create_bucket("bucket")
        cluster.await_workers(*(cluster.start_worker(name) for name in ("one", "two")))
        yield Place(server, cluster, homes)


def elsewhere(place: Place, broker: str, topic: str) -> dict[str, object]:
    """What a process of a home with the cluster says and has."""
    home = Elsewhere.with_events(place.homes / topic, place.cluster.settings, place.server, broker)
    words = [sys.executable, "-m", "tests.lake.corrections", str(home.folder), broker, topic]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=home.environment, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def here(workbench: CommitContext, folder: Path, broker: str, topic: str) -> dict[str, object]:
    """The same by workers of this process."""
    folder.mkdir()
    with hybrid.connect(folder) as hy:
        vars(hy.context)["bench"] = workbench
        return {"said": corrections.corrections(hy, folder, broker, topic), "rows": corrections.rows_of(hy)}


def test_workers_that_see_no_home_do_what_others_do(
    place: Place, workbench: CommitContext, broker: str, topic: str, tmp_path: Path
) -> None:
    corrections.fill(broker, topic)
    found, expected = elsewhere(place, broker, topic), here(workbench, tmp_path / "home", broker, topic)
    assert found["said"] == expected["said"]
    assert found["rows"] == expected["rows"]
    assert holding(place.server.environment["AWS_SECRET_ACCESS_KEY"], place.homes, place.cluster.folder) == []
