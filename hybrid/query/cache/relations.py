"""Binds a statement to the relations of its tables, by an index lookup where that finds all rows it needs.

Buffered rows are passed as parameters where the statement looks rows up: there the cache knows which it needs. On a
table with a key that picks winners or combines rows, that is a lookup of keys. The stored rows of these keys and the
buffered ones are resolved together, so a buffered row may lose, or be a delete marker. For one key the stored row is
read first, and Python decides: that takes half as long as one statement that resolves both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from sqlglot import exp

from hybrid.config.table_config import TableSpec
from hybrid.query.cache.first_rows import has_row_ids, latest_first, newest_at_once, newest_rows
from hybrid.query.cache.read_view import ReadView
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.connection import identifier, quoted
from hybrid.query.partial_upsert import folded_sql
from hybrid.query.rewrite import Relation, Rewritten
from hybrid.query.scan import winners_sql
from hybrid.query.tailrows import TailRows, types_of
from hybrid.schema.types import DataType
from hybrid.sql.predicates import Comparison, Constant, comparisons_on
from hybrid.sql.tables import TableMention
from hybrid.table.columns import ARRIVAL, OP, OP_DELETE, OP_ROW
from hybrid.table.upsert_order import first_wins, winners_first_sql, winning_order

# Values of an IN list that are looked up by an index; with more DuckDB scans.
_LOOKED_UP_MAX = 100
_FORMS_MAX = 32
# Columns are looked up by values of their own type only, because either side may be converted otherwise.
_LOOKED_UP = {DataType.INT: int, DataType.LONG: int, DataType.STRING: str}
# Clauses that sort or join rows, so that DuckDB may not use the index for the filter.
_MORE = ("order", "joins", "laterals", "qualify", "distinct", "sample")
# The place of buffered rows in a relation's SELECT.
_BUFFERED = "\0buffered\0"
# Types whose values Python orders as DuckDB does: floats are not among them, because of NaN.
_ORDERED = frozenset({int, str})
# Runs a SELECT with parameters, at the moment of the statement.
Select = Callable[[str, Sequence[object]], Sequence[tuple[object, ...]]]
# Of a relation: how many buffered rows it has, whether these are alone, whether the latest rows are read first.
_Form = tuple[int, bool, bool]


class BufferNotFlushed(Exception):
    """The write buffer holds rows, and the statement may need any of them."""


class Found(NamedTuple):
    """The buffered rows that a reference finds, by their values. `alone`: no stored row is visible beside them.

    `latest_row_id`: the stored rows from this row id on are read before the others; None: in the order they lie in.
    """

    rows: Sequence[Sequence[object]] = ()
    alone: bool = False
    latest_row_id: int | None = None

    @property
    def form(self) -> _Form:
        """The form of its relation."""
        return len(self.rows), self.alone, self.latest_row_id is not None

    @property
    def parameters(self) -> Iterator[object]:
        """The values of its relation's parameters, in their order."""
        if self.latest_row_id is not None:
            yield self.latest_row_id
        for row in self.rows:
            yield from row


class LookUp(NamedTuple):
    """A condition that selects every row a reference can need: a column has one of `values`.

    `by_index`: the column has an index.
    """

    column: str
    values: tuple[Constant, ...]
    by_index: bool

    @property
    def condition(self) -> str:
        """The condition as SQL that DuckDB answers by the index."""
        values = (quoted(value) if isinstance(value, str) else str(value) for value in self.values)
        return f"{identifier(self.column)} IN ({', '.join(values)})"


