"""Binds a statement to the relations of its tables, by an index lookup where that finds all rows it needs.

Buffered rows are passed as parameters where the statement looks rows up: there the cache knows which it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from sqlglot import exp

from hybrid.config.table_config import TableSpec
from hybrid.query.cache.first_rows import newest_at_once
from hybrid.query.cache.read_view import ReadView
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.connection import identifier, quoted
from hybrid.query.partial_upsert import folded_sql
from hybrid.query.plan import Relation, Rewritten
from hybrid.query.tailrows import types_of
from hybrid.schema.types import DataType
from hybrid.sql.predicates import Comparison, Constant, comparisons_on
from hybrid.sql.tables import TableMention
from hybrid.table.columns import ARRIVAL, OP, OP_ROW

# Values of an IN list that are looked up by an index; with more DuckDB scans.
_LOOKED_UP_MAX = 100
_FORMS_MAX = 32
# Columns are looked up by values of their own type only, because either side may be converted otherwise.
_LOOKED_UP = {DataType.INT: int, DataType.LONG: int, DataType.STRING: str}
# Clauses that sort or join rows, so that DuckDB may not use the index for the filter.
_MORE = ("order", "joins", "laterals", "qualify", "distinct", "sample")
# The values of the buffered rows that each reference finds.
Along = Sequence[Sequence[Sequence[object]]]


class BufferNotFlushed(Exception):
    """The write buffer holds rows, and the statement may need any of them."""


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
    """One table reference: the columns it can need with their types, its lookup, and the SELECT of its relation.

    `whole` as in `Relation`.
    """

    table: str
    columns: Mapping[str, str]
    lookup: LookUp | None
    select: str
    whole: bool

    def relation(self, along: int, numbers: Iterator[int]) -> Relation:
        """The relation with so many buffered rows appended, as parameters of these numbers."""
        if self.lookup is None:
            return Relation(self.select)
        beside = (
            ", ".join(f"${next(numbers)}::{kind} AS {identifier(name)}" for name, kind in self.columns.items())
            for _ in range(along)
        )
        return Relation(" UNION ALL SELECT ".join((self.select, *beside)), self.whole)


class BoundStatement:
    """A statement bound to the relations of its tables. It is valid while they exist, whatever rows they hold.

    `rows` is how many rows of its result are its answer; None: all.
    """

    def __init__(self, rewritten: Rewritten, served: Mapping[str, ReadView], tuning: CacheTuning) -> None:
        self._rewritten, self.rows = newest_at_once(rewritten)
        self._parts = [_part(rewritten, ref, served[ref.table]) for ref in rewritten.refs]
        self._tuning = tuning
        self._sql: dict[tuple[int, ...], str] = {}

    def along(self, served: Mapping[str, ReadView], given: Callable[[Constant], Constant]) -> Along:
        """The buffered rows that each reference finds. BufferNotFlushed where it may need others, or too many.

        `given` returns the value of a constant of the template.
        """
        return [_found(part, served[part.table], given, self._tuning) for part in self._parts]

    def sql(self, along: Along) -> str:
        """The SQL for DuckDB; its first parameters are the values of the buffered rows, in their order."""
        counts = tuple(map(len, along))
        sql = self._sql.get(counts)
        if sql is None:
            if len(self._sql) >= _FORMS_MAX:
                self._sql.clear()
            numbers = count(1)
            parts = zip(self._parts, counts, strict=True)
            sql = self._sql[counts] = self._rewritten.over([part.relation(rows, numbers) for part, rows in parts])
        return sql


def _found(
    part: _Part, served: ReadView, given: Callable[[Constant], Constant], tuning: CacheTuning
) -> Sequence[Sequence[object]]:
    waiting = served.waiting
    if waiting is None:
        return ()
    if part.lookup is None:
        raise BufferNotFlushed
    where_values = {given(value) for value in part.lookup.values}
    places = [place for place, value in enumerate(waiting.values[part.lookup.column]) if value in where_values]
    if len(places) > tuning.appended_rows_max or len(places) * len(part.columns) > tuning.appended_values_max:
        raise BufferNotFlushed
    return [[waiting.values[name][place] for name in part.columns] for place in places]


def _part(rewritten: Rewritten, ref: TableMention, served: ReadView) -> _Part:
    spec = rewritten.tables[ref.table].spec
    names = _needed(rewritten, spec)
    lookup = _looked_up(ref, spec, served.indexed)
    # With further filters or sorts DuckDB would not use the index, so the rows are looked up first, by themselves. For
    # an equality alone it does, and one plan for the whole is faster.
    is_first = lookup is not None and lookup.by_index and (spec.folds or not _is_alone(ref))
    where = f" WHERE {lookup.condition}" if lookup is not None and is_first else ""
    rows = f"({folded_sql(spec, f'({_to_fold(spec, served, where)})')})" if spec.folds else f"{served.relation}{where}"
    types = types_of(spec)
    return _Part(
        ref.table,
        {name: types[name] for name in names},
        lookup,
        f"SELECT {_shown(rewritten, served, names)} FROM {rows}",
        whole=is_first,
    )


def _to_fold(spec: TableSpec, served: ReadView, where: str) -> str:
    """The stored rows of a table with partial upsert, delete markers included, filtered by `where`."""
    names = [*(identifier(field.name) for field in spec.schema.fields), *ARRIVAL]
    parts = [f"SELECT {', '.join(names)}, '{OP_ROW}' AS {OP} FROM {served.relation}{where}"]
    if served.marks is not None:
        parts.append(f"SELECT {', '.join(names)}, {OP} FROM {served.marks}{where}")
    return " UNION ALL ".join(parts)


def _looked_up(ref: TableMention, spec: TableSpec, indexed: Sequence[str]) -> LookUp | None:
    """The lookup that selects every row a reference can need, preferably by an index; None when there is none."""
    lookups = [
        LookUp(clause.column, clause.values, by_index=clause.column in indexed)
        for clause in comparisons_on(ref, spec.schema.column_names)
        if clause.op in {"=", "in"} and len(clause.values) <= _LOOKED_UP_MAX and _is_of_its_kind(clause, spec)
    ]
    return next((lookup for lookup in lookups if lookup.by_index), lookups[0] if lookups else None)


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
