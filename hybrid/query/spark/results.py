"""The rows of a Spark frame as Python's values, under the types that DuckDB has for the statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from hybrid.errors import EXECUTION, VALIDATION, QueryError
from hybrid.query.execution import Fetched, check_rows, size_of_rows, too_many_bytes
from hybrid.sql.spark_functions import INSTEAD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_WHOLE_IN_SPARK = ("tinyint", "smallint", "int", "bigint")
_SAME = {
    "FLOAT": "float", "DOUBLE": "double", "BOOLEAN": "boolean", "VARCHAR": "string", "JSON": "string", "BLOB": "binary",
    "DATE": "date", "TIMESTAMP": "timestamp",
}  # fmt: skip
# The type of a column of nulls.
_NULL = '"NULL"'


def fitting(frame: DataFrame, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """The frame under positions as names, its times without a zone. QueryError where its types are not DuckDB's."""
    fields = frame.schema.fields
    if len(fields) != len(columns):
        raise _differs("gives other columns than DuckDB")
    for field, (name, kind) in zip(fields, columns, strict=True):
        if not _fits(field.dataType, kind):
            raise _differs(f"gives column '{name}' as {field.dataType.simpleString().upper()} and DuckDB as {kind}")
    frame = frame.toDF(*(f"_{place}" for place in range(len(fields))))
    return frame.selectExpr(*(_without_zone(f"`_{place}`", field.dataType) for place, field in enumerate(fields)))


def _differs(what: str) -> QueryError:
    return QueryError(f"Spark {what}: CAST what it is made of.", pinot_code=VALIDATION, hint=INSTEAD)


def _without_zone(name: str, kind: DataType) -> str:
    """A time as a local one: the session's zone is UTC, and Python's is not asked."""
    text = kind.simpleString()
    return f"CAST({name} AS {text.replace('timestamp', 'timestamp_ntz')}) AS {name}" if "timestamp" in text else name


def _fits(found: DataType, kind: str) -> bool:
    text = found.simpleString()
    if text == "void" or kind == _NULL:
        return True
    if kind.endswith("[]"):
        return text.startswith("array<") and _fits(found.elementType, kind[:-2])  # type: ignore[attr-defined]
    if kind in _WHOLE:
        return text in _WHOLE_IN_SPARK or (text.startswith("decimal(") and text.endswith(",0)"))
    if kind.startswith("DECIMAL("):
        return text.startswith("decimal(") and text.partition(",")[2] == kind.partition(",")[2].strip(" ")
    return _SAME.get(kind) == text


def fetched(
    frame: DataFrame, columns: Sequence[tuple[str, str]], rows_max: int | None, bytes_max: int | None
) -> Fetched:
    """All rows. QueryError beyond the limits."""
    if rows_max is not None:
        frame = frame.limit(rows_max + 1)
    table = frame.toArrow()
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []
    rows = list(_converted(rows, columns))
    if bytes_max is not None and size_of_rows(rows) > bytes_max:
        raise too_many_bytes(bytes_max)
    check_rows(rows, rows_max)
    return Fetched(columns, rows)


class RowCursor:
    """The rows of a frame, a partition at a time, as a cursor of DuckDB gives them."""

    def __init__(self, frame: DataFrame, columns: Sequence[tuple[str, str]]) -> None:
        self._rows = _converted((tuple(row) for row in frame.toLocalIterator()), columns)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next rows; none at the end."""
        return list(islice(self._rows, size))


def _converted(rows: Any, columns: Sequence[tuple[str, str]]) -> Iterator[tuple[Any, ...]]:
    """Rows whose whole numbers are int within their type, and bytes are bytes."""
    changing = [(place, kind) for place, (_, kind) in enumerate(columns) if kind in _WHOLE or kind == "BLOB"]
    for row in rows:
        if not changing:
            yield row
            continue
        values = list(row)
        for place, kind in changing:
            if values[place] is not None:
                values[place] = bytes(values[place]) if kind == "BLOB" else _whole(values[place], kind)
        yield tuple(values)


def _whole(value: Any, kind: str) -> int:
    number = int(value)
    if not -(2 ** (_WHOLE[kind] - 1)) <= number < 2 ** (_WHOLE[kind] - 1):
        raise QueryError(f"Overflow: {number} does not fit {kind}.", pinot_code=EXECUTION)
    return number
