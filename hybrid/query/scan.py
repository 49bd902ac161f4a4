"""The SQL of a relation, which replaces a table reference in DuckDB.

OFFLINE files that the boundary shows   UNION ALL   REALTIME files and tail that it does not cover
then, on an upsert table: the winner of each key, without delete markers
      with partial upsert: the rows of each key, combined
      on a table without a key whose stream deletes: of equal rows, the number of inserts minus that of deletes
then: the user's columns in Pinot's order, and the virtual columns that are used
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.log_entries import DataFile
from hybrid.lake.parquet_paths import paths_sql
from hybrid.query.connection import identifier, quoted
from hybrid.query.types import HIDDEN_TYPES, duckdb_type
from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import WIDER, DataType
from hybrid.table.boundary import Offsets
from hybrid.table.columns import ARRIVAL, OFFSET, OP, OP_DELETE, PARTITION, SEGMENT
from hybrid.table.coverage_sql import below_sql, visible_offline_sql, visible_realtime_sql
from hybrid.table.effective import EffectiveBoundary
from hybrid.table.upsert_order import winners_first_sql


@dataclass(frozen=True)
class Scan:
    """What one reference reads. `boundary` None: the rows as they are stored; `tail` names a relation.

    `evolved`: some files may lack columns that were added to the table later, or hold columns in earlier, narrower
    types. `added` lists the columns that may be missing; None: any. `nets`: the rows may include deletes, each of which
    removes an equal row. `later` are files with rows of the tail, below the offsets `ends`.
    """

    spec: TableSpec
    half: Half | None
    offline: Sequence[DataFile]
    realtime: Sequence[DataFile]
    tail: str | None
    boundary: EffectiveBoundary | None
    virtual: Collection[str]
    evolved: bool = False
    added: frozenset[str] | None = None
    nets: bool = False
    later: Sequence[DataFile] = ()
    ends: Offsets = field(default_factory=dict)


_CAST = {DataType.TIMESTAMP, *(wider for wider_types in WIDER.values() for wider in wider_types)}
# The number of a row's file in `Scan.offline`, from 1 on; 0 for a realtime row.
FILE = "_hy_file"


def stored_sql(scan: Scan) -> str:
    """The visible rows with hidden columns and FILE; of an upsert table the winner of each key, delete markers too.

    Of a table with partial upsert, all rows that its keys combine.
    """
    nothing = f"SELECT *, 0 AS {FILE} FROM ({_nothing(scan.spec)})"
    return f"SELECT * FROM ({' UNION ALL '.join(_parts(scan, numbered=True)) or nothing}){winners_sql(scan.spec)}"


def winners_sql(spec: TableSpec, last: str = "") -> str:
    """The QUALIFY that keeps the winner of each key; empty where all rows stay. `last` decides between equal rows."""
    if not spec.picks_winners:
        return ""
    order = winners_first_sql(spec, identifier)
    return f" QUALIFY row_number() OVER (PARTITION BY {_key_sql(spec)} ORDER BY {order}{last}) = 1"


def relation_sql(scan: Scan) -> str:
    """The relation as one SELECT: the user's columns by name, then the virtual ones."""
    rows = " UNION ALL ".join(_parts(scan)) or _nothing(scan.spec)
    columns = ", ".join(identifier(name) for name in sorted(scan.spec.schema.column_names))
    virtual = "".join(f", {_virtual_sql(name)} AS {identifier(name)}" for name in sorted(scan.virtual))
    if scan.nets:
        return _net_sql(scan, rows, columns, virtual)
    if scan.spec.upsert is None:
        return f"SELECT {columns}{virtual} FROM ({rows})"
    if scan.half is Half.OFFLINE:
        return f"SELECT {columns}{virtual} FROM ({rows}) WHERE {_not_deleted()}"
    extra = "".join(f", {identifier(name)}" for name in sorted(scan.virtual))
    # Winners before every filter (R5): the window is inside, so only filters on the key can be applied before it.
    if scan.spec.folds:
        from hybrid.query.partial_upsert import folded_sql

        names = [identifier(name) for name in sorted(scan.virtual)]
        return (
            f"SELECT {columns}{extra} FROM ({folded_sql(scan.spec, f'(SELECT *{virtual} FROM ({rows}))', last=names)})"
        )
    return (
        f"SELECT {columns}{extra} FROM (SELECT *{virtual} FROM ({rows}){winners_sql(scan.spec)}) WHERE {_not_deleted()}"
    )


