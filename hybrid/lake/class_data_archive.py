"""A class archive for Spark's JVM (Java's class data sharing): with it a session starts in two thirds of the time.

It holds the classes that a rehearsal has loaded, for one Java and one class path. A JVM for which it does not fit, or
that finds it damaged, starts without it, as slowly as before.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from hybrid.jvm.jars import cache_root, jar_folder
from hybrid.jvm.java import Java
from hybrid.lake.spark import SparkSettings, spark_session
from hybrid.progress import Progress

_REHEARSAL_S = 600
_SILENT = "-Xlog:cds*=off"


def archive_of(java: Java) -> Path:
    """Where the archive for this Java and this installation of Spark lies, or would."""
    told = "\n".join([str(java.home), _java_build(java), _spark_home(), version("pyspark"), str(jar_folder())])
    return cache_root() / "archives" / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"


def with_archive(java: Java) -> tuple[str, ...]:
    """What a JVM is told to use it; nothing where there is none."""
    found = archive_of(java)
    return (f"-XX:SharedArchiveFile={found}", _SILENT) if found.exists() else ()


def ensure_archive(java: Java, jars: Sequence[Path], progress: Progress) -> Path | None:
    """The archive, made if it is not there yet (half a minute); None when that fails, which harms nothing."""
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
    """What changes with every update of a Java at its place."""
    library = java.home / "lib" / "server" / "libjvm.so"
    found = (library if library.exists() else java.executable).stat()
    return f"{java.version} {found.st_size} {found.st_mtime_ns}"


def _spark_home() -> str:
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    return str(Path(found.origin).parent)


def _forget_older_ones(folder: Path) -> None:
    """Those of this installation, which no longer fit, and of installations that were removed: 200 MB each."""
    for note in folder.glob("*.txt"):
        home = note.read_text(encoding="utf-8")
        if home == _spark_home() or not Path(home).exists():
            note.with_suffix(".jsa").unlink(missing_ok=True)
            note.unlink()


def _rehearse(target: str, java_home: str, jars: Sequence[str]) -> None:
    """Does a little of all that acts do, in a session whose JVM writes down its classes when it ends."""
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
        found = spark.read.format("delta").load(path).where("id > 5").groupBy("part").count()
        found.mapInArrow(lambda batches: batches, found.schema).collect()
        gateway = SparkContext._gateway
        spark.stop()
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()


if __name__ == "__main__":
    _rehearse(sys.argv[1], sys.argv[2], sys.argv[3:])
