"""A batch of stream rows, passed to DuckDB as Arrow behind a view.

DuckDB plans a statement with parameters at each run, which takes three times as long as inserting a few rows. So rows
are read through a view, and the statements over it are prepared once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.query.cache.table_snapshot import among
from hybrid.query.connection import identifier
from hybrid.query.tailrows import TailRows, arrow_schema, types_of
from hybrid.table.upsert_order import winners_first_sql, winning_order

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, Statement

    Run = Callable[[str, Sequence[object]], DuckDBPyConnection]

# The number of a row: from 0 on for incoming rows, below 0 for existing ones.
_PLACE = "_hy_place"
_TIMESTAMP = "TIMESTAMP"
# How many prepared statements are kept: they contain the boundary, and so change with each move.
_KEPT = 12


class _View:
    """The Arrow source of a view: DuckDB asks it for the rows whenever a statement reads the view.

    It does not refer to the connection, which refers to it.
    """

    def __init__(self, connection: DuckDBPyConnection, name: str, schema: pa.Schema) -> None:
        # Not named `schema`: DuckDB would take such an attribute for the schema of the rows.
        self.name, self.columns = name, schema
        self._none = self.rows = _numbered(schema.empty_table(), 0)
        connection.register(name, self)

    def empty(self) -> None:
        """Drops the rows."""
        self.rows = self._none

    def fill(self, rows: pa.Table, first: int = 0) -> None:
        """Replaces the rows by these, numbered from `first` on."""
        self.rows = _numbered(rows, first)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


class StreamBatch:
    """The rows that one table's writer is taking in. `name` prefixes the names of the views. For one thread only."""

    def __init__(self, connection: DuckDBPyConnection, name: str, spec: TableSpec) -> None:
        import pyarrow as pa

        self._connection, self._spec = connection, spec
        self._types = types_of(spec)
        # The columns that decide which row of a key wins.
        order = (*spec.primary_key, *winning_order(spec)) if spec.picks_winners else ()
        self._contending = list(dict.fromkeys(order))
        schema = arrow_schema(spec)
        self._come = _View(connection, f"{name} come", schema)
        self._there = _View(
            connection,
            f"{name} there",
            pa.schema([(column, _comparable_type(schema.field(column).type)) for column in self._contending]),
        )
        # The incoming rows, with the types that a query sees.
        typed = (f"{identifier(column)}::{kind} AS {identifier(column)}" for column, kind in self._types.items())
        self.select = f"SELECT {', '.join(typed)}, {_PLACE} FROM {identifier(self._come.name)}"
        self._given: Mapping[str, Sequence[object]] = {}
        self._prepared: dict[str, tuple[str, Statement]] = {}
        self._numbers = count()

    @contextmanager
    def holding(self, rows: TailRows) -> Iterator[None]:
        """Makes these the rows of the batch, inside of the block."""
        self._come.fill(rows.arrow(self._come.columns))
        self._given = rows.values
        try:
            yield
        finally:
            self._come.empty()
            self._there.empty()
            self._given = {}

    def contend_by_scan(self, come: str, relations: Sequence[str]) -> None:
        """The same as `contend` by a scan of the relations' keys, which takes no longer for many rows than for few.

        The key may have several columns. `among` selects the rows that the winners replace.
        """
        import pyarrow as pa

        key = ", ".join(map(identifier, self._spec.primary_key))
        stored = (
            f"SELECT {self._comparable()}, -1 AS {_PLACE} FROM {relation} WHERE {among(self._spec, come)}"
            for relation in relations
        )
        both = " UNION ALL ".join((*stored, f"SELECT {self._comparable()}, {_PLACE} FROM {come}"))
        best = f"first({_PLACE} ORDER BY {winners_first_sql(self._spec, identifier)}, {_PLACE})"
        winners = self.run(f"SELECT {best} FROM ({both}) GROUP BY {key}").fetchall()
        won = sorted(place for (place,) in winners if place >= 0)
        if len(won) < len(self._come.rows):
            self._come.rows = self._come.rows.take(pa.array(won, pa.int64()))

    def contend(self, come: str, relations: Sequence[str], run: Run) -> Sequence[object]:
        """Resolves upserts: keeps the incoming rows that win their key against the existing ones.

        Returns the keys of the winners, or nothing where they beat no existing row.

        For few rows, of a table with a key of one column: the relations' indexes find it, and together they hold at
        most one row per key. `come` selects incoming rows, `run` runs a statement with parameters.
        """
        import pyarrow as pa

        there = self._look_up(relations, run)
        values = list(zip(*there, strict=True)) or [()] * len(self._contending)
        arrays = [pa.array(column, field.type) for column, field in zip(values, self._there.columns, strict=True)]
        self._there.fill(pa.table(arrays, self._there.columns), -len(there))
        # Of equal rows the existing one stays. A window function would take DuckDB three times as long.
        best = f"first({_PLACE} ORDER BY {winners_first_sql(self._spec, identifier)}, {_PLACE})"
        both = f"FROM {identifier(self._there.name)} UNION ALL SELECT {self._comparable()}, {_PLACE} FROM {come}"
        key = identifier(self._spec.primary_key[0])
        winners = {place for (place,) in self.run(f"SELECT {best} FROM ({both}) GROUP BY {key}").fetchall()}
        won = sorted(place for place in winners if place >= 0)
        if len(won) < len(self._come.rows):
            self._come.rows = self._come.rows.take(pa.array(won, pa.int64()))
        is_any_beaten = len(winners) - len(won) < len(there)
        return self._keys(won) if is_any_beaten else ()

    @property
    def count(self) -> int:
        """The number of rows in the batch."""
        return len(self._come.rows)

    def near(self, keys: Sequence[object]) -> str:
        """A condition for the rows with these keys of one column; the keys are its parameters."""
        (name,) = self._spec.primary_key
        # Without the cast DuckDB converts the column instead, and does not use the index.
        return f"{identifier(name)} IN ({', '.join([f'?::{self._types[name]}'] * len(keys))})"

    def run(self, statement: str) -> DuckDBPyConnection:
        """Runs a statement over the batch, without parameters. It is prepared at the first run."""
        prepared = self._prepared.get(statement)
        if prepared is None:
            while len(self._prepared) >= _KEPT:
                self._deallocate(next(iter(self._prepared)))
            name = f"incoming_{next(self._numbers)}"
            self._connection.execute(f"PREPARE {name} AS {statement}")
            (execute,) = self._connection.extract_statements(f"EXECUTE {name}")
            prepared = self._prepared[statement] = name, execute
        return self._connection.execute(prepared[1])

    def forget(self) -> None:
        """Drops the prepared statements. Call it before the database of the relations that they name is detached."""
        for statement in list(self._prepared):
            self._deallocate(statement)

    def close(self) -> None:
        """Drops the prepared statements and the views."""
        self.forget()
        for view in (self._come, self._there):
            self._connection.unregister(view.name)

    def _look_up(self, relations: Sequence[str], run: Run) -> Sequence[tuple[object, ...]]:
        """The existing rows with the keys of the batch, in the columns that decide."""
        keys = self._keys(range(self.count))
        select = f"SELECT {self._comparable()} FROM"
        selects = (f"{select} {relation} WHERE {self.near(keys)}" for relation in relations)
        return run(" UNION ALL ".join(selects), [*keys] * len(relations)).fetchall()

    def _keys(self, places: Iterable[int]) -> Sequence[object]:
        """The distinct keys of the rows at these places."""
        values = self._given[self._spec.primary_key[0]]
        return list(dict.fromkeys(values[place] for place in places))

    def _comparable(self) -> str:
        """The columns that decide, times as numbers: Python has no year beyond 9999."""
        names = ((identifier(name), self._types[name]) for name in self._contending)
        return ", ".join(
            f"epoch_us({name}) AS {name}" if kind == _TIMESTAMP else f"{name}::{kind} AS {name}" for name, kind in names
        )

    def _deallocate(self, statement: str) -> None:
        name, _ = self._prepared.pop(statement)
        self._connection.execute(f"DEALLOCATE {name}")


def _numbered(rows: pa.Table, first: int) -> pa.Table:
    import pyarrow as pa

    return rows.append_column(_PLACE, pa.array(range(first, first + len(rows)), pa.int64()))


def _comparable_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return pa.int64() if pa.types.is_timestamp(kind) else kind
