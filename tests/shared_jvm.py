"""Processes that are to die or to freeze at failpoints: forked with everything imported, in the JVM of the tests.

Imports and the start of a JVM would take most of such a process's life, and no failpoint is there. It dies between two
calls of its JVM, which then has nothing to do; whose it was changes nothing. With a JVM of its own it leaves an orphan
besides, which whoever comes next ends: for that a few processes are started as the product is (`dying_at`). One that
is frozen (`start_serving`) goes on later; neither its own JVM nor this one would be frozen with it.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hybrid.lake import spark as lake_spark
from hybrid.lake.commit_context import CommitContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A plan of a test runs once, over a few rows: compiling it takes longer than interpreting it.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
ROOT = Path(__file__).resolve().parents[1]
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"

# The process that forks the others has imported what each of them needs, and has neither a thread of Python nor a
# connection to a JVM: those do not outlive a fork.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "pyspark.sql",
        "tests.cases.worker",
        "tests.move.upkeep_worker",
        "tests.operations.erasure_worker",
        "tests.operations.plan_homes",
        "tests.replace.backfill.killed_worker",
        "tests.replace.crashing_worker",
        "tests.replace.purge.killed_worker",
        "tests.soak.frozen_worker",
        "tests.soak.worker",
    ]
)


def die_at(
    failpoint: str, workbench: CommitContext | None, worker: str, *arguments: str, timeout_s: float = 240
) -> None:
    """Runs a worker, a module with a `main()` for command lines, until it dies at the failpoint, as it must.

    None for one that needs no JVM.
    """
    code, words = run_forked(failpoint, workbench, worker, *arguments, timeout_s=timeout_s)
    assert code == -signal.SIGKILL, f"{failpoint}: ended with {code}\n{words}"


def run_forked(
    failpoint: str, workbench: CommitContext | None, worker: str, *arguments: str, timeout_s: float = 240
) -> tuple[int | None, str]:
    """How such a worker ended, and what it has printed."""
    with TemporaryDirectory() as folder:
        output = Path(folder, "output")
        process = start_forked(failpoint, workbench, worker, arguments, output)
        process.join(timeout_s)
        code = process.exitcode
        process.kill()  # unless it has died
        process.join()
        return code, output.read_text(errors="replace")


def start_forked(
    failpoint: str, workbench: CommitContext | None, worker: str, arguments: tuple[str, ...], output: Path
) -> BaseProcess:
    """Starts such a worker, for whoever does something else meanwhile. What it prints goes to `output`.

    Without a failpoint it ends by itself, or is ended.
    """
    output.touch()
    environment = {**dying_at(failpoint), **({} if workbench is None else _lent_gateway(workbench))}
    process = _FORKS.Process(target=_work, args=(worker, arguments, environment, output))
    process.start()
    return process


def start_serving(
    worker: str, arguments: tuple[str, ...], workbench: CommitContext, output: Path
) -> tuple[BaseProcess, Connection]:
    """Starts a worker, a module with a `serve()` for a connection and arguments, and the other end of the connection.

    It lives until the connection is closed, or until it is killed. What it prints goes to `output`.
    """
    output.touch()
    requests, served = _FORKS.Pipe()
    environment = {**dying_at(""), **_lent_gateway(workbench)}
    process = _FORKS.Process(target=_serve, args=(worker, arguments, environment, output, served))
    process.start()
    served.close()
    return process, requests


def dying_at(failpoint: str) -> dict[str, str]:
    """The environment of a process that dies there, or nowhere when it is empty."""
    # Workers need the packages of this process, whatever `python3` is.
    return {
        **os.environ, "HYBRID_FAILPOINT": failpoint, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable
    }  # fmt: skip


def _lent_gateway(workbench: CommitContext) -> dict[str, str]:
    gateway = workbench.spark.sparkContext._gateway
    assert gateway is not None
    parameters = gateway.gateway_parameters
    return {_PORT: str(parameters.port), _SECRET: str(parameters.auth_token)}


def _work(worker: str, arguments: tuple[str, ...], environment: Mapping[str, str], output: Path) -> None:
    """In the forked process: what a new one would do, once it has started."""
    _settle_in(environment, output)
    sys.argv = [worker, *arguments]
    importlib.import_module(worker).main()


def _serve(
    worker: str, arguments: tuple[str, ...], environment: Mapping[str, str], output: Path, served: Connection
) -> None:
    _settle_in(environment, output)
    borrow_session()
    importlib.import_module(worker).serve(served, *arguments)


def _settle_in(environment: Mapping[str, str], output: Path) -> None:
    written = os.open(output, os.O_WRONLY | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(written, descriptor)
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)


def session_of_dying(settings: lake_spark.SparkSettings) -> Callable[[], SparkSession]:
    """What starts the session in such a process: in the JVM that was lent to it, or in one of its own.

    Call it before anything is done.
    """
    if not has_lent_jvm():
        return lambda: lake_spark.spark_session(settings)
    _name_no_jvm()
    return _lent_session


def has_lent_jvm() -> bool:
    """Whether this process is one of those that are forked here."""
    return _PORT in os.environ


def borrow_session() -> SparkSession:
    """Makes a session in the JVM that was lent to this process its session. Call it before anything is done."""
    _name_no_jvm()
    return _lent_session()


def _name_no_jvm() -> None:
    """A lock names the JVM of its holder, to be ended when the holder died: one that was lent must not be named."""

    def jvm_pid(spark: SparkSession) -> int:
        return os.getpid()

    lake_spark.jvm_pid = jvm_pid


def _lent_session() -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    jvm = gateway.jvm
    context = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    return SparkSession(SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=context.sc().conf())))
