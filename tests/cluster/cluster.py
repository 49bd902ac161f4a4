"""A whole set-up on one machine, each role on a host of its own: Kafka, PostgreSQL, a store, Spark, and servers.

Two servers with a pipeline: one writes, the other stands by. Two more follow and answer queries.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import sqlalchemy as sa

from hybrid.catalog.database import database_url
from hybrid.home.accounts import Accounts, Right
from hybrid.jvm.jars import ensure_jars
from hybrid.store.ownership import OWNER_KEY
from tests.cluster import services
from tests.cluster.network import Host, entered, network
from tests.cluster.role import Role
from tests.cluster.server import ClusterServer
from tests.soak.events import SCHEMA, offline_config
from tests.soak.harness import JVM_OPTIONS

PREFIX, SUBNET = "hybrid-c", "10.77.0"
BROKERS = ("kafka-1", "kafka-2", "kafka-3")
DATABASE, STORE = "postgresql", "store"
SPARK = ("master", "worker-1", "worker-2")
WRITERS, READERS = ("pipeline-1", "pipeline-2"), ("query-1", "query-2")
TESTS = "tests"  # the host of the test itself
HOSTS = (*BROKERS, DATABASE, STORE, *SPARK, *WRITERS, *READERS, TESTS)
BUCKET, WAREHOUSE = "bucket", "warehouse"
TAKE_OVER_AFTER_S = 9
FIRST_TABLE = "first"


@dataclass
class Cluster:
    """The roles by name. `servers` are those of the product."""

    folder: Path
    hosts: dict[str, Host]
    brokers: str
    secret: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)
    servers: dict[str, ClusterServer] = field(default_factory=dict)

    @property
    def readers(self) -> list[ClusterServer]:
        return [self.servers[name] for name in READERS]

    def writer(self) -> ClusterServer:
        """The server whose home writes the warehouse, by the store's own disk; the first one before any table."""
        claim = self.folder / "store" / "data" / BUCKET / WAREHOUSE / OWNER_KEY
        owner = json.loads(claim.read_text())["owner"]["id"] if claim.exists() else None
        return next((self.servers[name] for name in WRITERS if self.servers[name].owner_id == owner), self._first)

    @property
    def _first(self) -> ClusterServer:
        return self.servers[WRITERS[0]]

    def logged(self) -> str:
        """The ends of what the servers said."""
        return "\n".join(server.logged() for server in self.servers.values())


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A running cluster; this thread, and those that it starts, are on a host of it. All ends with the block.

    HYBRID_CLUSTER_LOGS names a new folder for all that the roles have logged.
    """
    folder = Path(tempfile.mkdtemp(prefix="hybrid-cluster-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    try:
        with network(PREFIX, SUBNET, HOSTS) as hosts, _ended_by_sigterm(), entered(hosts[TESTS]):
            brokers = ",".join(f"{hosts[name].address}:{services.BROKER_PORT}" for name in BROKERS)
            found = Cluster(folder, hosts, brokers)
            try:
                _start_services(found)
                _start_servers(found)
                yield found
            finally:
                for role in found.roles.values():
                    role.kill()
                if kept := os.environ.get("HYBRID_CLUSTER_LOGS"):
                    shutil.copytree(folder, kept, ignore=_all_but_logs, ignore_dangling_symlinks=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _all_but_logs(folder: str, names: list[str]) -> list[str]:
    kept = (".log", "stderr")  # the latter of Spark's executors
    return [name for name in names if name == "data" or not (name.endswith(kept) or Path(folder, name).is_dir())]


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM to this process ends the block as Ctrl-C does."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _start_services(found: Cluster) -> None:
    folder, hosts = found.folder, found.hosts
    store, s3 = services.store(hosts[STORE], folder)
    found.environment = {
        **s3.environment,
        **JVM_OPTIONS,
        "HYBRID_KAFKA": found.brokers,
        "HYBRID_WAREHOUSE": f"s3://{BUCKET}/{WAREHOUSE}",
    }
    _start(found, [store, *services.spark({name: hosts[name] for name in SPARK}, folder)])
    _start(found, [services.database(hosts[DATABASE], f"{SUBNET}.0/24", folder)])
    _start(found, services.brokers({name: hosts[name] for name in BROKERS}, folder))
    for role in found.roles.values():
        role.await_answers()
    s3.create_bucket(BUCKET)
    for name in WRITERS:
        _create_database(hosts[DATABASE], _database_name(name))


def _start_servers(found: Cluster) -> None:
    """The writer's first table claims the warehouse; the others then follow, and start no JVM."""
    for name in (*WRITERS, *READERS):
        home = found.folder / name / "home"
        home.mkdir(parents=True)
        if found.secret:
            shutil.copy(found.folder / WRITERS[0] / "home" / "access.json", home)
        else:
            _, found.secret = Accounts(home).add("cluster", Right.ADMIN)
        if name in WRITERS:
            (home / "hybrid.toml").write_text(_settings(found, name))
        server = ClusterServer(name, found.hosts[name], found.folder, found.secret, found.environment)
        found.servers[name] = server
    first, *others = found.servers.values()
    _start(found, [first.role])
    first.role.await_answers()
    first.ok("POST", "/schemas", {"schemaName": FIRST_TABLE, **SCHEMA})
    first.ok("POST", "/tables", offline_config(FIRST_TABLE))
    _start(found, [server.role for server in others])
    for server in others:
        server.role.await_answers()


def _start(found: Cluster, roles: Sequence[Role]) -> None:
    for role in roles:
        found.roles[role.name] = role
        role.start()


def _settings(found: Cluster, name: str) -> str:
    own, master = found.hosts[name].address, found.hosts[SPARK[0]].address
    jars = ":".join(map(str, ensure_jars().spark))  # as the driver has them: then its archive of classes fits executors
    place = f"{found.hosts[DATABASE].address}:{services.DATABASE_PORT}/{_database_name(name)}"
    return f"""\
catalog = "postgresql://{services.DATABASE_USER}@{place}"
take_over_after_s = {TAKE_OVER_AFTER_S}

[spark]
master = "spark://{master}:{services.MASTER_PORT}"
driver_memory = "1g"
worker_python = "{sys.executable}"
"driver.host" = "{own}"
"driver.bindAddress" = "{own}"
"cores.max" = 2
"executor.cores" = 1
"executor.memory" = "1g"
"executor.extraClassPath" = "{jars}"
"""


def _database_name(name: str) -> str:
    return name.replace("-", "_")


def _create_database(host: Host, name: str) -> None:
    url = f"postgresql://{services.DATABASE_USER}@{host.address}:{services.DATABASE_PORT}/postgres"
    engine = sa.create_engine(database_url(url), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
    finally:
        engine.dispose()
