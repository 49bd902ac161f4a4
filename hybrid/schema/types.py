"""Pinot's data types and how each is stored: in Arrow (and so in Delta and DuckDB) and in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class DataType(StrEnum):
    """A field's data type, by Pinot's names (https://docs.pinot.apache.org, Schema)."""

    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    BIG_DECIMAL = "BIG_DECIMAL"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"
    STRING = "STRING"
    JSON = "JSON"
    BYTES = "BYTES"

    @property
    def spark_type(self) -> str:
        """The Spark SQL type of a single value, as Delta stores it."""
        return _SPARK[self]

    def arrow_type(self) -> pa.DataType:
        """The Arrow type of a single value: the same as that of `spark_type` in Parquet."""
        import pyarrow as pa

        return {
            DataType.INT: pa.int32(),
            DataType.LONG: pa.int64(),
            DataType.FLOAT: pa.float32(),
            DataType.DOUBLE: pa.float64(),
            DataType.BIG_DECIMAL: pa.decimal128(38, 18),
            DataType.BOOLEAN: pa.bool_(),
            DataType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
            DataType.STRING: pa.string(),
            DataType.JSON: pa.string(),
            DataType.BYTES: pa.binary(),
        }[self]


_SPARK = {
    DataType.INT: "int",
    DataType.LONG: "bigint",
    DataType.FLOAT: "float",
    DataType.DOUBLE: "double",
    DataType.BIG_DECIMAL: "decimal(38,18)",
    DataType.BOOLEAN: "boolean",
    DataType.TIMESTAMP: "timestamp",
    DataType.STRING: "string",
    DataType.JSON: "string",
    DataType.BYTES: "binary",
}

# Every value of the key is exactly a value of the wider types. LONG does not fit DOUBLE, nor INT FLOAT (whole numbers
# fit up to 2^53 and 2^24), nor FLOAT BIG_DECIMAL. STRING is no wider type, because it sorts as text.
WIDER: Mapping[DataType, frozenset[DataType]] = {
    DataType.INT: frozenset({DataType.LONG, DataType.DOUBLE, DataType.BIG_DECIMAL}),
    DataType.LONG: frozenset({DataType.BIG_DECIMAL}),
    DataType.FLOAT: frozenset({DataType.DOUBLE}),
}
