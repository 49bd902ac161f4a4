"""The functions for Python flow files: our own and Lakeflow's (`dlt`, `pyspark.pipelines`), over one declaration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, TypeVar

from hybrid.errors import SpecError
from hybrid.flow.declared.model import Flow, FlowTable
from hybrid.flow.declared.session import current, variable
from hybrid.flow.declared.sources import SparkReader

Query = TypeVar("Query", bound=Callable[[], Any])

# Accepted without effect: how another engine lays out files, and settings of its clusters.
_QUIET_TABLE = {"partition_cols", "cluster_by", "cluster_by_auto", "spark_conf", "temporary", "refresh_policy"}
_REFUSED_TABLE = {
    "path": "a table lies in the home's warehouse",
    "row_filter": "rows are not filtered by who asks",
    "expect_all": "expectations are not built yet: filter in the flow",
    "expect_all_or_drop": "expectations are not built yet: filter in the flow",
    "expect_all_or_fail": "expectations are not built yet: filter in the flow",
    "private": "every table can be queried",
}
# Names in Lakeflow's module that are not built; using one raises an error with its name.
REFUSED = (
    "apply_changes", "apply_changes_from_snapshot", "create_auto_cdc_flow", "create_auto_cdc_from_snapshot_flow",
    "create_sink", "create_target_table", "create_streaming_live_table", "create_view", "materialized_view", "view",
    "temporary_view", "update_flow", "foreach_batch_sink", "on_event_hook",
    "expect", "expect_all", "expect_all_or_drop", "expect_all_or_fail", "expect_or_drop", "expect_or_fail",
)  # fmt: skip


def conf(name: str, default: str | None = None) -> str:
    """The value of `--var name=value`."""
    return variable(name, default, "conf")


def create_streaming_table(
    name: str,
    comment: str | None = None,
    table_properties: Mapping[str, object] | None = None,
    schema: Any = None,
    **options: object,
) -> None:
    """Declares a table that flows append to. It is created with the first rows, unless `schema` is given."""
    _declare_table("create_streaming_table", name, comment, table_properties, schema, options)


def append_flow(
    target: str | Callable[[], Any] | None = None,
    name: str | None = None,
    once: bool = False,
    comment: str | None = None,
    **options: object,
) -> Callable[[Query], Query]:
    """Declares the function below as a flow that appends to `target`; its name defaults to the function's."""
    place = _place()
    _check_options("append_flow", options, {"spark_conf"}, {})
    if not isinstance(target, str) or not target:
        raise _error(f"{place}: @append_flow: target is missing: the table that the flow appends to.")

    def declare(query: Query) -> Query:
        flow_name = name or query.__name__
        current("append_flow").declaration.add_flow(Flow(target, flow_name, place, query, bool(once), comment))
        return query

    return declare


def table(
    query: Any = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    table_properties: Mapping[str, object] | None = None,
    schema: Any = None,
    **options: object,
) -> Any:
    """Declares a table and the flow of the same name that fills it: the function below, with or without arguments."""

    def declare(query: Query) -> Query:
        own = name or query.__name__
        place = _declare_table("table", own, comment, table_properties, schema, options)
        current("table").declaration.add_flow(Flow(own, own, place, query, False, comment))
        return query

    return declare(query) if callable(query) else declare


def _declare_table(
    what: str, name: str, comment: str | None, properties: Mapping[str, object] | None, schema: Any, options: Any
) -> str:
    place = _place()
    _check_options(what, options, _QUIET_TABLE, _REFUSED_TABLE)
    texts = {str(key): str(value) for key, value in (properties or {}).items()}
    current(what).declaration.add_table(FlowTable(name, place, comment, texts, schema))
    return place


def _check_options(what: str, options: Mapping[str, object], quiet: set[str], refused: Mapping[str, str]) -> None:
    for name, value in options.items():
        if name in refused and value is not None:
            raise _error(f"{_place()}: {what}({name}=...) cannot be honoured: {refused[name]}.")
        if name not in quiet and name not in refused:
            raise _error(f"{_place()}: {what} has no argument '{name}'.")


def _error(message: str) -> SpecError:
    return SpecError(f"{current('a flow file').declaration.source}: {message}")


def _place() -> str:
    """`line 12`: the line of the flow file in the current call stack."""
    source = current("a flow file").declaration.source
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == source:
            return f"line {frame.f_lineno}"
        frame = frame.f_back
    return "a module"


class SparkConf:
    """`spark.conf` in a flow file: the --var values, and Spark's own settings."""

    def get(self, key: str, default: Any = ...) -> Any:
        """A --var, a setting of Spark, or the default. SpecError when there is none of them."""
        session = current("spark.conf")
        if key in session.variables or not key.startswith("spark."):
            value = session.variable(key)
            return (
                variable(key, None, "spark.conf.get")
                if value is None and default is ...
                else default
                if value is None
                else value
            )
        settings = session.start_spark().conf
        return settings.get(key) if default is ... else settings.get(key, default)

    def __getattr__(self, name: str) -> Any:
        return getattr(current("spark.conf").start_spark().conf, name)


class FlowSpark:
    """The Spark session of a flow file. Files are read through its flow; all else is the real session's."""

    conf = SparkConf()

    @property
    def read(self) -> SparkReader:
        """Reads batches."""
        return SparkReader(streaming=False)

    @property
    def readStream(self) -> SparkReader:
        """Reads streams of files."""
        return SparkReader(streaming=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(current("spark").start_spark(), name)

    def __repr__(self) -> str:
        return "<the Spark session of a flow file>"


spark = FlowSpark()


def _read(name: str) -> Any:
    """`dlt.read("x")`: a table of Spark's catalog."""
    return current("dlt.read").start_spark().read.table(name)


def _read_stream(name: str) -> Any:
    return SparkReader(streaming=True).table(name)


def lakeflow_module(name: str) -> ModuleType:
    """A module with the Lakeflow names that are built; any other name raises an error that says so."""
    module = ModuleType(name, "Lakeflow's declarations, run by hybrid.")
    module.__dict__.update(
        create_streaming_table=create_streaming_table,
        append_flow=append_flow,
        table=table,
        read=_read,
        read_stream=_read_stream,
        __getattr__=_not_built(name),
    )
    return module


def _not_built(module: str) -> Callable[[str], Any]:
    def missing(name: str) -> Any:
        if name in REFUSED:
            raise _error(
                f"{_place()}: {module}.{name} is not built. There are create_streaming_table, append_flow and table."
            )
        raise AttributeError(f"module '{module}' has no attribute '{name}'")

    return missing


@contextmanager
def lakeflow_modules() -> Iterator[None]:
    """Makes `import dlt` and `from pyspark import pipelines` return our modules within the block."""
    import pyspark

    names = ("dlt", "pyspark.pipelines")
    before = {name: sys.modules.get(name) for name in names}
    package = vars(pyspark)
    attribute = package.get("pipelines")
    for name in names:
        sys.modules[name] = lakeflow_module(name)
    package["pipelines"] = sys.modules["pyspark.pipelines"]
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
        if attribute is None:
            del package["pipelines"]
        else:
            package["pipelines"] = attribute
