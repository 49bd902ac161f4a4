"""Reads files as frames: the rows that fit the source's columns, and the others with their text and the reason.

Spark parses, and so checks, only the columns that a query selects. So both frames select every column. Each line is in
exactly one of them, whatever a flow selects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from hybrid.errors import DataError
from hybrid.flow.declared.csvreader import CsvReader
from hybrid.flow.declared.evolve import merged, new_fields, top_level
from hybrid.flow.declared.inference import InferredColumns
from hybrid.flow.declared.listing import SourceFile
from hybrid.flow.declared.options import DeclaredFileSource, Evolution
from hybrid.flow.declared.reader import (
    CORRUPT,
    METADATA,
    JsonReader,
    ParquetReader,
    Reader,
    file_metadata,
    file_path,
)
from hybrid.flow.declared.rescue import rescued
from hybrid.lake.layout import quoted
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_READERS: Mapping[str, type[Reader]] = {"json": JsonReader, "csv": CsvReader, "parquet": ParquetReader}
_SHOWN_MAX = 10


class NoColumnsError(DataError):
    """Files from which no columns can be inferred."""

    code = "no-columns"


@dataclass(frozen=True)
class Loaded:
    """The rows of files. `rejected` has columns REASON and RAW; it is None where nothing can be rejected.

    `schema` are the source's columns from now on.
    """

    good: DataFrame
    rejected: DataFrame | None
    schema: StructType
    warnings: tuple[str, ...] = ()


def load_files(
    spark: SparkSession,
    source: DeclaredFileSource,
    files: Sequence[SourceFile],
    known: StructType | None,
    columns_of: InferredColumns,
) -> Loaded:
    """Reads exactly these files. `known` are the columns that the source has had so far.

    `columns_of` knows the columns of files that were inferred already.

    DataError when no line can be read, and when a mode stops the flow at new columns.
    """
    reader = reader_of(spark, source, files)
    declared = reader.parsed(source.schema) if source.schema is not None else None
    inferred = columns_of.of(source, files, reader.inferred)
    before = declared if declared is not None else known
    if before is not None and declared is not None:
        before = merged(before, reader.partitions(inferred), None, Evolution.ADD)
    warnings = _about_new(reader, source, files, before, inferred)
    hints = reader.parsed(source.hints) if source.hints else None
    if hints is not None:
        reader.check_hints(hints)
    schema = merged(before, inferred, hints, source.evolution)
    if not schema.fields:
        shown = files[0].path if len(files) == 1 else f"{len(files)} files, e.g. {files[0].path}"
        raise NoColumnsError(f"{shown}: no line can be read as {source.format}, so there are no columns.")
    if source.rescued is not None:
        good, bad = rescued(reader, schema, source.rescued)
        return Loaded(good, bad, schema, warnings)
    rows, bad_rows = zip(*(_parted(reader, raw, schema) for raw in reader.rows(schema)), strict=True)
    rejected = [bad for bad in bad_rows if bad is not None]
    return Loaded(
        reduce(_union, rows), reduce(lambda a, b: a.union(b), rejected) if rejected else None, schema, warnings
    )


def reader_of(spark: SparkSession, source: DeclaredFileSource, files: Sequence[SourceFile]) -> Reader:
    """The reader of the source's format."""
    return _READERS[source.format](spark, source, files)


def _parted(reader: Reader, raw: DataFrame, schema: StructType) -> tuple[DataFrame, DataFrame | None]:
    """The rows of a frame that fit, under the source's columns, and the others."""
    from pyspark.sql import functions as F

    metadata = file_metadata(reader.source)
    if metadata:
        raw = raw.select("*", *metadata)
    if CORRUPT not in raw.columns:
        return _shaped(raw, schema), None
    touched = F.array_position(F.array(*(quoted(name).isNull() for name in raw.columns)), F.lit(True)) >= 0
    good = raw.where(quoted(CORRUPT).isNull() & touched).drop(CORRUPT)
    bad = raw.where(quoted(CORRUPT).isNotNull() & touched).select(
        F.concat(reader.reason(raw), F.lit(", in "), file_path()).alias(columns.REASON),
        quoted(CORRUPT).cast("binary").alias(columns.RAW),
    )
    return _shaped(good, schema), bad


def _shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """The source's columns, in its order. Columns that these files lack are null."""
    from pyspark.sql import functions as F

    there = {name.lower(): name for name in frame.columns}
    selected = [quoted(METADATA)] if METADATA in frame.columns else []
    for field in schema:
        name = there.get(field.name.lower())
        selected.append((quoted(name) if name else F.lit(None).cast(field.dataType)).alias(field.name))
    return frame.select(*selected)


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other)


def _about_new(
    reader: Reader, source: DeclaredFileSource, files: Sequence[SourceFile], known: StructType | None, found: StructType
) -> tuple[str, ...]:
    """Warnings of fields that the source has not had; DataError when they stop the flow."""
    if known is None:
        return ()
    new = new_fields(known, found)
    if source.evolution is Evolution.FAIL and new:
        where = next((file.path for file in files if set(new) & set(new_fields(known, reader.of_file(file)))), "")
        raise DataError(
            f"{where or source.path} has new columns: {_listed(new)}. Nothing of it was kept (failOnNewColumns).",
            hint="Set schemaEvolutionMode to addNewColumns, rescue or none; or take the file away.",
        )
    ignored = top_level(new)
    if source.evolution is Evolution.NONE and source.rescued is None and ignored:
        return (f"{source.path}: new columns are not read (schemaEvolutionMode none): {_listed(ignored)}.",)
    return ()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + more