@dataclass(frozen=True)
class _Part:
    """One table reference: its relation while no buffered row is found, and how such rows are found and added.

    `lookup` selects buffered rows; None: any may be needed. `columns` are the columns of one, with their types. They
    follow `head` as further SELECTs, and `tail` follows them. `whole` as in `Relation`, with buffered rows. `needed`
    are the columns of a buffered row that is alone. Then `rivals` is not None: SELECTs of what decides between it and
    the stored row of its key, without and with delete markers. `asks_newest`: the statement asks for the newest rows,
    and `head` is a SELECT of all stored ones.
    """

    table: str
    stored: Relation
    lookup: LookUp | None
    columns: Mapping[str, str]
    head: str
    tail: str
    whole: bool
    needed: Mapping[str, str]
    rivals: tuple[str, str] | None = None
    asks_newest: bool = False

    def relation(self, form: _Form, numbers: Iterator[int]) -> Relation:
        """The relation in this form, with parameters of these numbers."""
        along, alone, is_latest_first = form
        if along == 0 and not alone and not is_latest_first:
            return self.stored
        if along == 0 and alone:
            nothing = ", ".join(f"NULL::{kind} AS {identifier(name)}" for name, kind in self.needed.items())
            return Relation(f"SELECT {nothing} WHERE FALSE")
        head = latest_first(self.head, next(numbers)) if is_latest_first else self.head
        columns = self.needed if alone else self.columns
        rows = [
            ", ".join(f"${next(numbers)}::{kind} AS {identifier(name)}" for name, kind in columns.items())
            for _ in range(along)
        ]
        if alone:
            return Relation(" UNION ALL ".join(f"SELECT {row}" for row in rows))
        return Relation("".join((head, *(f" UNION ALL SELECT {row}" for row in rows), self.tail)), self.whole)


class BoundStatement:
    """A statement bound to the relations of its tables. It is valid while they exist, whatever rows they hold.

    `rows` is how many rows of its result are its answer; None: all.
    """

    def __init__(self, rewritten: Rewritten, served: Mapping[str, ReadView], tuning: CacheTuning) -> None:
        self._rewritten, self.rows = newest_at_once(rewritten)
        asks_newest = newest_rows(rewritten) is not None
        self._parts = [_part(rewritten, ref, served[ref.table], asks_newest) for ref in rewritten.refs]
        self._tuning = tuning
        self._sql: dict[tuple[_Form, ...], str] = {}

    def along(
        self, served: Mapping[str, ReadView], given: Callable[[Constant], Constant], select: Select
    ) -> Sequence[Found]:
        """What each reference finds. BufferNotFlushed where it may need other buffered rows, or too many.

        `given` returns the value of a constant of the template. `select` reads what the statement will read.
        """
        return [_found(part, served[part.table], given, select, self._tuning) for part in self._parts]

    def sql(self, along: Sequence[Found]) -> str:
        """The SQL for DuckDB; its first parameters are those of `along`, in their order."""
        forms = tuple(found.form for found in along)
        sql = self._sql.get(forms)
        if sql is None:
            if len(self._sql) >= _FORMS_MAX:
                self._sql.clear()
            numbers = count(1)
            parts = zip(self._parts, forms, strict=True)
            sql = self._sql[forms] = self._rewritten.over([part.relation(form, numbers) for part, form in parts])
        return sql


def _found(
    part: _Part, served: ReadView, given: Callable[[Constant], Constant], select: Select, tuning: CacheTuning
) -> Found:
    found = _buffered(part, served, given, select, tuning)
    return found._replace(latest_row_id=served.latest_row_id) if part.asks_newest else found


def _buffered(
    part: _Part, served: ReadView, given: Callable[[Constant], Constant], select: Select, tuning: CacheTuning
) -> Found:
    waiting = served.waiting
    if waiting is None:
        return Found()
    if part.lookup is None:
        raise BufferNotFlushed
    where_values = {given(value) for value in part.lookup.values}
    places = [place for place, value in enumerate(waiting.values[part.lookup.column]) if value in where_values]
    if len(places) > 1 and waiting.spec.picks_winners:
        places = _without_beaten(waiting, places)
    if len(places) == 1 and part.rivals is not None:
        is_beaten = _is_beaten(waiting, places[0], part.rivals[served.has_marks], select)
        if is_beaten is not None:
            is_hidden = is_beaten or waiting.values[OP][places[0]] == OP_DELETE
            return Found(() if is_hidden else _values(waiting, places, part.needed), alone=not is_beaten)
    if len(places) > tuning.appended_rows_max or len(places) * len(part.columns) > tuning.appended_values_max:
        raise BufferNotFlushed
    return Found(_values(waiting, places, part.columns))


