"""Converts a flow's frame to rows of its table: maps Spark types to columns, and rejects rows that do not fit.

A value that its column cannot hold never becomes null: the whole row is rejected, with column, value and reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import add, and_
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.errors import SpecError
from hybrid.lake.layout import quoted
from hybrid.schema.schema import FieldSpec
from hybrid.schema.timeformat import MAX_MS, MIN_MS, TimeFormat, TimeKind
from hybrid.schema.types import DataType
from hybrid.schema.values import EXPECTED
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructType

_SHOWN_MAX = 100
_WHOLE = (DataType.INT, DataType.LONG)
_NUMBERS = (*_WHOLE, DataType.FLOAT, DataType.DOUBLE, DataType.BIG_DECIMAL)
_TEXTS = (DataType.STRING, DataType.JSON)


@dataclass(frozen=True)
class ColumnType:
    """The table column for a column of a flow's frame. `is_date`: a date, stored as ISO text."""

    name: str
    data_type: DataType
    single_value: bool = True
    is_date: bool = False


def column_types(schema: StructType) -> list[ColumnType]:
    """The columns of a frame as columns of a table. SpecError for repeated names and reserved ones."""
    by_name: dict[str, ColumnType] = {}
    for field in schema:
        if field.name.lower() in by_name:
            other = by_name[field.name.lower()].name
            raise SpecError(
                f"The flow's rows have columns '{other}' and '{field.name}': case does not count. Rename one."
            )
        if field.name.lower().startswith(columns.PREFIX):
            raise SpecError(
                f"The flow's rows have a column '{field.name}': such names are the system's own. Rename it."
            )
        by_name[field.name.lower()] = _column_type(field.name, field.dataType)
    return list(by_name.values())


def _column_type(name: str, kind: SparkType) -> ColumnType:
    from pyspark.sql import types as T

    if isinstance(kind, T.ArrayType):
        element = _scalar(kind.elementType)
        if element is not None and element not in (DataType.BYTES, DataType.JSON):
            return ColumnType(name, element, single_value=False, is_date=isinstance(kind.elementType, T.DateType))
        return ColumnType(name, DataType.JSON)
    return ColumnType(name, _scalar(kind) or DataType.JSON, is_date=isinstance(kind, T.DateType))


def _scalar(kind: SparkType) -> DataType | None:
    """The type of a single value; None for types with fields or keys."""
    from pyspark.sql import types as T

    for classes, data_type in (
        ((T.ByteType, T.ShortType, T.IntegerType), DataType.INT),
        ((T.LongType,), DataType.LONG),
        ((T.FloatType,), DataType.FLOAT),
        ((T.DoubleType,), DataType.DOUBLE),
        ((T.DecimalType,), DataType.BIG_DECIMAL),
        ((T.BooleanType,), DataType.BOOLEAN),
        ((T.TimestampType, T.TimestampNTZType), DataType.TIMESTAMP),
        ((T.BinaryType,), DataType.BYTES),
        ((T.StructType, T.MapType, T.ArrayType, T.VariantType), None),
    ):
        if isinstance(kind, classes):
            return data_type
    return DataType.STRING


def stored_rows(frame: DataFrame, spec: TableSpec) -> DataFrame:
    """The rows with the table's columns, TIME, REASON and RAW. A row with a REASON is rejected.

    RAW is then the row as JSON. Columns of the table that the frame lacks are null.
    """
    from pyspark.sql import functions as F

    there = {field.name.lower(): field for field in frame.schema}
    natural = {field.name.lower(): _natural(quoted(field.name), field.dataType) for field in frame.schema}
    kinds = {column.name.lower(): column for column in column_types(frame.schema)}
    values: list[Column] = []
    problems: list[Column] = []
    for field in spec.schema.fields:
        if field.name.lower() not in there:
            values.append(F.lit(None).cast(field.spark_type).alias(field.name))
            continue
        value, kind = natural[field.name.lower()], kinds[field.name.lower()]
        converted = _converted(value, kind, field)
        values.append(converted.alias(field.name))
        given = there[field.name.lower()]
        original = _before(quoted(given.name), given.dataType, value)
        if converted is not original:
            problems.append(F.when(original.isNotNull() & converted.isNull(), _reason(field, original)))
        is_utf8 = _is_utf8(quoted(given.name), given.dataType)
        if is_utf8 is not None:
            problems.append(F.when(~is_utf8, _not_utf8(field, quoted(given.name))))
    problems += _compared(spec, values)
    raw = F.to_json(F.struct(*(quoted(name) for name in frame.columns))) if frame.columns else F.lit("{}")
    rows = frame.select(*values, _joined(problems).alias(columns.REASON), raw.alias(columns.RAW))
    return _with_time(rows, spec)


