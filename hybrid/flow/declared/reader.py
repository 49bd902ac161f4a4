"""Readers for each file format in Spark: inference, rows with malformed lines beside them, and the reason."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hybrid.errors import SpecError
from hybrid.flow.declared.listing import SourceFile, base_folder, is_pattern
from hybrid.flow.declared.options import DeclaredFileSource
from hybrid.jvm.spark_errors import spark_sentence
from hybrid.lake.layout import quoted
from hybrid.lake.spark_paths import literal_paths

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

CORRUPT = "_hy_corrupt"
# Spark's `_metadata` of a row, as a column, because views do not pass `_metadata` on.
METADATA = "_hy_metadata"
KEPT_ROWS = {"columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE"}
_PARTITION = re.compile(r"/([^/=]+)=[^/]*(?=/)")


class Reader:
    """Reads one set of files of one source."""

    def __init__(self, spark: SparkSession, source: DeclaredFileSource, files: Sequence[SourceFile]) -> None:
        self.spark, self.source, self.files = spark, source, files
        self.paths = [file.path for file in files]
        self._base = _base_path(source)

    def parsed(self, text: object) -> StructType:
        """The user's schema."""
        return parse_ddl(self.spark, text, self.source.path)

    def inferred(self) -> StructType:
        """The columns of the files, including partition folders."""
        return self._plain(self._infer(self.paths))

    def of_file(self, file: SourceFile) -> StructType:
        """The columns of one file."""
        return self._plain(self._infer([file.path]))

    def partitions(self, found: StructType) -> StructType:
        """The columns that are in folder names."""
        from pyspark.sql.types import StructType

        names = self.partition_names()
        return StructType([field for field in found if field.name in names])

    def partition_names(self) -> set[str]:
        """The names in `name=value` folders below the base."""
        if self._base is None:
            return set()
        names = {name for path in self.paths for name in _PARTITION.findall(path[len(self._base) :])}
        chosen = self.source.partition_columns
        return names if chosen is None else names & set(chosen)

    def check_hints(self, hints: StructType) -> None:
        """SpecError when hints name columns that no file of this source can have."""

    def rows(self, schema: StructType) -> Iterator[DataFrame]:
        """Frames of all rows in the columns of `schema`. CORRUPT holds the text of a line that does not fit."""
        raise NotImplementedError

    def text_rows(self) -> Iterator[DataFrame]:
        """The same with every value as text, for mode rescue."""
        raise NotImplementedError

    def reason(self, raw: DataFrame) -> Column:
        """Why a row of `rows` with CORRUPT does not fit."""
        raise NotImplementedError

    def _infer(self, paths: Sequence[str]) -> StructType:
        raise NotImplementedError

    def spark_reader(self, **more: str) -> DataFrameReader:
        """Spark's reader with the options of the source. It keeps lines that do not fit."""
        options = {name: value for name, value in self.source.reader.items() if name not in ("mode", "inferSchema")}
        if self._base is not None:
            options["basePath"] = self._base
        reader = self.spark.read
        for name, value in {**options, **more}.items():
            reader = reader.option(name, value)
        return reader

    def _plain(self, found: StructType) -> StructType:
        from pyspark.sql.types import StructType

        unwanted = {CORRUPT}
        if self._base is not None and self.source.partition_columns is not None:
            every = {name for path in self.paths for name in _PARTITION.findall(path[len(self._base) :])}
            unwanted |= every - set(self.source.partition_columns)
        return StructType([field for field in found if field.name not in unwanted])


def _base_path(source: DeclaredFileSource) -> str | None:
    """The folder below which `name=value` folders are columns: one read whole, as in Spark, or on request."""
    if source.partition_columns is not None and not source.partition_columns:
        return None
    path = os.path.abspath(source.path)
    if is_pattern(path):
        return base_folder(path) if source.partition_columns else None
    return path if os.path.isdir(path) else None