def _values(rows: TailRows, places: Iterable[int], columns: Iterable[str]) -> Sequence[Sequence[object]]:
    return [[rows.values[name][place] for name in columns] for place in places]


def _is_beaten(rows: TailRows, place: int, rivals: str, select: Select) -> bool | None:
    """Whether the stored row of its key beats a buffered row; None where DuckDB has to compare them."""
    spec = rows.spec
    mine = tuple(rows.values[name][place] for name in winning_order(spec))
    for stored in select(rivals, [rows.values[spec.primary_key[0]][place]]):
        if any(type(value) not in _ORDERED for value in (*mine, *stored)):
            return None
        if stored <= mine if first_wins(spec) else stored >= mine:
            return True
    return False


def _without_beaten(rows: TailRows, places: Sequence[int]) -> list[int]:
    """These rows without those that another one of them beats, where Python orders values as DuckDB does."""
    values, spec = rows.values, rows.spec
    order = [values[name] for name in winning_order(spec)]
    if any(type(order[0][place]) not in _ORDERED for place in places):
        return list(places)
    keys = [values[name] for name in spec.primary_key]
    best: dict[tuple[object, ...], int] = {}
    for place in sorted(places, key=lambda at: tuple(column[at] for column in order), reverse=first_wins(spec)):
        best[tuple(column[place] for column in keys)] = place
    return sorted(best.values())


def _part(rewritten: Rewritten, ref: TableMention, served: ReadView, asks_newest: bool) -> _Part:
    spec = rewritten.tables[ref.table].spec
    names, types = _needed(rewritten, spec), types_of(spec)
    lookups = _lookups(ref, spec, served.indexed)
    lookup = next((lookup for lookup in lookups if lookup.by_index), lookups[0] if lookups else None)
    # With further filters or sorts DuckDB would not use the index, so the rows are looked up first, by themselves. For
    # an equality alone it does, and one plan for the whole is faster.
    is_first = lookup is not None and lookup.by_index and (spec.folds or not _is_alone(ref))
    where = f" WHERE {lookup.condition}" if lookup is not None and is_first else ""
    shown = f"SELECT {_shown(rewritten, served, names)} FROM"
    if spec.folds:
        select = f"{shown} ({folded_sql(spec, f'({_stored(served, _to_fold(spec), where)})')})"
    else:
        select = f"{shown} {served.relation}{where}"
    plain, needed = Relation(select, is_first), {name: types[name] for name in names}
    asks_newest = asks_newest and not (spec.folds or is_first) and has_row_ids(spec)
    if not spec.folds and not spec.picks_winners:
        return _Part(ref.table, plain, lookup, needed, select, "", is_first, needed, asks_newest=asks_newest)
    # Rows are resolved by their key before any other filter.
    by_key = next((lookup for lookup in lookups if lookup.column in spec.primary_key), None)
    if by_key is None:
        return _Part(ref.table, plain, None, {}, select, "", is_first, needed, asks_newest=asks_newest)
    columns = _to_fold(spec) if spec.folds else list(dict.fromkeys((*names, *spec.primary_key, *winning_order(spec))))
    stored = f"({_stored(served, columns, f' WHERE {by_key.condition}')}{_BUFFERED})"
    resolved = folded_sql(spec, stored) if spec.folds else _winners(spec, by_key, stored)
    head, tail = f"{shown} ({resolved})".split(_BUFFERED)
    buffered = {name: types[name] for name in (*columns, OP)}
    is_one = spec.picks_winners and len(spec.primary_key) == len(by_key.values) == 1
    return _Part(
        ref.table, plain, by_key, buffered, head, tail, True, needed, _rivals(spec, served, types) if is_one else None
    )


