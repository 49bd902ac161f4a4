"""The answer to a query: column names, Pinot types and rows, the revision, and statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybrid.errors import MachineError
from hybrid.query.revision import Revision
from hybrid.runtime.text_table import html_table, table_lines, text

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class QueryStats:
    """Statistics under Pinot's names, over the halves read. `num_docs_scanned` counts rows in the files and tail read.

    `num_segments_queried` counts existing segments, `num_segments_processed` those read; matches are not counted.
    `fresh_ms` is an instant (epoch ms): everything that Kafka had by then is in the answer. `bytes_read` is the size of
    the files read, and `tail_rows` counts the rows read from Kafka; the cache reads neither.
    """

    num_segments_queried: int = 0
    num_segments_processed: int = 0
    num_segments_matched: int = 0
    num_consuming_segments_queried: int = 0
    num_docs_scanned: int = 0
    total_docs: int = 0
    time_used_ms: int = 0
    fresh_ms: int = 0
    bytes_read: int = 0
    tail_rows: int = 0

    def to_json(self) -> dict[str, int]:
        """The statistics as Pinot's response spells them."""
        return {
            "numSegmentsQueried": self.num_segments_queried,
            "numSegmentsProcessed": self.num_segments_processed,
            "numSegmentsMatched": self.num_segments_matched,
            "numConsumingSegmentsQueried": self.num_consuming_segments_queried,
            "numDocsScanned": self.num_docs_scanned,
            "totalDocs": self.total_docs,
            "timeUsedMs": self.time_used_ms,
            "minConsumingFreshnessTimeMs": self.fresh_ms,
        }


_ROWS_SHOWN = 40
_CELL_CHARS = 80


@dataclass(frozen=True, repr=False)
class QueryResult:
    """The result of a statement. It prints as a table, and is iterated by rows.

    Values are int, float, bool, str, bytes, Decimal, datetime (UTC, no zone), list, None.
    `source` names who answered: `files`, or the `cache` of a server.
    """

    column_names: Sequence[str]
    column_types: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    revision: Revision = field(default_factory=Revision)
    warnings: Sequence[str] = ()
    stats: QueryStats = field(default_factory=QueryStats)
    source: str = "files"

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        """The first rows as a table of text."""
        return "\n".join(
            [*table_lines(self.column_names, self._shown_rows()), *([note] if (note := self._note()) else [])]
        )

    def _repr_html_(self) -> str:
        return html_table(self.column_names, self._shown_rows(), self._note())

    def _shown_rows(self) -> list[list[object]]:
        return [[_shortened(value) for value in row] for row in self.rows[:_ROWS_SHOWN]]

    def _note(self) -> str:
        count = len(self.rows)
        more = f"; {_ROWS_SHOWN} are shown" if count > _ROWS_SHOWN else ""
        return "\n".join([f"{count} row{'s' * (count != 1)}{more}", *(f"warning: {note}" for note in self.warnings)])

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        import pyarrow as pa

        columns = list(zip(*self.rows, strict=True)) if self.rows else [() for _ in self.column_names]
        arrays = [_arrow_array(kind, values) for kind, values in zip(self.column_types, columns, strict=True)]
        return pa.Table.from_arrays(arrays, names=list(self.column_names))

    def df(self) -> pd.DataFrame:
        """The rows as a pandas data frame."""
        return self.arrow().to_pandas()

    def pl(self) -> Any:
        """The rows as a polars data frame. MachineError without polars."""
        import importlib

        try:
            polars = importlib.import_module("polars")
        except ImportError:
            raise MachineError("polars is not installed.", hint="pip install polars") from None
        return polars.from_arrow(self.arrow())


def _shortened(value: object) -> object:
    """A value for a table: a long text, list or object ends in three dots."""
    if value is None or isinstance(value, int | float):
        return value
    cell = text(value)
    if len(cell) <= _CELL_CHARS:
        return value
    return f"{cell[: _CELL_CHARS - 3]}..."


def _arrow_array(wire: str, values: Sequence[object]) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(list(values), arrow_type(wire))
    except pa.ArrowInvalid:
        if wire != "BIG_DECIMAL":
            raise
        return pa.array(list(values))  # more digits before the point than a table's column can have


def arrow_type(wire: str) -> pa.DataType:
    """Arrow's type of a column of a Pinot type."""
    import pyarrow as pa

    if wire.endswith("_ARRAY"):
        return pa.list_(arrow_type(wire.removesuffix("_ARRAY")))
    return {
        "INT": pa.int32(),
        "LONG": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
        "TIMESTAMP": pa.timestamp("us"),
        "BYTES": pa.binary(),
        "BIG_DECIMAL": pa.decimal128(38, 18),
    }.get(wire, pa.string())
