"""Texts among numbers: a few of them make a new column STRING, for good. They are named when a table gets the column.

Spark infers the columns of JSON and CSV from every line, and does not say which value decided.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from hybrid.flow.declared.listing import SourceFile
from hybrid.flow.declared.options import DeclaredFileSource, Evolution
from hybrid.flow.declared.read import reader_of
from hybrid.flow.declared.reader import Reader, file_path
from hybrid.lake.layout import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DoubleType, LongType, StructType

# So much is looked at, and at most one value in so many may be no number.
_FILES_MAX, _COLUMNS_MAX, _ROWS_MAX = 20, 100, 10_000
_ONE_IN = 10
_PLAIN_NAME = re.compile(r"\w+")
# Names that no column of a file has: those of users do not begin like this.
_FILE, _PLACE = "_hy_file", "_hy_{}"


class _Texts(NamedTuple):
    """The values of one column: how many there are, are no number, are whole numbers; and the first that is none."""

    values: int
    others: int
    whole: int
    first: Sequence[str] | None

    @property
    def kind(self) -> str:
        """The type of the numbers."""
        return "BIGINT" if self.whole == self.values - self.others else "DOUBLE"


def doubts_about(
    spark: SparkSession,
    source: DeclaredFileSource,
    files: Sequence[SourceFile],
    schema: StructType,
    names: Collection[str],
) -> list[str]:
    """A sentence for each of these columns whose values are numbers but for a few; `names` are in lower case.

    `schema` is what the source's files are read by. Columns whose types the user gave are no doubt, and neither are
    numbers in quotes. A part of the files is read, once, and again where there is a doubt.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    if source.format == "parquet" or source.schema is not None or source.evolution is Evolution.RESCUE:
        return []
    if not source.infer_types or source.flag("primitivesAsString"):
        return []
    reader = reader_of(spark, source, files[:_FILES_MAX])
    given = {name.lower() for name in reader.partition_names()}
    given |= {field.name.lower() for field in reader.parsed(source.hints)} if source.hints else set()
    columns = [
        field.name
        for field in schema
        if isinstance(field.dataType, StringType) and field.name.lower() in names and field.name.lower() not in given
    ][:_COLUMNS_MAX]
    texts = {name: values for name, values in _texts(reader, schema, columns).items() if _is_doubtful(values)}
    # What JSON has in quotes is text, whatever it looks like.
    kinds = StructType(
        [StructField(field.name, _type(texts[field.name].kind)) if field.name in texts else field for field in schema]
    )
    fitting = _counts(reader, kinds, list(texts))
    return [
        _sentence(source, name, sampled)
        for name, sampled in texts.items()
        if sampled.values - fitting[name] <= sampled.values / _ONE_IN
    ]


def _is_doubtful(texts: _Texts) -> bool:
    return texts.first is not None and texts.others * _ONE_IN <= texts.values


def _sentence(source: DeclaredFileSource, name: str, texts: _Texts) -> str:
    are = "is" if texts.others == 1 else "are"
    first, file = texts.first or ("", "")
    written = name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
    return (
        f"{source.path}: column '{name}' is STRING: {texts.others:,} of {texts.values:,} values {are} no number, e.g. "
        f"'{first}' in {file}. A new table with schemaHints '{written} {texts.kind}' rejects such rows instead."
    )


def _type(kind: str) -> LongType | DoubleType:
    from pyspark.sql.types import DoubleType, LongType

    return LongType() if kind == "BIGINT" else DoubleType()


def _texts(reader: Reader, schema: StructType, columns: Sequence[str]) -> Mapping[str, _Texts]:
    from pyspark.sql import functions as F

    if not columns:
        return {}
    figures = []
    for place in range(len(columns)):
        text = F.col(_PLACE.format(place))
        other = text.isNotNull() & text.try_cast("double").isNull()
        first = F.first(F.when(other, F.struct(F.substring(text, 1, 40), _FILE)), ignorenulls=True)
        figures += [F.count(text), F.count_if(other), F.count_if(text.try_cast("bigint").isNotNull()), first]
    row = _sample(reader, schema, columns).agg(*figures).first() or ()
    return {name: _Texts(*row[4 * place : 4 * place + 4]) for place, name in enumerate(columns)}


def _counts(reader: Reader, schema: StructType, columns: Sequence[str]) -> Mapping[str, int]:
    """How many values of each column fit its type."""
    from pyspark.sql import functions as F

    if not columns:
        return {}
    figures = [F.count(_PLACE.format(place)) for place in range(len(columns))]
    row = _sample(reader, schema, columns).agg(*figures).first() or ()
    return dict(zip(columns, row, strict=True))


def _sample(reader: Reader, schema: StructType, columns: Sequence[str]) -> DataFrame:
    """Some rows of the columns, each by its place, with the file of the row."""
    from pyspark.sql import functions as F

    parts = []
    for rows in reader.rows(schema):
        there = {name.lower() for name in rows.columns}
        values = [
            (quoted(name) if name.lower() in there else F.lit(None)).alias(_PLACE.format(place))
            for place, name in enumerate(columns)
        ]
        parts.append(rows.select(*values, file_path().alias(_FILE)))
    return reduce(lambda one, other: one.unionByName(other), parts).limit(_ROWS_MAX)
