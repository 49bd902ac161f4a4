"""Functions that Spark runs in its workers, on Arrow batches; and errors of workers that users can act on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hybrid.errors import DataError, HybridError, MachineError, RegistryError, StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Worker = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
# Errors that a worker returns as values, because Spark would turn them into stack traces.
RETURNED = (RegistryError, StoreError, MachineError, DataError)
_MARK = "hybrid-error: "
_FAULT = re.compile(rf"{_MARK}(\[.*\])\s*$", re.MULTILINE)
_RETURNED: dict[str, type[HybridError]] = {kind.__name__: kind for kind in RETURNED}


def error_to_json(error: HybridError) -> str:
    """One of the errors `RETURNED`, as a worker's result."""
    return json.dumps([type(error).__name__, str(error), error.hint, getattr(error, "fault", None)])


def error_from_json(text: str) -> HybridError:
    """The error that a worker returned."""
    kind, sentence, hint, fault = json.loads(text)
    return StoreError(sentence, hint=hint, fault=fault) if fault is not None else _RETURNED[kind](sentence, hint=hint)


def fault_in_text(error: HybridError) -> RuntimeError:
    """One of the errors `RETURNED`, for a worker that makes the rows of a frame: `raised_by_worker` finds it again.

    What a worker raises arrives as a text with its stack.
    """
    return RuntimeError(f"{_MARK}{error_to_json(error)}")


def worker_fault(error: BaseException) -> HybridError | None:
    """The error of `fault_in_text` that made a statement of Spark's fail, or None."""
    found = None if isinstance(error, HybridError) else _FAULT.search(str(error))
    return error_from_json(found[1]) if found is not None else None


@contextmanager
def raised_by_worker() -> Iterator[None]:
    """Raise what a worker raised by `fault_in_text`, in place of Spark's error. Other errors go on."""
    try:
        yield
    except Exception as error:  # py4j and pyspark have no common base class
        fault = worker_fault(error)
        if fault is None:
            raise
        raise fault from error


def map_in_arrow(rows: DataFrame, worker: Worker, ddl: str) -> DataFrame:
    """`rows.mapInArrow`, for columns of any name.

    Spark passes columns to workers by name and takes a dot for field access, so columns are passed by position.
    """
    names = rows.columns

    def by_name(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return worker(batch.rename_columns(names) for batch in batches)

    return rows.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(by_name, ddl)


def parallelism(spark: SparkSession | None) -> int:
    """How many tasks of `run_numbered` run at once."""
    if spark is None:
        return os.cpu_count() or 1
    from hybrid.lake.spark_connect import is_remote, remote_parallelism

    return remote_parallelism(spark) if is_remote(spark) else spark.sparkContext.defaultParallelism


def listed_rows(spark: SparkSession, rows: Sequence[tuple[object, ...]], ddl: str, tasks: int) -> DataFrame:
    """Rows as a frame of so many tasks, in their order, for `mapInArrow` with a function that has the store's keys.

    In that function a long list may not be: PySpark writes a function of more than 1 MiB to a file of this machine.
    """
    from pyspark.sql import functions as F

    placed = [(place * tasks // len(rows), place, *row) for place, row in enumerate(rows)]
    frame = spark.createDataFrame(placed, f"_hy_task int, _hy_place int, {ddl}")
    divided = frame.repartitionById(tasks, F.col("_hy_task")).sortWithinPartitions("_hy_place")
    return divided.drop("_hy_task", "_hy_place")


def run_numbered(spark: SparkSession | None, count: int, work: Callable[[int], Iterable[str]]) -> list[str]:
    """Run `work(0)` to `work(count - 1)` in workers, one Spark task each. Returns the texts of all tasks.

    Without a session they run in threads of this process: DuckDB and Arrow take a core each all the same.
    """
    if spark is None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(parallelism(None)) as pool:
            return [text for texts in pool.map(lambda number: list(work(number)), range(count)) for text in texts]

    def worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_arrays([pa.array(list(work(number)), pa.string())], names=["text"])

    return [row[0] for row in map_in_arrow(spark.range(0, count, 1, count), worker, "text string").collect()]
