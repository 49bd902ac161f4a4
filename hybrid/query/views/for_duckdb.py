"""A view as Python code for DuckDB: one SELECT over the list of the revision's files.

The files are listed because DuckDB cannot read a version without its delta extension, and a folder holds the files of
all versions.
"""

from __future__ import annotations

from functools import partial

from hybrid.query import partial_upsert as fold
from hybrid.query.connection import identifier, quoted
from hybrid.query.types import duckdb_type
from hybrid.query.views.python import commented, long_text
from hybrid.query.views.reads import ViewPart, ViewReads
from hybrid.query.views.statement import ViewDialect, ViewSource, statement
from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType


def duckdb_code(reads: ViewReads) -> str:
    """The code of a view; its variable `view` is a DuckDBPyRelation."""
    sources = [ViewSource(part, _relation(reads, part), part.columns) for part in reads.parts.values()]
    words = ViewDialect(identifier, quoted, duckdb_type, partial(_shown, reads), "[{}]".format, fold.DUCKDB)
    sql = statement(reads, words, sources)
    return f"""{commented([*reads.header, "Needs: pip install duckdb"])}
import duckdb

connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")  # files hold instants, and all times of the table are UTC
view = connection.sql(
    {long_text(sql)}
)

if __name__ == "__main__":
    print(view)
"""


def _relation(reads: ViewReads, part: ViewPart) -> str:
    files = ",\n    ".join(quoted(path) for path in part.files)
    by_name = ", union_by_name = true" if reads.evolved or reads.widened else ""
    return f"read_parquet([\n    {files}\n  ], hive_partitioning = false{by_name})"


def _shown(reads: ViewReads, field: FieldSpec) -> str:
    name, is_cast = identifier(field.name), field.data_type is DataType.TIMESTAMP or field.name in reads.widened
    return f"CAST({name} AS {duckdb_type(field)})" if is_cast else name
