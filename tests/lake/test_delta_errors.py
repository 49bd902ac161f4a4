"""What Delta's errors are taken for, provoked with the Delta that is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from hybrid.lake.commit_context import CommitContext
from hybrid.lake.delta_errors import is_conflict, is_missing_file, is_schema_mismatch

pytestmark = pytest.mark.spark


def error_of(work: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # whatever class pyspark chooses
        work()
    return caught.value


@pytest.fixture
def half(tmp_path: Path) -> Path:
    path = tmp_path / "OFFLINE"
    write_deltalake(str(path), pa.table({"id": [0, 1, 2]}))
    return path


@pytest.mark.parametrize("change", ["rows", "columns", "properties"])
def test_a_transaction_that_another_overtook(half: Path, workbench: CommitContext, change: str) -> None:
    """It read the table as it was before the change of the other."""
    spark, jvm = workbench.spark, cast("Any", workbench.spark._jvm)
    delta, nothing = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
    late = delta.DeltaLog.forTable(spark._jsparkSession, str(half)).startTransaction()
    gone = [file.remove() for file in jvm.scala.jdk.javaapi.CollectionConverters.asJava(late.filterFiles())]
    if change == "rows":
        spark.range(5).write.format("delta").mode("overwrite").save(str(half))
    elif change == "columns":
        spark.sql(f"ALTER TABLE delta.`{half}` ADD COLUMN more INT")
    else:
        spark.sql(f"ALTER TABLE delta.`{half}` SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    by = jvm.scala.Option.apply(jvm.PythonUtils.toSeq([]))
    mode = jvm.org.apache.spark.sql.SaveMode.Append
    operation = getattr(delta, "DeltaOperations$Write")(mode, by, *(nothing,) * 7)
    error = error_of(lambda: late.commit(jvm.PythonUtils.toSeq(gone), operation))
    assert is_conflict(error), error
    assert not is_schema_mismatch(error) and not is_missing_file(error)


def test_rows_of_other_columns(half: Path, workbench: CommitContext) -> None:
    rows = workbench.spark.range(2).selectExpr("array(id) AS id")
    error = error_of(lambda: rows.write.format("delta").mode("append").save(str(half)))
    assert is_schema_mismatch(error), error
    assert not is_conflict(error)


def test_a_file_that_was_purged_while_it_was_read(half: Path, workbench: CommitContext) -> None:
    rows = workbench.spark.read.format("delta").load(str(half))
    for file in half.glob("*.parquet"):
        file.unlink()
    error = error_of(rows.collect)
    assert is_missing_file(error), error
    assert not is_conflict(error)
