"""Corrections, moves that merge, and upkeep by workers of a cluster that see nothing of the home (ADR 71).

One cluster for all tests. What its workers give is compared with what workers give that see the home.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.lake.commit_context import CommitContext
from tests.hidden_process import needs_hidden_folders
from tests.lake import corrections
from tests.lake.elsewhere import ROOT, Elsewhere, corrections_of, holding, once_writing
from tests.s3_server import S3Server, needs_s3, s3_server
from tests.spark_cluster import SparkCluster, SparkWorker, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600), needs_s3, needs_hidden_folders]


@dataclass(frozen=True)
class Place:
    """A store, a cluster with two workers, and the folder of homes, which the workers do not see."""

    server: S3Server
    cluster: SparkCluster
    homes: Path
    workers: Sequence[SparkWorker]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    homes = tmp_path_factory.mktemp("homes")
    with (
        s3_server(tmp_path_factory.mktemp("s3") / "store") as server,
        spark_cluster(tmp_path_factory.mktemp("cluster") / "spark", [homes, ROOT / "hybrid"]) as cluster,
    ):
        server.create_bucket("bucket")
        workers = [cluster.start_worker(name) for name in ("one", "two")]
        cluster.await_workers(*workers)
        yield Place(server, cluster, homes, workers)


@pytest.fixture(scope="module")
def home(place: Place, broker: str) -> Iterator[Elsewhere]:
    """A home with the cluster, and topics of both tables."""
    found = Elsewhere.with_events(
        place.homes / f"t-{uuid.uuid4().hex[:12]}", place.cluster.settings, place.server, broker
    )
    corrections.fill(broker, found.folder.name)
    yield found
    found.close()


@pytest.fixture(scope="module")
def found(home: Elsewhere) -> dict[str, Any]:
    """What the home says and has after everything."""
    return corrections_of(home, "corrections")


def here(workbench: CommitContext, folder: Path, broker: str, topic: str) -> dict[str, Any]:
    """What the tables say and have with workers that see everything, those of this process."""
    folder.mkdir()
    with hybrid.connect(folder) as hy:
        vars(hy.context)["bench"] = workbench
        return {"said": corrections.corrections(hy, folder, broker, topic), "rows": corrections.rows_of(hy)}


def test_workers_that_see_no_home_do_what_others_do(
    place: Place, home: Elsewhere, found: dict[str, Any], workbench: CommitContext, tmp_path: Path
) -> None:
    expected = here(workbench, tmp_path / "home", home.broker, home.folder.name)
    assert found["said"] == expected["said"]
    assert found["rows"] == expected["rows"]
    assert holding(place.server.environment["AWS_SECRET_ACCESS_KEY"], place.homes, place.cluster.folder) == []
    staged = home.folder / "warehouse" / corrections.CUSTOMERS / "staging"
    assert [path.name for path in staged.iterdir() if path.is_dir()] == []


def test_a_worker_is_killed_during_a_job(place: Place, home: Elsewhere, found: dict[str, Any]) -> None:
    assert found["said"]
    job = home.start("job", "run", str(home.folder / "job.yml"))
    busy = once_writing(job, lambda: [worker for worker in place.workers if worker.has_open_files])
    busy[0].kill()
    out, messages = job.communicate(timeout=250)
    assert job.returncode == 0, messages
    assert "29 changed" in json.loads(out)["sentence"], out
    (counts,) = home.run("query", "select count(*) as n, sum(version) as v from customers where name = 'job'")
    assert (counts["n"], counts["v"]) == (29, 290_000), "customer 5 has a later version elsewhere"
    home.run("purge", "customers", "--where", "version < 200", "--yes", code=1)
    assert "a purge needs workers that share the home's folders" in home.messages