def _rivals(spec: TableSpec, served: ReadView, types: Mapping[str, str]) -> tuple[str, str]:
    """SELECTs of what decides between rows of one key, without and with delete markers."""
    (key,) = spec.primary_key
    # Without the cast DuckDB converts the column instead, and does not use the index.
    where = f"WHERE {identifier(key)} IN ($1::{types[key]})"
    select = f"SELECT {', '.join(map(identifier, winning_order(spec)))} FROM"
    rows = f"{select} {served.relation} {where}"
    return rows, f"{rows} UNION ALL {select} {served.marks} {where}"


def _winners(spec: TableSpec, by_key: LookUp, stored: str) -> str:
    """The rows of `stored` that win their key, without delete markers."""
    if len(by_key.values) == 1 and len(spec.primary_key) == 1:  # planning a window takes DuckDB longer
        best = f"SELECT * FROM {stored} ORDER BY {winners_first_sql(spec, identifier)} LIMIT 1"
    else:
        best = f"SELECT * FROM {stored}{winners_sql(spec)}"
    return f"SELECT * FROM ({best}) WHERE {OP} <> '{OP_DELETE}'"


def _to_fold(spec: TableSpec) -> Sequence[str]:
    """The columns that partial upsert combines or orders by."""
    return [*(field.name for field in spec.schema.fields), *ARRIVAL]


def _stored(served: ReadView, columns: Sequence[str], where: str) -> str:
    """These columns and the operation of the stored rows, delete markers included, filtered by `where`."""
    names = ", ".join(map(identifier, columns))
    parts = [f"SELECT {names}, '{OP_ROW}' AS {OP} FROM {served.relation}{where}"]
    if served.marks is not None:
        parts.append(f"SELECT {names}, {OP} FROM {served.marks}{where}")
    return " UNION ALL ".join(parts)


def _lookups(ref: TableMention, spec: TableSpec, indexed: Sequence[str]) -> Sequence[LookUp]:
    """The lookups each of which selects every row that a reference can need."""
    return [
        LookUp(clause.column, clause.values, by_index=clause.column in indexed)
        for clause in comparisons_on(ref, spec.schema.column_names)
        if clause.op in {"=", "in"} and len(clause.values) <= _LOOKED_UP_MAX and _is_of_its_kind(clause, spec)
    ]


def _is_of_its_kind(comparison: Comparison, spec: TableSpec) -> bool:
    field = spec.schema.find(comparison.column)
    kind = _LOOKED_UP.get(field.data_type) if field is not None and field.single_value else None
    return kind is not None and all(type(value) is kind for value in comparison.values)


def _is_alone(ref: TableMention) -> bool:
    """Whether an equality of one column is the only filter of the reference's SELECT, which neither sorts nor joins."""
    select = ref.node.find_ancestor(exp.Select)
    if select is None or any(select.args.get(clause) for clause in _MORE):
        return False
    where = select.args.get("where")
    return where is not None and isinstance(where.this.unnest(), exp.EQ)


def _needed(rewritten: Rewritten, spec: TableSpec) -> Sequence[str]:
    """The columns that the statement can need: planning takes longer with each."""
    named = rewritten.needed_columns
    needed = [name for name in sorted(spec.schema.column_names) if named is None or name.lower() in named]
    return needed or spec.schema.column_names[:1]


def _shown(rewritten: Rewritten, served: ReadView, names: Sequence[str]) -> str:
    """The select list; ENUM columns are cast to text unless the statement only shows, groups, counts or sorts them."""
    texts = {name for name in served.enums if name.lower() not in rewritten.shown}
    return ", ".join(
        f"{identifier(name)}::VARCHAR AS {identifier(name)}" if name in texts else identifier(name) for name in names
    )
