"""Functions that Spark runs in its workers, on Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Worker = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def map_in_arrow(rows: DataFrame, worker: Worker, ddl: str) -> DataFrame:
    """`rows.mapInArrow`, for columns of any name.

    Spark passes columns to workers by name and takes a dot for field access, so columns are passed by position.
    """
    names = rows.columns

    def by_name(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return worker(batch.rename_columns(names) for batch in batches)

    return rows.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(by_name, ddl)
