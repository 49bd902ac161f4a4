"""CSV files in Spark: a header identifies columns by name; without one, columns are identified by position."""

from __future__ import annotations

import bz2
import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hybrid.errors import DataError, SpecError
from hybrid.flow.declared.reader import CORRUPT, Reader, type_name
from hybrid.lake.spark_paths import literal_paths

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

_WIDER = (("integer", "long", "decimal", "double"), ("date", "timestamp"))  # as Spark's inference widens
_PLACE = re.compile(r"_c[0-9]+")
_OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
# Spark decompresses these too. Their first line is not read here, so each is a group by itself.
_PACKED = (".deflate", ".lz4", ".snappy", ".zst", ".zstd", ".xz")


class CsvReader(Reader):
    """Reads files with the same header together; without headers, files of the same width."""

    @property
    def _has_header(self) -> bool:
        return self.source.flag("header")

    def _groups(self, paths: Sequence[str]) -> list[list[str]]:
        groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
        for path in paths:
            groups[self._group(path)].append(path)
        return list(groups.values())

    def _group(self, path: str) -> tuple[object, ...]:
        if path.endswith(_PACKED):
            return ("", path)
        first = self._first_row(path)
        return tuple(first) if self._has_header else (len(first),)

    def _first_row(self, path: str) -> list[str]:
        """The cells of the first line that is neither blank nor a comment, where Spark finds the header."""
        options = self.source.reader
        encoding = options.get("encoding", options.get("charset", "utf-8"))
        delimiter = options.get("delimiter", options.get("sep", ",")).replace("\\t", "\t")
        try:
            with _OPEN.get(Path(path).suffix, open)(path, "rt", encoding=encoding, newline="") as file:
                lines = self._lines(file)
                if len(delimiter) != 1:
                    return next(lines, "").rstrip("\r\n").split(delimiter)
                return next(csv.reader(lines, delimiter=delimiter, quotechar=options.get("quote", '"') or None), [])
        except (OSError, EOFError, UnicodeError, LookupError, csv.Error, TypeError) as error:
            raise DataError(f"{path}: its first line cannot be read: {error}.") from error

    def _lines(self, file: IO[str]) -> Iterator[str]:
        comment = self.source.reader.get("comment", "")
        is_first = True
        for line in file:
            if is_first and (not line.strip() or (comment and line.lstrip().startswith(comment))):
                continue
            is_first = False
            yield line

    def _columns(self, paths: Sequence[str], infer: bool) -> StructType:
        """The columns of a group: by its header, else the given schema's by position, else `_c0` and so on."""
        reader = self.spark_reader(inferSchema=str(infer).lower(), enforceSchema="true")
        return self._by_place(reader.csv(literal_paths(paths)).schema)

    def _by_place(self, found: StructType) -> StructType:
        from pyspark.sql.types import StructField, StructType

        if self._has_header or self.source.schema is None:
            return found
        partitions = self.partition_names()
        declared = [field for field in self.parsed(self.source.schema) if field.name not in partitions]
        beyond = [field for field in found if field.name not in partitions][len(declared) :]
        named = [StructField(field.name, field.dataType) for field in declared]
        return StructType([*named, *beyond, *(field for field in found if field.name in partitions)])

    def _infer(self, paths: Sequence[str]) -> StructType:
        from pyspark.sql.types import StructField, StructType

        fields: dict[str, StructField] = {}
        for group in self._groups(paths):
            for field in self._columns(group, self.source.infer_types):
                first = fields.setdefault(field.name, field)
                fields[field.name] = StructField(field.name, _common(first.dataType, field.dataType))
        return StructType(list(fields.values()))

    def check_hints(self, hints: StructType) -> None:
        """SpecError for a hint with a name that a file without a header cannot have."""
        partitions = self.partition_names()
        unknown = [] if self._has_header else [hint.name for hint in hints if not _PLACE.fullmatch(hint.name.lower())]
        unknown = [name for name in unknown if name not in partitions]
        if unknown:
            raise SpecError(
                f"{self.source.path}: schemaHints name {', '.join(unknown)}, but no header names the columns: they are "
                "_c0, _c1 and so on.",
                hint="Set header to true if the first line names the columns; else give all of them as a schema.",
            )

    def rows(self, schema: StructType) -> Iterator[DataFrame]:
        """A frame for each group."""
        fields = {field.name.lower(): field for field in schema}
        for group in self._groups(self.paths):
            there = self._columns(group, False)
            self._check_named(group, there, fields.keys())
            yield self._marked(group, there, lambda column: fields.get(column.name.lower(), column))

    def _marked(
        self, group: Sequence[str], there: StructType, typed: Callable[[StructField], StructField]
    ) -> DataFrame:
        """A group's rows with the types of `typed`, and CORRUPT, but where the files have no column: no row either."""
        if {column.name for column in there} <= self.partition_names():  # Spark reads no CORRUPT alone
            return self.spark_reader(enforceSchema="true", mode="PERMISSIVE").csv(literal_paths(group))
        reader = self.spark_reader(columnNameOfCorruptRecord=CORRUPT, mode="PERMISSIVE", enforceSchema="true")
        return reader.schema(self._typed(there, typed)).csv(literal_paths(group))

    def _typed(self, there: StructType, typed: Callable[[StructField], StructField]) -> StructType:
        """The columns with their types. Spark requires columns of folders after the file's own."""
        from pyspark.sql.types import StructType

        partitions = self.partition_names()
        own = StructType([typed(column) for column in there if column.name not in partitions]).add(CORRUPT, "string")
        return StructType([*own, *(typed(column) for column in there if column.name in partitions)])

    def _check_named(self, group: Sequence[str], there: StructType, known: Any) -> None:
        """DataError when a header has none of the given schema's columns: all values would be null."""
        names = [column.name for column in there if column.name not in self.partition_names()]
        if self.source.schema is None or not names or any(name.lower() in known for name in names):
            return
        raise DataError(
            f"{group[0]}: its header names {', '.join(names[:10])}: none of them is a column of the schema.",
            hint="Set header to false if the first line is a row; else see whether sep is the file's delimiter.",
        )

    def text_rows(self) -> Iterator[DataFrame]:
        """A frame of texts for each group. CORRUPT holds the text of a line with more or fewer cells."""
        from pyspark.sql.types import StringType, StructField

        for group in self._groups(self.paths):
            there = self._columns(group, False)
            yield self._marked(group, there, lambda column: StructField(column.name, StringType()))

    def reason(self, raw: DataFrame) -> Column:
        """The columns that the line should have."""
        from pyspark.sql import functions as F

        data = [column for column in raw.schema if column.name != CORRUPT]
        columns = ", ".join(f"{column.name} {type_name(column.dataType.simpleString())}" for column in data)
        return F.lit(f"the line does not fit the columns ({columns})")


def _common(first: DataType, other: DataType) -> DataType:
    """The type that holds the values of both, as Spark infers it from files that it reads together."""
    from pyspark.sql.types import StringType

    if first == other:
        return first
    kinds = [first.typeName(), other.typeName()]
    for wider in _WIDER:
        if all(kind in wider for kind in kinds):
            return max((first, other), key=lambda kind: wider.index(kind.typeName()))
    return StringType()
