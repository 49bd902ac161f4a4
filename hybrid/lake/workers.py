"""Functions that Spark runs in its workers, on Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Worker = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def map_in_arrow(rows: DataFrame, worker: Worker, ddl: str) -> DataFrame:
    """`rows.mapInArrow`, for columns of any name.

    Spark passes columns to workers by name and takes a dot for field access, so columns are passed by position.
    """
    names = rows.columns

    def by_name(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return worker(batch.rename_columns(names) for batch in batches)

    return rows.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(by_name, ddl)


def run_numbered(spark: SparkSession, count: int, work: Callable[[int], Iterable[str]]) -> list[str]:
    """Run `work(0)` to `work(count - 1)` in workers, one Spark task each. Returns the texts of all tasks."""

    def worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_arrays([pa.array(list(work(number)), pa.string())], names=["text"])

    return [row[0] for row in map_in_arrow(spark.range(0, count, 1, count), worker, "text string").collect()]
