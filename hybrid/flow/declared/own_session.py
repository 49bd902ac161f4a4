"""`SparkSession` in a flow file: every way to get a session returns the flow's, which reads its files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hybrid.errors import SpecError
from hybrid.flow.declared.session import current, in_flow_file

# These packages get the session of the process itself.
_OF_THE_ENGINE = ("pyspark", "py4j", "hybrid", "delta")
_ASKING = ("builder", "active", "getActiveSession")


class FlowBuilder:
    """`SparkSession.builder` in a flow file: the session exists already, and its settings have no effect."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def getOrCreate(self) -> Any:
        """The session of the flow file."""
        return self._session

    create = getOrCreate

    def config(self, key: str | None = None, value: object = None, **_: object) -> FlowBuilder:
        """Ignores cluster settings, which belong to the home. SpecError for SQL settings, which could change rows."""
        if key is not None and key.startswith("spark.sql.") and not key.startswith(_HARMLESS):
            source = current("SparkSession.builder").declaration.source
            raise SpecError(
                f"{source}: SparkSession.builder.config('{key}', '{value}'): the session of a flow runs already.",
                hint=f"Write spark.conf.set('{key}', ...) inside of the flow's function, or remove it.",
            )
        return self

    def __getattr__(self, name: str) -> Callable[..., FlowBuilder]:
        if name not in ("appName", "master", "enableHiveSupport"):
            raise AttributeError(f"SparkSession.builder has no '{name}' in flow files")
        return lambda *args, **options: self


_HARMLESS = (
    "spark.sql.shuffle.",
    "spark.sql.adaptive.",
    "spark.sql.extensions",
    "spark.sql.catalog.",
    "spark.sql.warehouse.",
)


def own_session(session: Any) -> None:
    """Makes all ways to get a session return `session` to callers in a flow file, from now on in this process.

    Callers outside of a flow file, and Spark itself, get the original session.
    """
    from pyspark.sql import SparkSession

    if not isinstance(vars(SparkSession)["builder"], _SessionRequest):
        for name in _ASKING:
            setattr(SparkSession, name, _SessionRequest(name, vars(SparkSession)[name], session))


class _SessionRequest:
    """An attribute of SparkSession with another value for flow files."""

    def __init__(self, name: str, original: Any, session: Any) -> None:
        self._name, self._original, self._session = name, original, session

    def __get__(self, instance: object, owner: type) -> Any:
        asker = str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0]
        if asker in _OF_THE_ENGINE or not in_flow_file():
            return self._original.__get__(instance, owner)
        return FlowBuilder(self._session) if self._name == "builder" else lambda: self._session
