"""A view as Python code for Spark: the two Delta tables at their versions, and one SELECT over them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hybrid.errors import QueryError
from hybrid.lake.history import committed_ms
from hybrid.lake.log import HalfSnapshot
from hybrid.query.spark.dialect import FOLDING, identifier
from hybrid.query.time_travel import refuse_missing
from hybrid.query.views.python import commented, long_text
from hybrid.query.views.reads import ViewReads, stored_columns, version_with
from hybrid.query.views.statement import ViewDialect, ViewSource, statement
from hybrid.schema.schema import FieldSpec
from hybrid.table.columns import OFFSET, rows_sql
from hybrid.table.coverage_sql import frontier_sql


def spark_code(reads: ViewReads) -> str:
    """The code of a view; its variable `view` is a DataFrame.

    QueryError when no version of REALTIME holds the revision's tail, or when Delta no longer reads a version. Delta
    reads whole versions, including files that the boundary covers, and none older than the revert window.
    """
    sources, loads = [], []
    for part in reads.parts.values():
        half = _half(reads, part.name)
        refuse_missing(reads.spec.name, half.files)
        _refuse_old(reads, half)
        name, conditions = part.name.lower(), list[str]()
        if part.name != "OFFLINE":
            conditions.append(rows_sql(reads.spec.name))
        if part.name == "LATER":
            conditions.append(f"{OFFSET} >= {frontier_sql(reads.starts)}")
        sources.append(ViewSource(part, f"{{{name}}}", stored_columns(half), conditions))
        loads.append((name, half))
    # Names in braces refer to DataFrames.
    words = ViewDialect(
        identifier, _text, lambda field: field.spark_type, partial(_shown, reads), "array({})".format, FOLDING
    )
    sql = statement(reads, words, sources)
    lines = [f"{name} = {_load(half)}" for name, half in loads]
    arguments = "".join(f"\n    {name}={name}," for name, _ in loads)
    return f"""{commented([*reads.header, "Needs: pip install pyspark delta-spark (of versions that fit together)"])}
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
{"".join(f"{line}{chr(10)}" for line in lines)}view = spark.sql(
    {long_text(sql)},{arguments}
)

if __name__ == "__main__":
    view.show()
"""


def _half(reads: ViewReads, part: str) -> HalfSnapshot:
    if part == "LATER":
        return version_with(reads, reads.parts[part])
    halves = reads.pinned.halves
    snapshot = halves.offline if part == "OFFLINE" else halves.realtime
    assert snapshot is not None
    return snapshot


def _refuse_old(reads: ViewReads, half: HalfSnapshot) -> None:
    at_ms = committed_ms(half.path, half.version)
    if at_ms is None or at_ms < reads.now_ms - reads.spec.revert_window_ms:
        raise QueryError(
            f"Version {half.version} of {half.path.name} of '{reads.spec.name}' is older than its revert window, and "
            "Delta does not travel to it any more.",
            hint="Its files are there: hybrid table view TABLE --for duckdb, or --for polars",
        )


def _load(half: HalfSnapshot) -> str:
    return f'spark.read.format("delta").option("versionAsOf", {half.version}).load({str(Path(half.path).absolute())!r})'


def _text(text: str) -> str:
    """A SQL literal; braces are doubled, because single ones name DataFrames."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("{", "{{").replace("}", "}}") + "'"


def _shown(reads: ViewReads, field: FieldSpec) -> str:
    name = identifier(field.name)
    return f"CAST({name} AS {field.spark_type})" if field.name in reads.widened else name
