"""The local Kafka broker's configuration files: `server.properties` and `log4j2.properties`."""

from __future__ import annotations

import re
from pathlib import Path

from hybrid.jvm.log4j import escaped, write_log4j

_SERVER = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=1
num.network.threads=2
num.io.threads=4
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
# Events keep their own, often old, times: retention by time would delete an example as soon as it is produced.
log.retention.ms=-1
"""

_STARTED = """\
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""
_PORT = re.compile(r"^listeners=PLAINTEXT://127\.0\.0\.1:(\d+)", re.MULTILINE)


def write(folder: Path, log: Path, port: int, controller_port: int) -> Path:
    """Write both files to `folder`. Returns the path of `server.properties`."""
    server = folder / "server.properties"
    data = escaped(folder / "data")
    server.write_text(_SERVER.format(port=port, controller_port=controller_port, data=data), encoding="ascii")
    write_log4j(folder / "log4j2.properties", log, _STARTED)
    return server


def port_of(folder: Path) -> int | None:
    """The port that the broker listened on last; None when it was never started here."""
    try:
        match = _PORT.search((folder / "server.properties").read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return None
    return int(match[1]) if match is not None else None


def jvm_flags(folder: Path) -> list[str]:
    """The JVM flags that point the broker to its logging configuration."""
    return [f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
