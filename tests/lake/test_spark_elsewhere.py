"""A Spark cluster whose workers see nothing of the home: they get our package, and write to the warehouse's store.

One cluster for all tests. What its workers give in corrections, moves that merge, and upkeep (ADR 71) is compared with
what workers give that see the home.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.lake.commit_context import CommitContext
from tests.hidden_process import needs_hidden_folders
from tests.lake import corrections
from tests.lake.elsewhere import (
    ROOT,
    CommandProcess,
    Elsewhere,
    check_each_once,
    create_orders,
    fill,
    holding,
    once_writing,
)
from tests.s3_server import S3Server, needs_s3, s3_server
from tests.spark_cluster import SparkCluster, SparkWorker, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600), needs_s3, needs_hidden_folders]


@dataclass(frozen=True)
class Place:
    """A store, a cluster with two workers, and the folder of homes, which the workers do not see."""

    server: S3Server
    cluster: SparkCluster
    homes: Path
    workers: list[SparkWorker]

    def start_worker(self) -> None:
        """One more, as a killed one does not come back."""
        self.workers.append(self.cluster.start_worker(f"worker-{len(self.workers)}"))
        self.cluster.await_workers(self.workers[-1])

    def kill_writing(self, commands: CommandProcess) -> None:
        """Kills a worker that writes a file of a command, as soon as there is one."""
        alive = [worker for worker in self.workers if worker.process.poll() is None]
        once_writing(commands.process, lambda: [worker for worker in alive if worker.has_open_files])[0].kill()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    homes = tmp_path_factory.mktemp("homes")
    with (
        s3_server(tmp_path_factory.mktemp("s3") / "store") as server,
        spark_cluster(tmp_path_factory.mktemp("cluster") / "spark", [homes, ROOT / "hybrid"]) as cluster,
    ):
        server.create_bucket("bucket")
        found = Place(server, cluster, homes, [])
        for _ in range(2):
            found.start_worker()
        yield found


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
def commands(home: Elsewhere) -> CommandProcess:
    """The process of the home, with its session of Spark."""
    return CommandProcess(home)


@pytest.fixture(scope="module")
def found(home: Elsewhere, commands: CommandProcess) -> dict[str, Any]:
    """What the home says and has after everything."""
    return commands.corrections(home.broker, home.folder.name, "corrections")


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


def test_a_worker_is_killed_during_a_job(
    place: Place, home: Elsewhere, commands: CommandProcess, found: dict[str, Any]
) -> None:
    assert found["said"]
    commands.begin("job", "run", str(home.folder / "job.yml"))
    place.kill_writing(commands)
    assert "29 changed" in commands.end()["sentence"]
    (counts,) = home.run("query", "select count(*) as n, sum(version) as v from customers where name = 'job'")
    assert (counts["n"], counts["v"]) == (29, 290_000), "customer 5 has a later version elsewhere"
    home.run("purge", "customers", "--where", "version < 200", "--yes", code=1)
    assert "a purge needs workers that share the home's folders" in home.messages


def test_a_worker_is_killed_while_it_ingests_to_the_store(
    place: Place, home: Elsewhere, commands: CommandProcess
) -> None:
    fill(home.broker, home.folder.name)
    create_orders(home)
    place.start_worker()
    commands.begin("ingest", "orders", "--until-caught-up")
    place.kill_writing(commands)
    commands.end()
    commands.close()
    check_each_once(home, place.server, place.cluster.folder)