def _compared(spec: TableSpec, values: Sequence[Column]) -> list[Column]:
    """Rejects rows without a value in exactly one of several comparison columns; see `hybrid.records.decode`."""
    from pyspark.sql import functions as F

    names = spec.upsert.comparison_columns if spec.upsert is not None else ()
    if len(names) < 2:
        return []
    comparison_values = [value for value, field in zip(values, spec.schema.fields, strict=True) if field.name in names]
    count = reduce(add, (value.isNotNull().cast("int") for value in comparison_values))
    listed = " and ".join(f"'{name}'" for name in names)
    return [F.when(count != 1, F.lit(f"a row has a value in just one of the comparison columns {listed}"))]


def _natural(value: Column, kind: SparkType) -> Column:
    """A value in the form in which its own column type stores it."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.ArrayType) and _scalar(kind.elementType) not in (None, DataType.BYTES):
        items = F.transform(value, lambda item: _natural(item, kind.elementType))
        return F.when(F.size(items) > 0, items)
    if isinstance(kind, (T.StructType, T.MapType, T.ArrayType, T.VariantType)):
        return F.to_json(value)
    if isinstance(kind, T.DateType):
        return F.date_format(value, "yyyy-MM-dd")
    if isinstance(kind, T.DecimalType):
        return value.try_cast(DataType.BIG_DECIMAL.spark_type) if not _fits(kind) else value.cast("decimal(38,18)")
    scalar = _scalar(kind)
    return value.cast(scalar.spark_type) if scalar is not None else F.to_json(value)


def _before(given: Column, kind: SparkType, natural: Column) -> Column:
    """The value that must be null if the stored one is. An empty list is stored as null, so it is null here too."""
    from pyspark.sql import types as T

    return given if isinstance(kind, T.DecimalType) and not _fits(kind) else natural


def _fits(kind: SparkType) -> bool:
    precision, scale = getattr(kind, "precision", 38), getattr(kind, "scale", 18)
    return precision - scale <= 20 and scale <= 18


def _converted(value: Column, kind: ColumnType, field: FieldSpec) -> Column:
    """A natural value in the table's column; null when it does not fit. Unchanged values are the same object."""
    from pyspark.sql import functions as F

    if kind.single_value and not field.single_value:
        item = _one(value, kind.data_type, field.data_type)
        return F.when(item.isNotNull(), F.array(item))
    if not kind.single_value and field.single_value:
        if field.data_type in _TEXTS:
            return F.to_json(value)
        return F.lit(None).cast(field.spark_type)
    if kind.data_type is field.data_type:
        return value
    if kind.single_value:
        return _one(value, kind.data_type, field.data_type)
    items = F.transform(value, lambda item: _one(item, kind.data_type, field.data_type))
    lost = F.exists(
        F.arrays_zip(value.alias("a"), items.alias("b")), lambda pair: pair["a"].isNotNull() & pair["b"].isNull()
    )
    return F.when(~lost, items)


def _one(value: Column, kind: DataType, wanted: DataType) -> Column:
    """A value of type `kind` converted to type `wanted`; null when that would lose something."""
    from pyspark.sql import functions as F

    if kind is wanted:
        return value
    if wanted is DataType.STRING:
        if kind is DataType.TIMESTAMP:
            return F.date_format(value, "yyyy-MM-dd HH:mm:ss.SSS")
        return F.hex(value) if kind is DataType.BYTES else value.cast("string")
    if wanted is DataType.JSON:
        return F.when(F.try_parse_json(value).isNotNull(), value) if kind is DataType.STRING else value.cast("string")
    if wanted is DataType.TIMESTAMP:
        return _timestamp(value, kind)
    if kind is DataType.TIMESTAMP:
        return F.unix_millis(value).cast("bigint") if wanted is DataType.LONG else F.lit(None).cast(wanted.spark_type)
    if wanted is DataType.BYTES:
        return F.try_to_binary(value, F.lit("hex")) if kind in _TEXTS else F.lit(None).cast("binary")
    if kind is DataType.BYTES:
        return F.lit(None).cast(wanted.spark_type)
    converted = value.try_cast(wanted.spark_type)
    if wanted in _WHOLE and kind in _NUMBERS and kind not in _WHOLE:
        return F.when(converted.cast("double") == value.cast("double"), converted)
    return converted


def _timestamp(value: Column, kind: DataType) -> Column:
    """A value of another type as a timestamp; null when it is none."""
    from pyspark.sql import functions as F

    if kind in _WHOLE:
        return F.when(value.between(MIN_MS, MAX_MS), F.timestamp_millis(value.cast("bigint")))
    return value.try_cast("timestamp") if kind in _TEXTS else F.lit(None).cast("timestamp")