class JsonReader(Reader):
    """Reads one object per line; with `multiLine`, one object or a list of objects per file."""

    def _infer(self, paths: Sequence[str]) -> StructType:
        from pyspark.sql.types import StringType, StructField, StructType

        inferred = self.spark_reader(**KEPT_ROWS).json(literal_paths(paths)).schema
        if self.source.infer_types:
            return inferred
        partitions = self.partition_names()
        return StructType(
            [field if field.name in partitions else StructField(field.name, StringType()) for field in inferred]
        )

    def rows(self, schema: StructType) -> Iterator[DataFrame]:
        """One frame, in which Spark marks malformed lines."""
        from pyspark.sql.types import StructType

        reader = self.spark_reader(**KEPT_ROWS).schema(StructType(list(schema)).add(CORRUPT, "string"))
        yield reader.json(literal_paths(self.paths))

    def text_rows(self) -> Iterator[DataFrame]:
        """Lines, or whole files with `multiLine`."""
        whole = {"wholetext": "true"} if self.source.flag("multiLine") else {}
        lines = self.spark.read.options(**whole)
        if self._base is not None:
            lines = lines.option("basePath", self._base)
        yield lines.text(literal_paths(self.paths))

    def reason(self, raw: DataFrame) -> Column:
        """Not an object, or the columns with values of another type."""
        from pyspark.sql import functions as F

        fields = F.from_json(quoted(CORRUPT), "map<string,string>")
        wrong = [
            F.when(
                quoted(field.name).isNull() & F.element_at(fields, field.name).isNotNull(),
                F.concat(
                    F.lit(f"column '{field.name}': "),
                    F.substring(F.element_at(fields, field.name), 1, 100),
                    F.lit(f" is not {type_name(field.dataType.simpleString())}"),
                ),
            )
            for field in raw.schema
            if field.name != CORRUPT
        ]
        return F.when(fields.isNull(), F.lit("not a JSON object")).otherwise(
            F.coalesce(F.nullif(F.concat_ws("; ", *wrong), F.lit("")), F.lit("a field inside does not fit its type"))
        )


class ParquetReader(Reader):
    """Reads files that define their columns themselves; no line can be malformed."""

    def _frame(self, paths: Sequence[str]) -> DataFrame:
        return self.spark_reader(mergeSchema="true").parquet(*literal_paths(paths))

    def _infer(self, paths: Sequence[str]) -> StructType:
        return self._frame(paths).schema

    def rows(self, schema: StructType) -> Iterator[DataFrame]:
        """One frame, with the columns of all files."""
        yield self._frame(self.paths)

    def text_rows(self) -> Iterator[DataFrame]:
        """The same: values keep the types of the files."""
        yield self._frame(self.paths)

    def reason(self, raw: DataFrame) -> Column:
        """Always empty."""
        from pyspark.sql import functions as F

        return F.lit("")


def type_name(kind: str) -> str:
    """A type as DDL writes it."""
    return kind.upper()


def file_metadata(source: DeclaredFileSource) -> list[Column]:
    """The column METADATA of a file source's row, where its flow reads it."""
    from pyspark.sql import functions as F

    return [F.col("_metadata").alias(METADATA)] if source.metadata else []


def file_path() -> Column:
    """The file of a file source's row."""
    from pyspark.sql import functions as F

    path = F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")
    return F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))  # Spark percent-encodes it as in URLs


def parse_ddl(spark: SparkSession, text: object, what: str) -> StructType:
    """A schema from a DDL text or Spark's own type. SpecError when the text is invalid."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(text, StructType):
        return text
    try:
        return spark.createDataFrame([], str(text)).schema
    except (PySparkException, ValueError, TypeError) as error:
        raise SpecError(
            f"{what}: '{text}' is no list of columns: {spark_sentence(error)}",
            hint="Write it like 'id BIGINT, name STRING'.",
        ) from error