def _net_sql(scan: Scan, rows: str, columns: str, virtual: str) -> str:
    """Rows without an equal delete, found by a hash; and of the other rows the remainder, counted exactly.

    Filters on the user's columns may be applied before, because equal rows pass them alike.
    """
    deleted = f"SELECT hash({columns}) FROM ({rows}) WHERE {OP} = '{OP_DELETE}'"
    arrived = ", ".join(ARRIVAL)
    remaining = (
        f"{_not_deleted()} AND row_number() OVER (PARTITION BY {columns}, {OP} ORDER BY {arrived}) > "
        f"count(*) FILTER (WHERE {OP} = '{OP_DELETE}') OVER (PARTITION BY {columns})"
    )
    extra = "".join(f", {identifier(name)}" for name in sorted(scan.virtual))
    return (
        f"SELECT {columns}{virtual} FROM ({rows}) WHERE {_not_deleted()} AND hash({columns}) NOT IN ({deleted}) "
        f"UNION ALL SELECT {columns}{extra} FROM (SELECT *{virtual} FROM ({rows}) "
        f"WHERE hash({columns}) IN ({deleted}) QUALIFY {remaining})"
    )


def _parts(scan: Scan, *, numbered: bool = False) -> list[str]:
    parts = []
    boundary = scan.boundary
    if scan.offline:
        paths = ", ".join(quoted(file.path) for file in scan.offline)
        number = f", list_position([{paths}], filename)::INTEGER AS {FILE}" if numbered else ""
        shown = f" WHERE {visible_offline_sql(boundary)}" if boundary and boundary.restricts_offline else ""
        parts.append(f"SELECT {_columns(scan)}{number} FROM {_read(scan, scan.offline, numbered)}{shown}")
    visible = f" WHERE {visible_realtime_sql(boundary)}" if boundary is not None else ""
    number = f", 0 AS {FILE}" if numbered else ""
    if scan.realtime:
        parts.append(f"SELECT {_columns(scan)}{number} FROM {_read(scan, scan.realtime)}{visible}")
    if scan.later:
        brought = f"{visible} AND" if visible else " WHERE"
        parts.append(f"SELECT {_columns(scan)}{number} FROM {_read(scan, scan.later)}{brought} {below_sql(scan.ends)}")
    if scan.tail is not None:
        parts.append(f"SELECT {_columns(scan)}{number} FROM {identifier(scan.tail)}{visible}")
    return parts


def _columns(scan: Scan) -> str:
    """Every column by name and with one type, so that the parts of the union fit."""
    defaults = scan.evolved and not scan.spec.null_handling
    fields = [
        _field_sql(field, defaults and (scan.added is None or field.name in scan.added))
        for field in scan.spec.schema.fields
    ]
    return ", ".join([*fields, *HIDDEN_TYPES])


def _field_sql(field: FieldSpec, defaults: bool) -> str:
    name = identifier(field.name)
    if defaults:
        element = f"CAST({quoted(shown_default(field))} AS {duckdb_type(replace(field, single_value=True))})"
        default = element if field.single_value else f"[{element}]"
        return f"coalesce(CAST({name} AS {duckdb_type(field)}), {default}) AS {name}"
    # Files hold instants; in queries a timestamp has no zone, because all times are UTC. Old files may hold narrower
    # types.
    return f"CAST({name} AS {duckdb_type(field)}) AS {name}" if field.data_type in _CAST else name


def shown_default(field: FieldSpec) -> str:
    """The default that replaces nulls of a column added to the table later, as text; of a list, its one element."""
    default = field.default_null
    if isinstance(default, bytes):
        return "".join(f"\\x{byte:02X}" for byte in default)
    return default.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(default, datetime) else str(default)


def _read(scan: Scan, files: Sequence[DataFile], named: bool = False) -> str:
    paths = paths_sql(file.path for file in files)
    by_name = ", union_by_name = true" if scan.evolved else ""
    name = ", filename = true" if named else ""
    read = (
        f"read_parquet([{paths}], hive_partitioning = true, hive_types = {{'{SEGMENT}': VARCHAR}}, "
        f"hive_types_autocast = false{by_name}{name})"
    )
    # A column that no file has yet gets its name and type from the empty side.
    return f"({_nothing(scan.spec)} UNION ALL BY NAME SELECT * FROM {read})" if scan.evolved else read


def _nothing(spec: TableSpec) -> str:
    fields = [(identifier(field.name), duckdb_type(field)) for field in spec.schema.fields]
    columns = [*fields, *HIDDEN_TYPES.items()]
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns)
    return f"SELECT {nulls} WHERE FALSE"


def _virtual_sql(name: str) -> str:
    return {
        "$segmentName": SEGMENT,
        "$partition": PARTITION,
        "$offset": OFFSET,
        "$docId": f"CAST(row_number() OVER (PARTITION BY {SEGMENT} ORDER BY {OFFSET}) - 1 AS INTEGER)",
        "$hostName": quoted(socket.gethostname()),
    }[name]


def _key_sql(spec: TableSpec) -> str:
    return ", ".join(identifier(name) for name in spec.primary_key)


def _not_deleted() -> str:
    return f"{OP} IS DISTINCT FROM '{OP_DELETE}'"
