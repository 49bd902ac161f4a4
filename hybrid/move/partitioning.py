"""Divides rows by the partitions of their column values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hybrid.config.table_config import PartitionedColumn
from hybrid.table.partitions import partition_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def divided_by(batch: pa.RecordBatch, parts: Sequence[PartitionedColumn]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each partition, in their order. With several columns each combination of partitions has a number."""
    import numpy as np
    import pyarrow as pa

    numbers = np.zeros(batch.num_rows, dtype=np.int64)
    for part in parts:
        numbers = numbers * part.count + _partitions(batch.column(part.name), part)
    for number in np.unique(numbers):
        yield int(number), batch.take(pa.array(np.flatnonzero(numbers == number)))


def _partitions(values: pa.Array, part: PartitionedColumn) -> np.ndarray:
    """The partition of each value; the function is evaluated once per distinct text."""
    import numpy as np

    encoded = values.dictionary_encode(null_encoding="encode")
    texts = (part.null if value is None else str(value) for value in encoded.dictionary.to_pylist())
    partitions = np.array([partition_of(part.function, text, part.count) for text in texts], dtype=np.int64)
    return np.asarray(partitions[encoded.indices.to_numpy()])
