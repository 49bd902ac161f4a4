"""The Spark session of this process: local by default, started on first use, then shared.

A master that is not local finds this process by Spark's own defaults, or the user's settings. Its workers run their own
Python, and get our package from here (docs/adr/0065).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.errors import HybridError, MachineError
from hybrid.jvm.jars import cache_root
from hybrid.jvm.log4j import write_log4j
from hybrid.jvm.spark_errors import short_words
from hybrid.lake import yarn
from hybrid.lake.spark_workers import package_archive, prepare_workers

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf
    from pyspark.sql import SparkSession


_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# Another Python may lack what ours imports, and that of a cluster's workers gets our package after it has started.
_OWN_PYTHON = {"spark.python.daemon.module": "hybrid.lake.worker_daemon"}
# The first batch is divided by the cores that are there: with spark.cores.max, those are awaited for half a minute.
_CLUSTER = {"spark.scheduler.minRegisteredResourcesRatio": "0.8"}
# HotSpot's second compiler takes a quarter of the processor time of a command, for code that runs a few times more. It
# compiles what is called ten times as often as by default: under load, a few seconds later.
_LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# Spark copies keys of an S3 store from the environment into Hadoop's configuration, which YARN writes to files of the
# cluster. Workers get them another way, and Hadoop's own client in this process finds them in the environment.
_WITHOUT_S3_KEYS = {
    f"spark.hadoop.fs.{name}": ""
    for name in (
        *("s3.awsAccessKeyId", "s3.awsSecretAccessKey", "s3n.awsAccessKeyId", "s3n.awsSecretAccessKey"),
        *("s3a.access.key", "s3a.secret.key", "s3a.session.token"),
    )
}


@dataclass(frozen=True)
class SparkSettings:
    """Settings of a session: locked jars, folder for its log, master, heap, and the user's [spark] settings.

    `own_session`: the JVM leads a session of the operating system, apart from the process that starts it.
    `worker_python` is the Python of workers; None: this process's own, or `python3` on a cluster. `needs_store`:
    workers write to an object store.
    """

    jars: Sequence[Path]
    log_dir: Path
    java_home: Path | None = None
    master: str = "local[2]"
    driver_memory: str = "2g"
    extra: Mapping[str, str] = field(default_factory=dict)
    java_options: Sequence[str] = ()
    own_session: bool = False
    worker_python: str | None = None
    needs_store: bool = False

    @property
    def is_local(self) -> bool:
        """Whether workers run on this machine, as parts of the JVM that this process starts."""
        return self.master.startswith("local")


def spark_session(settings: SparkSettings) -> SparkSession:
    """The session of this process; the first call starts a JVM (5 to 10 s), later ones return the same session."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    conf = _conf(settings)
    _silence_contexts()
    with _starting(settings):
        is_new = not is_running()
        if is_new:
            _start_context(conf, settings)
            remember_names(SparkContext._jvm)
            if settings.is_local:
                leave_out_cluster_defaults(SparkContext._active_spark_context)
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        if is_new and not settings.is_local:
            _prepare(session, settings)  # executors were starting meanwhile
        return session


def start_jvm(settings: SparkSettings) -> None:
    """Start the JVM of a later `spark_session`, which then takes half as long. An idle JVM takes no worker's core."""
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        with _starting(settings):
            SparkContext._ensure_initialized(gateway=_gateway(_conf(settings), settings.own_session))


def _start_context(conf: SparkConf, settings: SparkSettings) -> None:
    """Start the context, in a JVM that runs already or in a new one."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway or _gateway(conf, settings.own_session)
    if settings.master != yarn.MASTER:
        SparkContext(conf=conf, gateway=gateway)
        return
    SparkContext._ensure_initialized(gateway=gateway)  # it is there for the next attempt, too
    with yarn.limited_start(gateway.jvm, conf):
        SparkContext(conf=conf, gateway=gateway)


def _conf(settings: SparkSettings) -> SparkConf:
    """The configuration of the session; the environment is set for the JVM that it starts."""
    from pyspark import SparkConf

    if settings.master == yarn.MASTER:
        yarn.require_configuration(os.environ)
    # Workers of a local master need the same packages as this process.
    os.environ["PYSPARK_PYTHON"] = settings.worker_python or (sys.executable if settings.is_local else "python3")
    if settings.is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if settings.java_home is not None:
        os.environ["JAVA_HOME"] = str(settings.java_home)  # Spark's launcher searches for Java elsewhere
    return SparkConf().setAppName("hybrid").setMaster(settings.master).setAll(list(_configuration(settings).items()))


@contextmanager
def _starting(settings: SparkSettings) -> Iterator[None]:
    """What a JVM started here says goes to its log. MachineError when something fails."""
    stderr_log = settings.log_dir / "spark-stderr.log"
    try:
        with _output_to(stderr_log):
            yield
    except HybridError:
        raise
    except Exception as error:  # py4j and pyspark have no common base class; any error means that there is no session
        raise MachineError(
            f"Spark did not start: {short_words(error)}", hint=f"What its JVM said is in {stderr_log}"
        ) from error


def _prepare(session: SparkSession, settings: SparkSettings) -> None:
    """Let the workers of a cluster have what our work needs. Without that there is no session."""
    try:
        archive = package_archive(cache_root() / "packages")
        prepare_workers(session, archive, needs_store=settings.needs_store)
    except BaseException:
        session.stop()
        raise


def _silence_contexts() -> None:
    """Silence PySpark's loggers, which print each plan error as many kilobytes of JSON beside the exception."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def _gateway(conf: SparkConf, own_session: bool) -> JavaGateway:
    from pyspark.java_gateway import launch_gateway

    return launch_gateway(conf, {"start_new_session": own_session})  # type: ignore[no-untyped-call]


