"""Mode rescue: values that do not fit the source's columns are kept as JSON text in a column, with their file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from hybrid.flow.declared.reader import CORRUPT, METADATA, JsonReader, Reader, file_metadata, file_path
from hybrid.lake.layout import quoted
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

# Beside the values that do not fit: their file, and the whole line where it has more or fewer cells, as Spark calls it.
_FILE, _LINE = "_file_path", "_corrupt_record"


def rescued(reader: Reader, schema: StructType, name: str) -> tuple[DataFrame, DataFrame | None]:
    """The rows with the column `name`, null where all values fit; and the lines that are no records."""
    if isinstance(reader, JsonReader):
        (lines,) = reader.text_rows()
        return _from_json(reader, lines, schema, name)
    metadata = file_metadata(reader.source)
    frames = [_from_columns(frame, schema, name, metadata) for frame in reader.text_rows()]
    return reduce(lambda rows, more: rows.unionByName(more), frames), None


def _from_json(reader: Reader, lines: DataFrame, schema: StructType, name: str) -> tuple[DataFrame, DataFrame]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    partitions = reader.partition_names()
    data = [field for field in schema if field.name not in partitions]
    options = {
        key: value for key, value in reader.source.reader.items() if key not in ("mode", "inferSchema", "lineSep")
    }
    value, parsed, fields = "_hy_value", "_hy_parsed", "_hy_fields"
    read = (
        lines.where(F.length(F.trim("value")) > 0)
        .select("*", file_path().alias("_hy_file"), *file_metadata(reader.source))
        .withColumnRenamed("value", value)
        .withColumn(parsed, F.from_json(quoted(value), StructType(data), options))
        .withColumn(fields, F.from_json(quoted(value), "map<string,string>", options))
    )
    names = F.array(*(F.lit(field.name) for field in data)) if data else F.array().cast("array<string>")
    wrong = F.array(
        *(
            F.when(F.col(parsed)[field.name].isNull() & F.element_at(fields, field.name).isNotNull(), F.lit(field.name))
            for field in data
        ),
        F.lit(None).cast("string"),
    )
    extra = F.map_filter(
        F.col(fields),
        lambda key, item: (
            item.isNotNull() & (~F.array_contains(names, key) | F.coalesce(F.array_contains(wrong, key), F.lit(False)))
        ),
    )
    text = F.when(F.size(extra) > 0, F.to_json(F.map_concat(extra, F.create_map(F.lit(_FILE), F.col("_hy_file")))))
    good = read.where(F.col(fields).isNotNull()).select(
        *([quoted(METADATA)] if reader.source.metadata else []),
        *(
            quoted(field.name) if field.name in partitions else F.col(parsed)[field.name].alias(field.name)
            for field in schema
        ),
        text.alias(name),
    )
    bad = read.where(F.col(fields).isNull()).select(
        F.concat(F.lit("not a JSON object, in "), F.col("_hy_file")).alias(columns.REASON),
        quoted(value).cast("binary").alias(columns.RAW),
    )
    return good, bad


def _from_columns(frame: DataFrame, schema: StructType, name: str, metadata: Sequence[Column]) -> DataFrame:
    from pyspark.sql import functions as F

    there = {column.lower(): column for column in frame.columns}
    expected = {field.name.lower() for field in schema}
    extras = [quoted(column).alias(column) for low, column in there.items() if low not in {*expected, CORRUPT}]
    if CORRUPT in there:  # the whole line: its cells beyond the last column are nowhere else
        extras.append(quoted(CORRUPT).alias(_LINE))
    unfit = [_unfit(quoted(there[field.name.lower()]), field) for field in schema if field.name.lower() in there]
    parts = [*extras, *unfit]
    any_left = reduce(lambda before, part: before | part, (part.isNotNull() for part in parts), F.lit(False))
    text = F.to_json(F.struct(*parts, file_path().alias(_FILE)))
    fitting = [_fitting(there, field).alias(field.name) for field in schema]
    return frame.select(*metadata, *fitting, F.when(any_left, text).alias(name))


def _fitting(there: Mapping[str, str], field: StructField) -> Column:
    from pyspark.sql import functions as F

    name = there.get(field.name.lower())
    return F.lit(None).cast(field.dataType) if name is None else quoted(name).try_cast(field.dataType)


def _unfit(value: Column, field: StructField) -> Column:
    from pyspark.sql import functions as F

    return F.when(value.try_cast(field.dataType).isNull(), value).alias(field.name)
