"""The JVM of the tests, lent to processes that are to die: each saves the start of one of its own.

A process dies at a failpoint between two calls of its JVM, which then has nothing to do; whose it was changes nothing.
With a JVM of its own it leaves an orphan besides, which whoever comes next ends: `own_jvm`, for a few of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake import spark as lake_spark
from hybrid.lake.commit_context import CommitContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


def dying_at(failpoint: str, workbench: CommitContext, *, own_jvm: bool = False) -> Mapping[str, str]:
    """The environment of a process that dies there."""
    environment = {**os.environ, "HYBRID_FAILPOINT": failpoint, "PYTHONPATH": str(ROOT)}
    if failpoint and not own_jvm:
        gateway = workbench.spark.sparkContext._gateway
        assert gateway is not None
        environment[_PORT] = str(gateway.gateway_parameters.port)
        environment[_SECRET] = str(gateway.gateway_parameters.auth_token)
    return environment


def session_of_dying(settings: lake_spark.SparkSettings) -> Callable[[], SparkSession]:
    """What starts the session in such a process: in the JVM that was lent to it, or in one of its own.

    Call it before anything is done. A lock names the JVM of its holder, to be ended when the holder died: with one that
    was lent it must not be named.
    """
    if _PORT not in os.environ:
        return lambda: lake_spark.spark_session(settings)

    def jvm_pid(spark: SparkSession) -> int:
        return os.getpid()

    lake_spark.jvm_pid = jvm_pid
    return _lent_session


def _lent_session() -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    jvm = gateway.jvm
    context = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    return SparkSession(SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=context.sc().conf())))
