"""A Spark Connect server whose workers see nothing of the home, which starts no JVM and outlives the server."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hybrid
from hybrid.catalog.serving import Ingestion
from hybrid.errors import MachineError, SpecError
from hybrid.jvm.jars import ensure_jars
from hybrid.lake import spark_connect
from hybrid.lake.spark_connect import ConnectServer, is_remote, make_columns
from hybrid.lake.spark_workers import WorkerSide, require_workers
from hybrid.progress import Silent
from hybrid.serve.ingester import Ingester, SharedLooks
from tests.hidden_process import needs_hidden_folders
from tests.lake import corrections
from tests.lake.elsewhere import ROOT, ROWS, CommandProcess, Elsewhere, create_orders, fill, holding
from tests.s3_server import S3Server, needs_s3, s3_server
from tests.spark_connect_server import SparkConnectServer, spark_connect_server

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300), needs_s3, needs_hidden_folders]

NO_JAVA = {"JAVA_HOME": "/no/java", "PATH": "/no/programs"}
COUNTS = "select count(*) as n, count(distinct order_id) as ids from orders"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        found.create_bucket("bucket")
        yield found


@pytest.fixture(scope="module", autouse=True)
def columns() -> Iterator[None]:
    """Other tests of this process have sessions of its JVM."""
    yield
    make_columns(for_server=False)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, homes: Path) -> Iterator[SparkConnectServer]:
    """Its workers see neither the homes nor the sources of our package."""
    folder, hidden = tmp_path_factory.mktemp("connect") / "server", [homes, ROOT / "hybrid"]
    with spark_connect_server(SparkConnectServer(folder, ensure_jars(Silent()).spark, hidden)) as found:
        yield found


@pytest.fixture
def home(server: SparkConnectServer, store: S3Server, broker: str, homes: Path) -> Iterator[Elsewhere]:
    found = Elsewhere(homes / f"t-{uuid.uuid4().hex[:12]}", server.settings, store, broker)
    yield found
    found.close()


def until(found: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    end = time.monotonic() + timeout_s
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def test_moves_jobs_and_backfills_run_there_without_java(
    home: Elsewhere, server: SparkConnectServer, store: S3Server
) -> None:
    corrections.fill(home.broker, home.folder.name)
    commands = CommandProcess(home, **NO_JAVA)
    found = commands.corrections(home.broker, home.folder.name, "corrected")
    commands.run("query", "--engine", "spark", "select count(*) from customers", code=1)
    assert "needs workers that share the home's folders, or a local master" in commands.messages
    commands.close()
    job, revert, plan, run = found["said"]
    assert job.startswith("Replaced segment 'customers_") and "; 0 added, 30 removed, 30 changed (" in job
    assert revert.startswith("Reverted 'ID'") and plan.startswith("Would correct 2 of 2 buckets of 'customers'")
    assert run.startswith("Corrected 2 buckets of 'customers': 100 rows before, 100 after; 0 added, 0 removed, 100 ")
    assert len(found["rows"]["customers"]) == 100 and all("!'" in row for row in found["rows"]["customers"])
    assert holding(store.environment["AWS_SECRET_ACCESS_KEY"], home.folder, server.folder) == []


def test_a_server_that_is_killed_and_started_again(
    home: Elsewhere, server: SparkConnectServer, store: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home.broker, home.folder.name)
    create_orders(home)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    here = hybrid.connect(home.folder)
    serving = here.context.catalog.serving

    def ingestion() -> Ingestion | None:
        return serving.ingestions().get("orders")

    ingester = Ingester(here, "orders", SharedLooks(serving), lambda: False)
    ingester.start()
    try:
        until(lambda: server.has_open_files, "a worker writes")
        server.kill()
        until(lambda: getattr(ingestion(), "state", "") == "STOPPED", "it says that it has stopped")
        stopped = ingestion()
        assert stopped is not None and "The Spark Connect server on 127.0.0.1 " in str(stopped.detail), stopped
        server.start()
        until(lambda: (ingestion() or stopped).state == "INGESTING" and ingestion().behind == 0, "it goes on")
    finally:
        ingester.stop.set()
        ingester.join()
    assert home.run("query", COUNTS) == [{"n": ROWS, "ids": ROWS}]


def test_a_session_that_the_server_has_ended_is_replaced(server: SparkConnectServer) -> None:
    said = list[str]()
    ours = ConnectServer(server.url, {"spark.sql.shuffle.partitions": "3"}, said.append)
    first = ours.session()
    assert is_remote(first) and ours.session() is first and first.conf.get("spark.sql.shuffle.partitions") == "3"
    first.client.release_session()
    assert ours.session() is not first and said == [f"Opening a session at {server.url}."] * 2


def test_what_a_server_cannot_change_is_refused(server: SparkConnectServer) -> None:
    with pytest.raises(SpecError, match=r"^spark\.executor.memory cannot be changed in a session of the Spark Connect"):
        ConnectServer(server.url, {"spark.executor.memory": "1g"}, lambda _: None).session()


def test_passwords_of_kafka_are_not_in_the_events(server: SparkConnectServer) -> None:
    session = spark_connect._client_session(server.url)
    ConnectServer(server.url, {}, lambda _: None)._configure(session)
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", "localhost:9").option("subscribe", "shown")
    reader.option("kafka.sasl.jaas.config", 'a password="not-shown";').load().limit(0).collect()
    session.range(3).collect()
    session.stop()
    assert holding("shown", server.folder / "events") and holding("not-shown", server.folder / "events") == []


def test_what_a_server_lacks_is_said(tmp_path: Path) -> None:
    with spark_connect_server(SparkConnectServer(tmp_path / "server", python="/no/such/python")) as bare:
        with pytest.raises(MachineError, match="lacks Spark's connector of Kafka") as raised:
            ConnectServer(bare.url, {}, lambda _: None).session()
        assert "spark.jars.packages=org.apache.spark:spark-sql-kafka" in str(raised.value.hint)
        session = spark_connect._client_session(bare.url)
        side, archive = WorkerSide(bare.url, "PYSPARK_PYTHON"), tmp_path / "hybrid-abc.zip"
        with pytest.raises(MachineError, match="Spark's workers have no Python '/no/such/python'"):
            require_workers(session, 1, archive, side, needs_store=True)
        session.stop()


def test_no_server_and_no_client() -> None:
    started = time.monotonic()
    with pytest.raises(MachineError, match=r"server on 127.0.0.1 does not answer: .*127.0.0.1:1: .*Connection refused"):
        ConnectServer("sc://127.0.0.1:1", {}, lambda _: None).session()
    assert time.monotonic() - started < 20
    code = "import sys; sys.modules['grpc'] = None; from hybrid.lake.spark_connect import *\n"
    code += "try: ConnectServer('sc://there', {}, print).session()\nexcept MachineError as error: print(error.hint)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines() == ["pip install 'hybrid[spark-connect]'"]
