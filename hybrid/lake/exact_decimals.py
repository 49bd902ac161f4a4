"""Frames whose decimal arithmetic keeps every digit.

By default Spark cuts the scale of a decimal product, sum or difference to make room for digits before the point. With
`spark.sql.decimalOperations.allowPrecisionLoss` off it keeps the scale and raises an error for values that do not fit.
A separate session holds the setting, so a user's flows compute as they always did. A session on a Spark Connect server,
where no flow runs, holds it itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hybrid.lake.spark_connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SETTING = "spark.sql.decimalOperations.allowPrecisionLoss"
_EXACT: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()


def with_exact_decimals(frame: DataFrame, build: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Apply `build` to the frame with exact decimal arithmetic. The result belongs to the frame's own session.

    Only the expressions that `build` adds are exact: Spark fixes how a sum is computed when it analyses it.
    """
    session = frame.sparkSession
    if is_remote(session):
        return build(frame)
    return _in_session(build(_in_session(frame, _exact_session(session))), session)


def _exact_session(session: SparkSession) -> SparkSession:
    """The session with the setting beside another one, made once: each new session reads its extensions."""
    if session not in _EXACT:
        exact = session.newSession()
        exact.conf.set(_SETTING, "false")
        _EXACT[session] = exact
    return _EXACT[session]


def _in_session(frame: DataFrame, session: SparkSession) -> DataFrame:
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    java = session._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]
    return ClassicFrame(java.ofRows(session._jsparkSession, frame._jdf.queryExecution().analyzed()), session)
