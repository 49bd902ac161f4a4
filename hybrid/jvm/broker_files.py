"""The files that the local Kafka broker is configured by: `server.properties` and `log4j2.properties`."""

from __future__ import annotations

from pathlib import Path

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

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""


def write(folder: Path, log: Path, port: int, controller_port: int) -> Path:
    """Write both files into `folder`; the path of `server.properties`."""
    server = folder / "server.properties"
    data = _escaped(folder / "data")
    server.write_text(_SERVER.format(port=port, controller_port=controller_port, data=data), encoding="ascii")
    (folder / "log4j2.properties").write_text(_LOG4J.format(log=_escaped(log)), encoding="ascii")
    return server


def jvm_flags(folder: Path) -> list[str]:
    """The flags by which the broker finds its logging."""
    return [f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]


def _escaped(path: Path) -> str:
    """A path as a value of a Java properties file, which is Latin-1 with escapes."""
    units = str(path).replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)
