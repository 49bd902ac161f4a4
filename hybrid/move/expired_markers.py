"""Delete markers that are older than deletedKeysTTL and hide nothing: compaction leaves them out, too.

A marker's age is the distance of its comparison value from the table's highest one, as in Pinot. A marker is removed
only when no older row of its key exists in any place from which it could become visible:

    the OFFLINE half                          the rows of all segments, markers too
    REALTIME                                  rows that some boundary may show, moved or not
    files that lineage commits removed        as long as they are on disk, because a revert restores them
    rows that wait for a swap                 while a backfill or an open replacement waits, no marker is removed

An older row that arrives after its marker was removed becomes visible. The TTL exists to make that unlikely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import ROUND_FLOOR, Context, Decimal
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.file_frames import FrameFile, file_rows
from hybrid.lake.layout import ddl_of, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, lineage_acts
from hybrid.lake.log_entries import read_commit
from hybrid.lake.spark_upsert_order import beats, key_struct, order_struct, worst
from hybrid.move.retention.plan import never_shown
from hybrid.schema.types import DataType
from hybrid.table import columns
from hybrid.table.coverage_sql import visible_realtime_sql
from hybrid.table.upsert_order import winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY, _ORDER, _LOW = "_hy_key", "_hy_order", "_hy_low"
# As many digits as Spark's decimals have. Rounded down: a marker is rather kept.
_DIGITS = Context(prec=38, rounding=ROUND_FLOOR)
_FRACTIONS = {DataType.FLOAT, DataType.DOUBLE}


def expired_markers(
    bench: CommitContext, spec: TableSpec, base: HalfSnapshot, realtime: HalfSnapshot | None, rows: DataFrame
) -> DataFrame | None:
    """The removable delete markers of `rows`, the rows of OFFLINE at version `base`; None when none is old enough.

    `realtime` is the version of REALTIME to search for older rows; None on a table without that half.
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
    """The rows in the files of a REALTIME version, including moved ones."""
    return _read(bench, spec, Half.REALTIME, _files(spec, realtime))


def have_come(
    bench: CommitContext, spec: TableSpec, base: HalfSnapshot, current: HalfSnapshot, markers: DataFrame
) -> bool:
    """Whether REALTIME received rows of the markers' keys since `base`: a marker may have to hide one of them."""
    fresh = sorted({*_files(spec, current)} - {*_files(spec, base)})
    if not fresh:
        return False
    keys = markers.select(_key(spec))
    arrived = _read(bench, spec, Half.REALTIME, fresh).select(_key(spec)).join(keys, _KEY, "left_semi")
    return bool(arrived.limit(1).count())


def _threshold(spec: TableSpec, *halves: DataFrame | None) -> int | float | Decimal | None:
    """The comparison value below which markers are old; None on a table without rows, or without finite values."""
    from pyspark.sql import functions as F

    assert spec.upsert is not None
    highest = []
    for rows in halves:
        if rows is not None:
            age = _age(spec)
            finite = F.when(~F.isnan(age) & (F.abs(age) != float("inf")), age) if _is_fraction(spec) else age
            highest.append(rows.agg(F.max(finite)).collect()[0][0])
    highest_value = max((value for value in highest if value is not None), default=None)
    if highest_value is None:
        return None
    return below(highest_value, spec.upsert.deleted_keys_ttl)


def below(value: int | float | Decimal, ttl: float) -> int | float | Decimal:
    """The comparison value that is `ttl` below another one, exact for whole numbers and decimals."""
    if isinstance(value, int):
        return ceil(_DIGITS.subtract(Decimal(value), Decimal(str(ttl))))
    return _DIGITS.subtract(value, Decimal(str(ttl))) if isinstance(value, Decimal) else value - ttl


def _age(spec: TableSpec) -> Column:
    """The comparison value as a number; for a TIMESTAMP its epoch milliseconds."""
    from pyspark.sql import functions as F

    name = winning_order(spec)[0]
    field = spec.schema.find(name)
    is_instant = field is not None and field.data_type is DataType.TIMESTAMP
    return F.unix_millis(quoted(name)) if is_instant else quoted(name)


def _is_fraction(spec: TableSpec) -> bool:
    field = spec.schema.find(winning_order(spec)[0])
    return field is not None and field.data_type in _FRACTIONS


def _taken_away(base: HalfSnapshot) -> Iterator[str]:
    """Files that lineage commits removed and that still exist: a revert reads them."""
    current_paths = {file.path for file in base.files}
    for version, _ in lineage_acts(base):
        commit = read_commit(base.path, version)
        if commit is None:  # it has left the log, so it cannot be reverted
            return
        yield from (path for path in commit.removed if path not in current_paths and Path(path).exists())


def _files(spec: TableSpec, realtime: HalfSnapshot) -> list[str]:
    others = columns.bookkeeping(spec.name)
    return [file.path for file in realtime.files if file.segment not in others]


def _read(bench: CommitContext, spec: TableSpec, half: Half, paths: Iterable[str]) -> DataFrame:
    """The columns of data files that decide between rows of a key."""
    names = {*spec.primary_key, *winning_order(spec), *columns.ARRIVAL, columns.TIME}
    ddl = ddl_of((name, kind) for name, kind in physical_columns(spec, half) if name in names)
    return file_rows(bench, ddl, [FrameFile(path) for path in paths])


def _key(spec: TableSpec) -> Column:
    return key_struct(spec).alias(_KEY)
