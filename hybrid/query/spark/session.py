"""A Spark session of one statement's own, and the job group by which it is stopped."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hybrid.errors import QueryError
from hybrid.lake.spark_values import VALUE_SETTINGS
from hybrid.query.deadline import deadline
from hybrid.query.error_mapping import stopped
from hybrid.query.spark.errors import spark_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# More files than by default are listed without a job for it: they are known to be there.
_SETTINGS: Mapping[str, str] = {
    **VALUE_SETTINGS,
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
}


def statement_session(spark: SparkSession) -> SparkSession:
    """A session in the same JVM with settings and temporary views of its own."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


@contextmanager
def stoppable(session: SparkSession, timeout_ms: int | None, started: float | None) -> Iterator[Callable[[], None]]:
    """Run what is in the block as jobs of one group, which end at the timeout.

    Yields the function that cancels them for good, from any thread. QueryError instead of Spark's errors. The time
    began at `started` (monotonic; None: now).
    """
    context, group, is_stopped = session.sparkContext, f"statement-{uuid.uuid4().hex}", threading.Event()

    def stop() -> None:
        is_stopped.set()
        context.cancelJobGroup(group)

    def error_of_stop() -> QueryError:
        return stopped(timeout_ms if until is not None and time.monotonic() >= until else None)

    until = None if timeout_ms is None else (started or time.monotonic()) + timeout_ms / 1000
    context.setJobGroup(group, "a statement", interruptOnCancel=True)
    try:
        with deadline(until, stop) as interrupt:
            yield interrupt
            if is_stopped.is_set():  # the last job had ended when it was to be stopped
                raise error_of_stop()
    except Exception as error:
        if is_stopped.is_set():
            raise error_of_stop() from error
        mapped = spark_error(error)
        if mapped is error:
            raise
        raise mapped from error
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]
