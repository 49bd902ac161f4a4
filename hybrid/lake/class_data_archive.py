"""A class data sharing archive (Java CDS) for Spark's JVM: with it a session starts in two thirds of the time.

It holds the classes that a rehearsal loaded, for one Java and one class path. A JVM that finds the archive unsuitable
or damaged starts without it, as slowly as before.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import HybridError
from hybrid.jvm.broker import LocalBroker
from hybrid.jvm.jars import cache_root, jar_folder
from hybrid.jvm.java import Java
from hybrid.kafka.topics import create_topic
from hybrid.lake.spark import SparkSettings, spark_session
from hybrid.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REHEARSAL_S = 600
# Another number for another rehearsal: archives of the one before do not serve.
_REHEARSAL = 2
_SILENT = "-Xlog:cds*=off"


def archive_of(java: Java) -> Path:
    """The path of the archive for this Java and this installation of Spark. The file may not exist yet."""
    parts = [str(java.home), _java_build(java), _spark_home(), version("pyspark"), str(jar_folder()), str(_REHEARSAL)]
    identity = "\n".join(parts)
    return cache_root() / "archives" / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def with_archive(java: Java) -> tuple[str, ...]:
    """The JVM options that use the archive; empty when there is no archive."""
    archive = archive_of(java)
    return (f"-XX:SharedArchiveFile={archive}", _SILENT) if archive.exists() else ()


def ensure_archive(java: Java, jars: Sequence[Path], progress: Progress) -> Path | None:
    """The archive's path, after building the archive if it is missing (half a minute).

    None when that fails, which is harmless.
    """
    target = archive_of(java)
    if target.exists():
        return target
    progress.say("Preparing an archive of Spark's classes, with which it starts faster (once, half a minute).")
    target.parent.mkdir(parents=True, exist_ok=True)
    _forget_older_ones(target.parent)
    made = target.with_suffix(f".{os.getpid()}.part")
    words = [sys.executable, "-m", "hybrid.lake.class_data_archive", str(made), str(java.home), *map(str, jars)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_REHEARSAL_S, check=False)
        if done.returncode == 0 and made.exists():
            target.with_suffix(".txt").write_text(_spark_home(), encoding="utf-8")
            os.replace(made, target)
            return target
    except subprocess.TimeoutExpired:
        pass
    finally:
        made.unlink(missing_ok=True)
    progress.say("The archive could not be made; Spark starts without it.")
    return None


def _java_build(java: Java) -> str:
    """Text that changes with every update of a Java installation in place."""
    library = java.home / "lib" / "server" / "libjvm.so"
    status = (library if library.exists() else java.executable).stat()
    return f"{java.version} {status.st_size} {status.st_mtime_ns}"


def _spark_home() -> str:
    package = find_spec("pyspark")
    assert package is not None and package.origin is not None
    return str(Path(package.origin).parent)


def _forget_older_ones(folder: Path) -> None:
    """Delete outdated archives of this installation and archives of removed installations: 200 MB each."""
    for note in folder.glob("*.txt"):
        home = note.read_text(encoding="utf-8")
        if home == _spark_home() or not Path(home).exists():
            note.with_suffix(".jsa").unlink(missing_ok=True)
            note.unlink()


def _rehearse(target: str, java_home: str, jars: Sequence[str]) -> None:
    """Run a sample of what operations do, in a session whose JVM dumps its loaded classes when it exits."""
    from pyspark import SparkContext

    with tempfile.TemporaryDirectory() as folder:
        options = (f"-XX:ArchiveClassesAtExit={target}", _SILENT)
        settings = SparkSettings([Path(jar) for jar in jars], Path(folder), Path(java_home), java_options=options)
        spark = spark_session(settings)
        path = f"{folder}/table"
        rows = spark.range(100).selectExpr("id", "id % 2 as part", "cast(id as string) as text")
        for _ in range(2):
            rows.write.format("delta").partitionBy("part").mode("append").save(path)
        rows = rows.repartition("part").sortWithinPartitions("id")
        rows.write.format("delta").mode("overwrite").option("replaceWhere", "part IN (0, 1)").save(path)
        counts = spark.read.format("delta").load(path).where("id > 5").groupBy("part").count()
        counts.mapInArrow(lambda batches: batches, counts.schema).collect()
        with suppress(HybridError):  # an archive without Kafka's classes is as good for all else
            _rehearse_kafka(spark, Path(folder))
        gateway = SparkContext._gateway
        spark.stop()
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()


def _rehearse_kafka(spark: SparkSession, folder: Path) -> None:
    """Read a topic of a broker, as ingestion does: a fourteenth of the classes of its first batch are Kafka's."""
    broker = LocalBroker(folder)
    address = broker.start(port=0)
    try:
        create_topic(address, "rehearsal", 1)
        kafka = {"kafka.bootstrap.servers": address, "topic": "rehearsal", "subscribe": "rehearsal"}
        spark.range(10).selectExpr("cast(id as string) as value").write.format("kafka").options(**kafka).save()
        messages = spark.read.format("kafka").options(**kafka).load().select("value", "partition", "offset")
        messages.mapInArrow(lambda batches: batches, messages.schema).collect()
    finally:
        broker.stop()


if __name__ == "__main__":
    _rehearse(sys.argv[1], sys.argv[2], sys.argv[3:])
