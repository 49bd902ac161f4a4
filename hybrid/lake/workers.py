"""Functions that Spark runs in its workers, on batches of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Worker = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def map_in_arrow(rows: DataFrame, worker: Worker, ddl: str) -> DataFrame:
    """`rows.mapInArrow`, for columns of any name.

    Spark hands columns to workers by their name, and takes a dot in it for a field's: so they go by place.
    """
    names = rows.columns

    def by_name(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return worker(batch.rename_columns(names) for batch in batches)

    return rows.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(by_name, ddl)
