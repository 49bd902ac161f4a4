"""Rows of the stream on their way into the cache.

DuckDB plans a statement anew each time it runs with parameters, which takes it three times as long as adding a few rows
does. So rows are handed over behind a view, as Arrow, and what is done with them is prepared once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.query.connection import identifier
from hybrid.query.tailrows import TailRows, arrow_schema, types_of
from hybrid.table.upsert_order import winners_first_sql, winning_order

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, Statement

    Run = Callable[[str, Sequence[object]], DuckDBPyConnection]

# The number of a row: from 0 on among those that come, below 0 among those that are there.
_PLACE = "_hy_place"
_TIMESTAMP = "TIMESTAMP"
# Statements name the boundary, and so are others after each move.
_KEPT = 8


class _View:
    """What DuckDB asks for a view's rows, each time that a statement reads it.

    It does not know the connection, which holds on to it.
    """

    def __init__(self, connection: DuckDBPyConnection, name: str, schema: pa.Schema) -> None:
        # DuckDB would take an attribute `schema` for that of the rows.
        self.name, self.columns = name, schema
        self._none = self.rows = _numbered(schema.empty_table(), 0)
        connection.register(name, self)

    def empty(self) -> None:
        """No rows."""
        self.rows = self._none

    def fill(self, rows: pa.Table, first: int = 0) -> None:
        """These rows, in place of those before, numbered from `first` on."""
        self.rows = _numbered(rows, first)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


class StreamBatch:
    """The rows that one table's writer takes in. `name` begins the names of the views. One thread's."""

    def __init__(self, connection: DuckDBPyConnection, name: str, spec: TableSpec) -> None:
        import pyarrow as pa

        self._connection, self._spec = connection, spec
        self._types = types_of(spec)
        # The columns that decide who wins.
        order = (*spec.primary_key, *winning_order(spec)) if spec.picks_winners else ()
        self._contending = list(dict.fromkeys(order))
        schema = arrow_schema(spec)
        self._come = _View(connection, f"{name} come", schema)
        self._there = _View(
            connection,
            f"{name} there",
            pa.schema([(one, _comparable_type(schema.field(one).type)) for one in self._contending]),
        )
        # The rows that come, with the types that a query sees.
        typed = (f"{identifier(column)}::{kind} AS {identifier(column)}" for column, kind in self._types.items())
        self.select = f"SELECT {', '.join(typed)}, {_PLACE} FROM {identifier(self._come.name)}"
        self._given: Mapping[str, Sequence[object]] = {}
        self._prepared: dict[str, tuple[str, Statement]] = {}
        self._numbers = count()

    @contextmanager
    def holding(self, rows: TailRows) -> Iterator[None]:
        """These rows come, inside of it."""
        self._come.fill(rows.arrow(self._come.columns))
        self._given = rows.values
        try:
            yield
        finally:
            self._come.empty()
            self._there.empty()
            self._given = {}

    def contend(self, come: str, relations: Sequence[str], run: Run) -> Sequence[object]:
        """Keeps those of `come` that win their key against what the relations have of it.

        Returns the keys of these, or none where they beat nothing that is there.

        For few rows, of a table with a key of one column: the relations' indexes find it, and they have one row of a
        key at most, all together. `come` selects from the rows that come, `run` runs a statement with parameters.
        """
        import pyarrow as pa

        there = self._look_up(relations, run)
        values = list(zip(*there, strict=True)) or [()] * len(self._contending)
        arrays = [pa.array(one, field.type) for one, field in zip(values, self._there.columns, strict=True)]
        self._there.fill(pa.table(arrays, self._there.columns), -len(there))
        # Of equal rows the one that is there stays. A window would take DuckDB three times as long.
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
        """How many rows are here."""
        return len(self._come.rows)

    def near(self, keys: Sequence[object]) -> str:
        """A condition that finds rows by the values of a key of one column, which are its parameters."""
        (name,) = self._spec.primary_key
        # The type is said, or DuckDB converts the column instead, and the index is of no use.
        return f"{identifier(name)} IN ({', '.join([f'?::{self._types[name]}'] * len(keys))})"

    def run(self, statement: str) -> DuckDBPyConnection:
        """Runs a statement that reads the rows, and has no parameters."""
        known = self._prepared.get(statement)
        if known is None:
            while len(self._prepared) >= _KEPT:
                self._deallocate(next(iter(self._prepared)))
            name = f"incoming_{next(self._numbers)}"
            self._connection.execute(f"PREPARE {name} AS {statement}")
            (execute,) = self._connection.extract_statements(f"EXECUTE {name}")
            known = self._prepared[statement] = name, execute
        return self._connection.execute(known[1])

    def forget(self) -> None:
        """Lets go of what was prepared, before the database of the relation that it names goes."""
        for statement in list(self._prepared):
            self._deallocate(statement)

    def close(self) -> None:
        """Lets go of everything."""
        self.forget()
        for view in (self._come, self._there):
            self._connection.unregister(view.name)

    def _look_up(self, relations: Sequence[str], run: Run) -> Sequence[tuple[object, ...]]:
        """What there is of the keys of these rows: the columns that decide."""
        keys = self._keys(range(self.count))
        select = f"SELECT {self._comparable()} FROM"
        found = (f"{select} {relation} WHERE {self.near(keys)}" for relation in relations)
        return run(" UNION ALL ".join(found), [*keys] * len(relations)).fetchall()

    def _keys(self, places: Iterable[int]) -> Sequence[object]:
        """The keys of some of these rows, each once."""
        given = self._given[self._spec.primary_key[0]]
        return list(dict.fromkeys(given[place] for place in places))

    def _comparable(self) -> str:
        """The columns that decide, as values that Python can hold: it knows no year beyond 9999."""
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
