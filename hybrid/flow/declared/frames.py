"""Small things that every frame here needs: columns by their exact name, schemas from text, the file of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType


def file_path() -> Column:
    """The file that a row of a file source comes from."""
    from pyspark.sql import functions as F

    return F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")


def quoted(name: str) -> Column:
    """A column by its exact name, dots and all."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def parse_ddl(spark: SparkSession, text: object, what: str) -> StructType:
    """A schema as a DDL text or as Spark's own. SpecError when the text is none."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(text, StructType):
        return text
    try:
        return spark.createDataFrame([], str(text)).schema
    except (PySparkException, ValueError, TypeError) as error:
        first = str(error).strip().partition("\n")[0]
        raise SpecError(
            f"{what}: '{text}' is no list of columns: {first}", hint="Write it like 'id BIGINT, name STRING'."
        ) from error