def _reason(field: FieldSpec, value: Column) -> Column:
    from pyspark.sql import functions as F

    expected = (
        EXPECTED[field.data_type] if field.single_value else f"a list of values, each {EXPECTED[field.data_type]}"
    )
    shown = F.make_valid_utf8(F.substring(value.cast("string"), 1, _SHOWN_MAX))
    return F.concat(F.lit(f"column '{field.name}': "), F.coalesce(shown, F.lit("?")), F.lit(f" is not {expected}"))


def _is_utf8(value: Column, kind: SparkType) -> Column | None:
    """Whether all texts of a value are UTF-8, which Spark does not check; null or None where it has none."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.StringType):
        return F.is_valid_utf8(value)
    if isinstance(kind, T.ArrayType):
        return _all_utf8(value, kind.elementType)
    if isinstance(kind, T.StructType):
        parts = [_is_utf8(value[field.name], field.dataType) for field in kind.fields]
    elif isinstance(kind, T.MapType):
        parts = [_all_utf8(F.map_keys(value), kind.keyType), _all_utf8(F.map_values(value), kind.valueType)]
    else:
        return None
    found = [F.coalesce(part, F.lit(True)) for part in parts if part is not None]
    return reduce(and_, found) if found else None


def _all_utf8(values: Column, kind: SparkType) -> Column | None:
    from pyspark.sql import functions as F

    if _is_utf8(F.lit(None), kind) is None:
        return None
    return F.forall(values, lambda item: F.coalesce(_is_utf8(item, kind), F.lit(True)))  # type: ignore[arg-type]


def _not_utf8(field: FieldSpec, value: Column) -> Column:
    """The reason, with the bytes of a text, because RAW has replacement characters for them."""
    from pyspark.sql import functions as F

    hexed = F.lower(F.hex(F.substring(value.cast("string").cast("binary"), 1, _SHOWN_MAX)))
    return F.concat(F.lit(f"column '{field.name}': a text is not UTF-8: hex:"), hexed)


def _joined(problems: Sequence[Column]) -> Column:
    from pyspark.sql import functions as F

    return F.nullif(F.concat_ws("; ", *problems), F.lit("")) if problems else F.lit(None).cast("string")


def _with_time(rows: DataFrame, spec: TableSpec) -> DataFrame:
    """Adds TIME. On a table with a time column, rows without a time are rejected."""
    from pyspark.sql import functions as F

    names = [*(quoted(field.name) for field in spec.schema.fields)]
    raw = quoted(columns.RAW).cast("binary").alias(columns.RAW)
    field = spec.time_field
    if field is None or field.time_format is None:
        time = F.lit(None).cast("bigint").alias(columns.TIME)
        return rows.select(*names, time, quoted(columns.REASON), _only_rejected(raw, quoted(columns.REASON)))
    time = _millis(quoted(field.name), field.time_format)
    valid = F.when(time.between(MIN_MS, MAX_MS), time)
    reason = F.coalesce(
        quoted(columns.REASON),
        F.when(quoted(field.name).isNull(), F.lit(f"the time column '{field.name}' is null")),
        F.when(valid.isNull(), F.lit(f"the time column '{field.name}' is outside of the years 1 to 9999")),
    )
    return rows.select(*names, valid.alias(columns.TIME), reason.alias(columns.REASON), _only_rejected(raw, reason))


def _only_rejected(raw: Column, reason: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when(reason.isNotNull(), raw).alias(columns.RAW)


def _millis(value: Column, form: TimeFormat) -> Column:
    from pyspark.sql import functions as F

    if form.kind is TimeKind.TIMESTAMP or form.data_type is DataType.TIMESTAMP:
        return F.unix_millis(value)
    if form.kind is TimeKind.PATTERN:
        return F.unix_millis(F.try_to_timestamp(value, F.lit(form.pattern)))
    if form.step_ns % 1_000_000 == 0:
        return F.try_multiply(value.cast("bigint"), F.lit(form.step_ns // 1_000_000))
    common = gcd(1_000_000, form.step_ns)  # integers throughout: a double cannot hold 19 digits
    steps, length = F.try_multiply(value.cast("bigint"), F.lit(form.step_ns // common)), F.lit(1_000_000 // common)
    return F.call_function("div", steps - F.pmod(steps, length), length)


def with_rejected(rows: DataFrame, rejected: DataFrame | None) -> DataFrame:
    """The rows, followed by the rows that reading has rejected (columns REASON and RAW)."""
    return rows if rejected is None else rows.unionByName(rejected, allowMissingColumns=True)


def union_all(frames: Sequence[DataFrame]) -> DataFrame:
    """The union of frames with the same columns."""
    return reduce(lambda rows, more: rows.unionByName(more), frames)