def remember_names(jvm: Any) -> None:
    """Look up each class and package of the JVM once, instead of at each use.

    A name such as `functions` or `org` is tried in every imported package, and each attempt searches all jars: a
    twentieth of the JVM's processor time on small tables.
    """
    from py4j.java_gateway import JavaPackage

    class RememberingPackage(JavaPackage):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            return remembered(self, name, super().__getattr__(name))

    class RememberingView(type(jvm)):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            return remembered(self, name, super().__getattr__(name))

    def remembered(owner: object, name: str, value: Any) -> Any:
        if type(value) is JavaPackage:
            value.__class__ = RememberingPackage
        vars(owner)[name] = value
        return value

    jvm.__class__ = RememberingView


def leave_out_cluster_defaults(context: Any) -> None:
    """Drop the defaults of YARN and MapReduce, two thirds of the keys, from the Hadoop configuration of a local master.

    Spark serializes each key for every job, reads it in every task and copies it for every statement: an eighth of the
    JVM's processor time on small tables. The user's own settings stay. The first job of Hadoop's own, as Spark has it
    for some file formats, brings the defaults back.
    """
    hadoop = context._jvm.java.lang.Class.forName("org.apache.hadoop.conf.Configuration")
    names = hadoop.getDeclaredField("defaultResources")
    names.setAccessible(True)
    defaults = names.get(None)
    for name in ("yarn-default.xml", "mapred-default.xml"):
        if name in defaults:
            defaults.remove(name)
    context._jsc.hadoopConfiguration().reloadConfiguration()


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """A JVM started in this context writes its and its workers' output to a log, not into our results and messages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    streams = {1: sys.stdout, 2: sys.stderr}
    saved_descriptors = {number: os.dup(number) for number in streams}
    with path.open("ab") as log:
        for number, stream in streams.items():
            stream.flush()
            os.dup2(log.fileno(), number)
    try:
        yield
    finally:
        for number, copy in saved_descriptors.items():
            os.dup2(copy, number)
            os.close(copy)


def is_running() -> bool:
    """Whether this process has a session already."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None  # the active session is thread-local


def is_stopped() -> bool:
    """Whether this process's session has ended by itself, as when a cluster removes the application."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return context is not None and bool(context._jsc.sc().isStopped())


def jvm_pid(spark: SparkSession) -> int:
    """The process number of the session's JVM."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def _configuration(settings: SparkSettings) -> dict[str, str]:
    jars = [str(jar) for jar in settings.jars]
    log4j = f"-Dlog4j2.configurationFile={_log4j_file(settings.log_dir)}"
    return {
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.driver.memory": settings.driver_memory,
        **(_LOOPBACK if settings.is_local else _CLUSTER),
        **(_OWN_PYTHON if settings.is_local and settings.worker_python is None else {}),
        **(_WITHOUT_S3_KEYS if settings.needs_store and not settings.is_local else {}),
        "spark.driver.extraJavaOptions": " ".join([log4j, *_LATE_COMPILER, *settings.java_options]),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Without a UI nobody reads the plans and tasks of earlier statements, of which a thousand would stay in memory.
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        # By default PySpark looks up which line of our code made each column expression. That takes three times as long
        # as making it, and serves a part of Spark's messages that nobody is shown.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # Operations repeat the same plans, each of several dozen stages; by default Spark caches only 100 compiled
        # stages.
        "spark.sql.codegen.cache.maxEntries": "1000",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The default of 50 costs seconds for each commit of a small table.
        "spark.databricks.delta.snapshotPartitions": "1",
        # An operation without rows (rejected only, offsets only) must still make its commit.
        "spark.databricks.delta.skipRecordingEmptyCommits": "false",
        "spark.hadoop.fs.permissions.umask-mode": "077",  # Hadoop sets file modes by its own umask
        **settings.extra,
    }


def _log4j_file(log_dir: Path) -> Path:
    log_dir.mkdir(parents=True, exist_ok=True)
    return write_log4j(log_dir / "spark-log4j2.properties", log_dir / "spark.log")
