"""The services that servers of the product need: Kafka brokers, PostgreSQL, an S3 store, a Spark cluster."""

from __future__ import annotations

import base64
import socket
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyspark

from hybrid.jvm.jars import ensure_jars
from hybrid.jvm.java import find_java
from hybrid.jvm.log4j import escaped, write_log4j
from hybrid.kafka.topics import cluster_answers
from tests import postgresql, s3_server
from tests.cluster.network import Host
from tests.cluster.role import Role

BROKER_PORT, CONTROLLER_PORT, DATABASE_PORT, STORE_PORT, MASTER_PORT = 9092, 9093, 5432, 7070, 7077
DATABASE_USER = "hybrid"
_JAVA = ("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_BROKER = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{address}:9092,CONTROLLER://{address}:9093
advertised.listeners=PLAINTEXT://{address}:9092
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.network.threads=2
num.io.threads=4
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=3
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""
_STARTED = "logger.server.name = kafka.server.KafkaRaftServer\nlogger.server.level = info\n"


def listens(host: Host, port: int) -> bool:
    """Whether somebody accepts connections there, seen from this thread's host."""
    try:
        socket.create_connection((host.address, port), timeout=1).close()
    except OSError:
        return False
    return True


def brokers(hosts: Mapping[str, Host], folder: Path) -> list[Role]:
    """Brokers of one cluster that are its controllers, too, with their disks formatted."""
    voters = ",".join(
        f"{node}@{host.address}:{CONTROLLER_PORT}" for node, host in enumerate(hosts.values(), start=1)
    )  # fmt: skip
    cluster_id = base64.urlsafe_b64encode((uuid.uuid4().int >> 1).to_bytes(16)).decode().rstrip("=")
    class_path = ":".join(map(str, ensure_jars().kafka))
    roles, formats = [], []
    for node, (name, host) in enumerate(hosts.items(), start=1):
        own = folder / name
        own.mkdir()
        properties = own / "server.properties"
        text = _BROKER.format(node=node, voters=voters, address=host.address, data=escaped(own / "data"))
        properties.write_text(text, encoding="ascii")
        log4j = write_log4j(own / "log4j2.properties", own / "kafka.log", _STARTED)
        java = [str(find_java().executable), *_JAVA, f"-Dlog4j2.configurationFile={log4j}", "-cp", class_path]
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)]
        formats.append(subprocess.Popen(tool, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL))
        command = [*java, "kafka.Kafka", str(properties)]
        answers = lambda host=host: cluster_answers(f"{host.address}:{BROKER_PORT}")  # noqa: E731
        roles.append(Role(name, host, command, own, answers))
    assert [process.wait(timeout=60) for process in formats] == [0] * len(formats)
    return roles


def database(host: Host, network: str, folder: Path) -> Role:
    """PostgreSQL, whose user may connect from everywhere in the network."""
    own = folder / "postgresql"
    own.mkdir()
    postgresql.create_cluster(own, DATABASE_USER)
    with (own / "pg_hba.conf").open("a") as access:
        access.write(f"host all all {network} trust\n")
    command = postgresql.command(own, host.address, DATABASE_PORT)
    return Role("postgresql", host, command, own, lambda: listens(host, DATABASE_PORT))


def store(host: Host, folder: Path) -> tuple[Role, s3_server.S3Server]:
    """An S3 server over a folder, and what its clients must know."""
    own, data = folder / "store", folder / "store" / "data"
    data.mkdir(parents=True)
    address = f"{host.address}:{STORE_PORT}"
    process = s3_server.S3Process(address, data, None)
    role = Role("store", host, process.command, own, lambda: listens(host, STORE_PORT))
    return role, s3_server.S3Server(address, process)


def spark(hosts: Mapping[str, Host], folder: Path) -> list[Role]:
    """A standalone master on the first host, a worker on each other one, which know nothing of the product."""
    (name, master), *workers = hosts.items()
    script = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    url = f"spark://{master.address}:{MASTER_PORT}"

    def role(name: str, host: Host, kind: str, options: list[str], port: int) -> Role:
        own = folder / name
        own.mkdir()
        known = {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": host.address,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOG_DIR": str(own),
        }
        place = ["--host", host.address, "--port", str(port), "--webui-port", "0"]
        command = [script, f"org.apache.spark.deploy.{kind}", *place, *options]
        return Role(name, host, command, own, lambda: listens(host, port), known)

    roles = [role(name, master, "master.Master", [], MASTER_PORT)]
    for name, host in workers:
        options = ["--cores", "2", "--memory", "3g", "--work-dir", str(folder / name / "work"), url]
        roles.append(role(name, host, "worker.Worker", options, MASTER_PORT + 1))
    return roles
