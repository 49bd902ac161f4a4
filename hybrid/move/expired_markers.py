"""Delete markers that are older than deletedKeysTTL and hide nothing: compaction leaves them out, too.

A marker's age is how far its comparison value lies behind the highest one of the table, as in Pinot. It goes only when
no older row of its key is anywhere from where it could come to light:

    the OFFLINE half                              the rows of all segments, markers too
    REALTIME                                      rows that some boundary may show, moved or not
    files that acts of the lineage took away      as long as they are on disk, for a revert puts them back
    rows that wait for a swap                     while a backfill or an open replacement waits, no marker goes

An older row that arrives after its marker has gone is seen: that is what the span is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import ddl_of, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, lineage_acts, read_commit
from hybrid.lake.spark_upsert_order import beats, key_struct, order_struct, worst
from hybrid.move.retention.plan import never_shown
from hybrid.schema.types import DataType
from hybrid.table import columns
from hybrid.table.coverage_sql import visible_realtime_sql
from hybrid.table.upsert_order import winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY, _ORDER, _LOW = "_hy_key", "_hy_order", "_hy_low"
_FRACTIONS = {DataType.FLOAT, DataType.DOUBLE}


def expired_markers(
    bench: CommitContext, spec: TableSpec, base: HalfSnapshot, realtime: HalfSnapshot | None, rows: DataFrame
) -> DataFrame | None:
    """Of `rows`, those of OFFLINE in the version `base`, the delete markers that may go; None when none is that old.

    `realtime` is the version of REALTIME whose rows are looked at, None on a table without the half.
    """
    from pyspark.sql import functions as F

    beside = realtime_rows(bench, spec, realtime) if realtime is not None else None
    before = _threshold(spec, rows, beside)
    if before is None:
        return None
    old = rows.where(quoted(columns.OP) == columns.OP_DELETE).where(_age(spec) < before)
    key, order = _key(spec), order_struct(spec).alias(_ORDER)
    others = rows.select(key, order)
    if beside is not None:
        seen = beside.where(visible_realtime_sql(never_shown(base.offline.boundary)))
        others = others.unionByName(seen.select(key, order))
    taken = list(_taken_away(base))
    if taken:
        others = others.unionByName(_read(bench, spec, Half.OFFLINE, taken).select(key, order))
    marked = old.withColumns({_KEY: key_struct(spec), _ORDER: order_struct(spec)})
    lowest = others.join(marked.select(_KEY).distinct(), _KEY, "left_semi")
    lowest = lowest.groupBy(_KEY).agg(worst(spec, F.col(_ORDER)).alias(_LOW))
    alone = marked.join(lowest, _KEY).where(~beats(spec, F.col(_ORDER), F.col(_LOW)))
    return alone.select(*(quoted(name) for name in rows.columns))


def realtime_rows(bench: CommitContext, spec: TableSpec, realtime: HalfSnapshot) -> DataFrame:
    """The rows of the files of a version of REALTIME, those that were moved too."""
    return _read(bench, spec, Half.REALTIME, _files(spec, realtime))


def have_come(
    bench: CommitContext, spec: TableSpec, base: HalfSnapshot, current: HalfSnapshot, markers: DataFrame
) -> bool:
    """Whether REALTIME has got rows of the markers' keys since `base`: one may be what a marker has to hide."""
    fresh = sorted({*_files(spec, current)} - {*_files(spec, base)})
    if not fresh:
        return False
    keys = markers.select(_key(spec))
    come = _read(bench, spec, Half.REALTIME, fresh).select(_key(spec)).join(keys, _KEY, "left_semi")
    return bool(come.limit(1).count())


def _threshold(spec: TableSpec, *halves: DataFrame | None) -> int | float | Decimal | None:
    """The comparison value below which markers are old; None on a table without rows, or without numbers."""
    from pyspark.sql import functions as F

    assert spec.upsert is not None
    highest = []
    for rows in halves:
        if rows is not None:
            age = _age(spec)
            finite = F.when(~F.isnan(age) & (F.abs(age) != float("inf")), age) if _is_fraction(spec) else age
            highest.append(rows.agg(F.max(finite)).collect()[0][0])
    found = max((one for one in highest if one is not None), default=None)
    if found is None:
        return None
    ttl = spec.upsert.deleted_keys_ttl
    if isinstance(found, int):
        return ceil(found - Decimal(str(ttl)))
    return found - Decimal(str(ttl)) if isinstance(found, Decimal) else found - ttl


def _age(spec: TableSpec) -> Column:
    """The comparison value as a number, of a TIMESTAMP its milliseconds."""
    from pyspark.sql import functions as F

    name = winning_order(spec)[0]
    field = spec.schema.find(name)
    is_instant = field is not None and field.data_type is DataType.TIMESTAMP
    return F.unix_millis(quoted(name)) if is_instant else quoted(name)


def _is_fraction(spec: TableSpec) -> bool:
    field = spec.schema.find(winning_order(spec)[0])
    return field is not None and field.data_type in _FRACTIONS


def _taken_away(base: HalfSnapshot) -> Iterator[str]:
    """Files that entries of the lineage took away, and that are there yet: a revert reads them."""
    held = {file.path for file in base.files}
    for version, _ in lineage_acts(base):
        commit = read_commit(base.path, version)
        if commit is None:  # it has left the log, and cannot be reverted
            return
        yield from (path for path in commit.removed if path not in held and Path(path).exists())


def _files(spec: TableSpec, realtime: HalfSnapshot) -> list[str]:
    others = columns.bookkeeping(spec.name)
    return [file.path for file in realtime.files if file.segment not in others]


def _read(bench: CommitContext, spec: TableSpec, half: Half, paths: Iterable[str]) -> DataFrame:
    """What decides of the rows of data files."""
    names = {*spec.primary_key, *winning_order(spec), *columns.ARRIVAL, columns.TIME}
    ddl = ddl_of((name, kind) for name, kind in physical_columns(spec, half) if name in names)
    found = list(paths)
    return bench.spark.read.schema(ddl).parquet(*found) if found else bench.spark.createDataFrame([], ddl)


def _key(spec: TableSpec) -> Column:
    return key_struct(spec).alias(_KEY)
