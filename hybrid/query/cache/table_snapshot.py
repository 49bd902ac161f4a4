"""An in-memory snapshot of a table's visible rows: two relations in a database of their own.

The database is not shared, because writing many rows takes seconds, in which a shared one would answer nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.query.cache.physical_layout import Texts, definitions, few_texts, fits_plain, indexed_columns
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.connection import identifier
from hybrid.query.scan import FILE, winners_sql
from hybrid.query.types import HIDDEN_TYPES
from hybrid.table.columns import OFFSET, OP, OP_DELETE, PARTITION, SEGMENT, TIME

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    Run = Callable[[str], DuckDBPyConnection]

_HIDDEN = tuple(name for name in HIDDEN_TYPES if name not in {SEGMENT, OP})


@dataclass(frozen=True)
class TableSnapshot:
    """A snapshot's relations and counts. `room` is its database, which no user's statement can name.

    `rows` and `marked` count rows and delete markers, `changed` those inserted or deleted since the build. `row_ids` is
    how many row ids DuckDB has given, those of deleted rows included. `enums` maps the text columns with few values to
    these values. `index` lists the indexed columns.
    """

    room: str
    enums: Mapping[str, frozenset[str]] = field(default_factory=dict)
    index: Sequence[str] = ()
    rows: int = 0
    marked: int = 0
    changed: int = 0
    row_ids: int = 0

    @property
    def relation(self) -> str:
        """The rows."""
        return f"{self.room}.main.live"

    @property
    def marks(self) -> str:
        """The delete markers."""
        return f"{self.room}.main.marks"

    @property
    def relations(self) -> Sequence[str]:
        """The relations that hold rows or markers."""
        return [self.relation, self.marks] if self.marked else [self.relation]

    def latest_row_id(self, tuning: CacheTuning) -> int | None:
        """The first row id of the rows inserted last; None where reading them before the others does not pay."""
        if self.changed < tuning.latest_first_changes_min:
            return None
        return max(0, self.row_ids - tuning.latest_rows)

    def insert(self, spec: TableSpec, source: str, run: Run, *, marks: bool = True) -> TableSnapshot:
        """Inserts the rows of `source` and returns the changed snapshot; `marks` False: it has no delete markers."""
        where = f" WHERE {OP} <> '{OP_DELETE}'" if marks else ""
        rows = _number_of(run(f"INSERT INTO {self.relation} SELECT {columns(spec, FILE)} FROM {source}{where}"))
        marked = 0
        if marks:
            dead = f"SELECT {columns(spec, OP, FILE)} FROM {source} WHERE {OP} = '{OP_DELETE}'"
            marked = _number_of(run(f"INSERT INTO {self.marks} {dead}"))
        return replace(self._with_change(rows, marked), row_ids=self.row_ids + rows)

    def delete(self, where: str, run: Run) -> TableSnapshot:
        """Deletes rows and markers by a condition and returns the changed snapshot."""
        rows = _number_of(run(f"DELETE FROM {self.relation} WHERE {where}"))
        marked = _number_of(run(f"DELETE FROM {self.marks} WHERE {where}")) if self.marked else 0
        return self._with_change(-rows, -marked)

    def _with_change(self, rows: int, marked: int) -> TableSnapshot:
        return replace(
            self, rows=self.rows + rows, marked=self.marked + marked, changed=self.changed + abs(rows) + abs(marked)
        )

    def select(self, spec: TableSpec, where: str = "TRUE") -> str:
        """Its rows and markers with the columns that `build_snapshot` takes."""
        return (
            f"SELECT {columns(spec)}, 'row' AS {OP}, {FILE} FROM {self.relation} WHERE {where} "
            f"UNION ALL SELECT {columns(spec, OP, FILE)} FROM {self.marks} WHERE {where}"
        )

    def winners_among(self, spec: TableSpec, staged: str) -> str:
        """A SELECT of the staged rows that win their key; of equal rows the snapshot's wins."""
        existing = self.select(spec, among(spec, staged))
        both = f"SELECT *, 0 AS _hy_fresh FROM ({existing}) UNION ALL SELECT {columns(spec, OP, FILE)}, 1 FROM {staged}"
        best = f"SELECT * FROM ({both}){winners_sql(spec, ', _hy_fresh')}"
        return f"SELECT * EXCLUDE (_hy_fresh) FROM ({best}) WHERE _hy_fresh = 1"


def columns(spec: TableSpec, *more: str) -> str:
    """The user's columns, the hidden ones that both relations have, and `more`."""
    return ", ".join([*(identifier(field.name) for field in spec.schema.fields), *_HIDDEN, *more])


def among(spec: TableSpec, source: str) -> str:
    """A condition for the rows whose key is in `source`."""
    key = f"({', '.join(identifier(name) for name in spec.primary_key)})"
    return f"{key} IN (SELECT {key} FROM {source})"


def build_snapshot(
    connection: DuckDBPyConnection,
    spec: TableSpec,
    room: str,
    source: str,
    bytes_max: int | None,
    tuning: CacheTuning,
    *,
    more: Texts | None = None,
    plain: Collection[str] = (),
) -> TableSnapshot:
    """Builds a snapshot of staged rows, newest first. Its ENUMs take `more` texts too; columns in `plain` stay text."""
    connection.execute(f"ATTACH ':memory:' AS {room} (COMPRESS)")
    try:
        enums = few_texts(connection, spec, source, more or {}, plain, tuning.enum_rows_min)
        return _fill(connection, spec, TableSnapshot(room, enums), source, bytes_max)
    except BaseException:
        connection.execute(f"DETACH {room}")
        raise


def _fill(
    connection: DuckDBPyConnection,
    spec: TableSpec,
    new: TableSnapshot,
    source: str,
    bytes_max: int | None,
) -> TableSnapshot:
    order = f"{TIME} DESC, {OFFSET} DESC" if spec.time_column else f"{PARTITION}, {OFFSET}"
    alive = f"FROM {source} WHERE {OP} <> '{OP_DELETE}'"
    rows = _number_of(connection.execute(f"SELECT count(*) {alive}"))
    typed = definitions(spec, new.enums, fits_plain(spec, rows, bytes_max))
    connection.execute(f"CREATE TABLE {new.relation} ({typed}, {FILE} BIGINT)")
    connection.execute(f"INSERT INTO {new.relation} SELECT {columns(spec, FILE)} {alive} ORDER BY {order}")
    dead = f"SELECT {columns(spec, OP, FILE)} FROM {source} WHERE {OP} = '{OP_DELETE}'"
    connection.execute(f"CREATE TABLE {new.marks} AS {dead}")
    marked = _number_of(connection.execute(f"SELECT count(*) FROM {new.marks}"))
    index = indexed_columns(connection, spec, new.relation, rows)
    for number, column in enumerate(index):
        connection.execute(f'CREATE INDEX "index {number}" ON {new.relation} ({identifier(column)})')
    # Otherwise the first insert would have to wait for the checkpoint.
    connection.execute(f"CHECKPOINT {new.room}")
    return replace(new, index=index, rows=rows, marked=marked, row_ids=rows)


def _number_of(result: DuckDBPyConnection) -> int:
    """The one number of a result: how many rows a statement touched."""
    (number,) = result.fetchone() or (0,)
    return int(number)
