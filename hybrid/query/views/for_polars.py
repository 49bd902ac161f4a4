"""A view as Python code for Polars: lazy scans of the revision's files, and the rules as expressions.

It lists files instead of using `scan_delta`, which needs a second package and cannot read the tail's rows from later
versions.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from hybrid.errors import QueryError
from hybrid.query.views.python import commented
from hybrid.query.views.reads import ViewReads
from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType
from hybrid.schema.values import EPOCH
from hybrid.table import columns
from hybrid.table.boundary import Offsets, PartitionKey
from hybrid.table.columns import ARRIVAL, OP, OP_DELETE
from hybrid.table.upsert_order import first_wins, winning_order

_TYPES = {
    DataType.INT: "pl.Int32",
    DataType.LONG: "pl.Int64",
    DataType.FLOAT: "pl.Float32",
    DataType.DOUBLE: "pl.Float64",
    DataType.BIG_DECIMAL: "pl.Decimal(38, 18)",
    DataType.BOOLEAN: "pl.Boolean",
    DataType.TIMESTAMP: 'pl.Datetime("us")',  # without zone: all times are UTC
    DataType.STRING: "pl.String",
    DataType.JSON: "pl.String",
    DataType.BYTES: "pl.Binary",
}
_HIDDEN = {"string": "pl.String", "int": "pl.Int32", "bigint": "pl.Int64"}


def polars_code(reads: ViewReads) -> str:
    """The code of a view; its variable `view` is a LazyFrame.

    QueryError for a column whose name Polars takes for a pattern, and for a table with partial upsert.
    """
    if reads.spec.folds:
        raise QueryError(
            f"The rows of '{reads.spec.name}' are folded by key (PARTIAL upsert, or several comparison columns), which "
            "this code does not do for Polars.",
            hint="hybrid table view TABLE --for duckdb, or --for spark",
        )
    for field in reads.fields:
        if field.name == "*" or (field.name.startswith("^") and field.name.endswith("$")):
            raise QueryError(
                f"Column '{field.name}' of '{reads.spec.name}' has a name that Polars takes for a pattern of names.",
                hint="hybrid table view TABLE --for duckdb, or --for spark",
            )
    types = {field.name: _type(field) for field in reads.fields}
    hidden = {name: _HIDDEN[kind] for name, kind in columns.HIDDEN if name != columns.SEGMENT}
    typed = "".join(f"    {name!r}: {kind},\n" for name, kind in {**types, **hidden}.items())
    lists = "".join(_list(part.name, part.files) for part in reads.parts.values())
    scans = "".join(_scans(reads, name) for name in reads.parts)
    stored = f"pl.concat([\n{scans}])" if scans else "pl.LazyFrame(schema=TYPES)"
    return f"""{commented([*reads.header, "Needs: pip install polars"])}
import polars as pl

# The user's columns as `select *` lists them, then what the rules go by.
TYPES = {{
{typed}}}
COLUMNS = {list(types)!r}
# Instants as Spark writes them are taken for nanoseconds, which end in the year 2262.
WIDER = {{
    pl.Datetime("ns"): pl.Datetime("us"),
    pl.List(pl.Datetime("ns")): pl.List(pl.Datetime("us")),
}}
{lists}

def rows(path):
    \"\"\"The rows of a file, in the table's types; a column that it lacks is null.\"\"\"
    there = {{name: WIDER.get(kind, kind) for name, kind in pl.read_parquet_schema(path).items()}}
    columns = [
        pl.col(name).cast(kind) if name in there else pl.lit(None, kind).alias(name)
        for name, kind in TYPES.items()
    ]
    return pl.scan_parquet(path, schema=there, glob=False, hive_partitioning=False).select(columns)


{_named(reads)}stored = {stored}
{_defaults(reads)}{_living(reads)}view = stored.select(COLUMNS)

if __name__ == "__main__":
    print(view.collect())
"""


def _type(field: FieldSpec) -> str:
    kind = _TYPES[field.data_type]
    return kind if field.single_value else f"pl.List({kind})"


def _list(name: str, files: object) -> str:
    assert isinstance(files, list)
    return f"{name} = [\n" + "".join(f"    {path!r},\n" for path in files) + "]\n"


def _named(reads: ViewReads) -> str:
    """Assignments of named expressions: what the boundary hides, and where the tail ends."""
    code, covered = "", _covered(reads)
    if covered is not None:
        code += f"# What the OFFLINE half has taken over.\ncovered = {covered}\n"
    if "LATER" in reads.parts:
        ends = f'pl.col("{columns.OFFSET}") < {_frontier(reads.scan.ends)}'
        code += f"# Up to where the revision had read the stream.\nin_tail = {ends}\n"
    return code


def _scans(reads: ViewReads, part: str) -> str:
    """The scans of a part's files, each filtered by the boundary."""
    boundary, shown = reads.scan.boundary, ""
    if part == "OFFLINE" and boundary is not None and boundary.restricts_offline:
        within = "False" if boundary.limit_ms is None else f'pl.col("{columns.TIME}") < {boundary.limit_ms}'
        shown = f".filter({within})"
    if part != "OFFLINE" and _covered(reads) is not None:
        shown = ".filter(~covered)"
    if part == "LATER":
        shown += ".filter(in_tail)"
    return f"    *[rows(path){shown} for path in {part}],\n"


def _covered(reads: ViewReads) -> str | None:
    """The expression for hidden realtime rows; None where none is hidden."""
    boundary = reads.scan.boundary
    if boundary is None or boundary.limit_ms is None or not (boundary.time_alone or boundary.frontier):
        return None
    # A null time (a table without a time column) lies before an infinite limit.
    before = f'(pl.col("{columns.TIME}") < {boundary.limit_ms}).fill_null(True)'
    if boundary.time_alone:
        return before
    return f'{before} & (pl.col("{columns.OFFSET}") < {_frontier(boundary.frontier)})'


def _frontier(frontier: Offsets) -> str:
    cases = [f"when({_is_partition(key)}).then({offset})" for key, offset in sorted(frontier.items())]
    return f"pl.{'.'.join(cases)}.otherwise(0)"


def _is_partition(key: PartitionKey) -> str:
    return (
        f'(pl.col("{columns.PARTITION}") == {key.partition}) & (pl.col("{columns.EPOCH}") == {key.epoch}) '
        f'& (pl.col("{columns.TOPIC}") == {key.topic!r}) & (pl.col("{columns.CONNECTOR}") == {key.connector!r})'
    )


def _defaults(reads: ViewReads) -> str:
    """The code that replaces nulls of columns added later by their defaults; empty without such columns."""
    filled = [
        f"    pl.col({field.name!r}).fill_null({_default(field)}),\n"
        for field in reads.fields
        if reads.default_of(field) is not None
    ]
    return f"stored = stored.with_columns(\n{''.join(filled)})\n" if filled else ""


def _default(field: FieldSpec) -> str:
    element = f"pl.lit({_literal(field.default_null)}).cast({_TYPES[field.data_type]})"
    return element if field.single_value else f"pl.concat_list({element})"


def _literal(default: object) -> str:
    if isinstance(default, Decimal):
        return repr(f"{default:f}")
    if isinstance(default, datetime):
        return str((default - EPOCH) // timedelta(microseconds=1))
    return f'float("{default}")' if isinstance(default, float) else repr(default)


def _living(reads: ViewReads) -> str:
    """The code that keeps the winner of each key, or the rows that deletes of equal rows leave; else empty."""
    not_deleted = f'pl.col("{OP}").ne_missing("{OP_DELETE}")'
    if reads.spec.upsert is not None:
        key, order = list(reads.spec.primary_key), list(dict.fromkeys(winning_order(reads.spec)))
        least = first_wins(reads.spec)
        return (
            f"# The {'first' if least else 'newest'} row of each key, unless it is a delete marker.\n"
            f"stored = stored.sort({order!r}, descending={not least}, nulls_last={not least})\n"
            f'stored = stored.unique({key!r}, keep="first", maintain_order=True).filter({not_deleted})\n'
        )
    if not reads.scan.nets:
        return ""
    return (
        "# A delete takes one equal row away.\n"
        f"stored = stored.sort({list(ARRIVAL)!r}).with_columns(\n"
        f'    _hy_place=pl.int_range(1, pl.len() + 1).over([*COLUMNS, "{OP}"]),\n'
        f'    _hy_deletes=(pl.col("{OP}") == "{OP_DELETE}").sum().over(COLUMNS),\n'
        ")\n"
        f'stored = stored.filter({not_deleted} & (pl.col("_hy_place") > pl.col("_hy_deletes")))\n'
    )
