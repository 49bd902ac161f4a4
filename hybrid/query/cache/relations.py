"""What a statement reads from the relations of its tables: rows that an index finds by themselves, where that is all.

Rows that wait to be laid it takes along as parameters where it looks rows up: there the cache knows which they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from sqlglot import exp

from hybrid.config.table_config import TableSpec
from hybrid.query.cache.read_view import ReadView
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
# Waiting rows that one reference takes along, and their values: with more to plan it takes longer than laying them.
_ALONG_MAX, _VALUES_MAX = 8, 200
_FORMS_MAX = 32
# Columns are looked up by values of their own kind only: others are converted, one way or the other.
_LOOKED_UP = {DataType.INT: int, DataType.LONG: int, DataType.STRING: str}
# What sorts or joins rows, so that DuckDB may ask for some of them otherwise than by the index.
_MORE = ("order", "joins", "laterals", "qualify", "distinct", "sample")
# The values of rows, by reference: those that wait and that it finds.
Along = Sequence[Sequence[Sequence[object]]]


class BufferNotFlushed(Exception):
    """Rows wait to be laid, and the statement may need any of them."""


class LookUp(NamedTuple):
    """The only rows a reference can need: those with one of the values of a column.

    `by_index`: the column has an index.
    """

    column: str
    values: tuple[Constant, ...]
    by_index: bool

    @property
    def condition(self) -> str:
        """What finds them by the index."""
        values = (quoted(value) if isinstance(value, str) else str(value) for value in self.values)
        return f"{identifier(self.column)} IN ({', '.join(values)})"


@dataclass(frozen=True)
class _Part:
    """One reference: its table, the columns it can need, what it looks up, and the SELECT of its relation's rows.

    `whole`: as of a `Relation`.
    """

    table: str
    columns: Mapping[str, str]
    lookup: LookUp | None
    select: str
    whole: bool

    def relation(self, along: int, numbers: Iterator[int]) -> Relation:
        """With so many rows beside, as parameters of these numbers."""
        if self.lookup is None:
            return Relation(self.select)
        beside = (
            ", ".join(f"${next(numbers)}::{kind} AS {identifier(name)}" for name, kind in self.columns.items())
            for _ in range(along)
        )
        return Relation(" UNION ALL SELECT ".join((self.select, *beside)), self.whole)


class BoundStatement:
    """A statement over the relations of its tables, as these are laid: which rows come and go is not known to it."""

    def __init__(self, rewritten: Rewritten, served: Mapping[str, ReadView]) -> None:
        self._rewritten = rewritten
        self._parts = [_part(rewritten, ref, served[ref.table]) for ref in rewritten.refs]
        self._sql: dict[tuple[int, ...], str] = {}

    def along(self, served: Mapping[str, ReadView], given: Callable[[Constant], Constant]) -> Along:
        """Of the rows that wait those that each reference finds. Unlaid where it may need others, or too many.

        `given` tells what a constant of the statement stands for.
        """
        return [_found(part, served[part.table], given) for part in self._parts]

    def sql(self, along: Along) -> str:
        """What DuckDB runs; the values of the rows taken along are its first parameters, in their order."""
        counts = tuple(map(len, along))
        known = self._sql.get(counts)
        if known is None:
            if len(self._sql) >= _FORMS_MAX:
                self._sql.clear()
            numbers = count(1)
            parts = zip(self._parts, counts, strict=True)
            known = self._sql[counts] = self._rewritten.over([part.relation(rows, numbers) for part, rows in parts])
        return known


def _found(part: _Part, served: ReadView, given: Callable[[Constant], Constant]) -> Sequence[Sequence[object]]:
    waiting = served.waiting
    if waiting is None:
        return ()
    if part.lookup is None:
        raise BufferNotFlushed
    wanted = {given(value) for value in part.lookup.values}
    places = [place for place, value in enumerate(waiting.values[part.lookup.column]) if value in wanted]
    if len(places) > _ALONG_MAX or len(places) * len(part.columns) > _VALUES_MAX:
        raise BufferNotFlushed
    return [[waiting.values[name][place] for name in part.columns] for place in places]


def _part(rewritten: Rewritten, ref: TableMention, served: ReadView) -> _Part:
    spec = rewritten.tables[ref.table].spec
    names = _needed(rewritten, spec)
    lookup = _looked_up(ref, spec, served.indexed)
    # Where more filters or sorts the rows DuckDB would not use the index: they are found by themselves first then. One
    # value alone leads it there, and all is planned at once.
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
    """The rows of a table that folds, those of a few keys by `where`, delete markers among them."""
    names = [*(identifier(field.name) for field in spec.schema.fields), *ARRIVAL]
    parts = [f"SELECT {', '.join(names)}, '{OP_ROW}' AS {OP} FROM {served.relation}{where}"]
    if served.marks is not None:
        parts.append(f"SELECT {', '.join(names)}, {OP} FROM {served.marks}{where}")
    return " UNION ALL ".join(parts)


def _looked_up(ref: TableMention, spec: TableSpec, indexed: Sequence[str]) -> LookUp | None:
    """What finds the only rows a statement can need, by an index if it can be; None when nothing does."""
    found = [
        LookUp(one.column, one.values, by_index=one.column in indexed)
        for one in comparisons_on(ref, spec.schema.column_names)
        if one.op in {"=", "in"} and len(one.values) <= _LOOKED_UP_MAX and _is_of_its_kind(one, spec)
    ]
    return next((one for one in found if one.by_index), found[0] if found else None)


def _is_of_its_kind(comparison: Comparison, spec: TableSpec) -> bool:
    field = spec.schema.find(comparison.column)
    kind = _LOOKED_UP.get(field.data_type) if field is not None and field.single_value else None
    return kind is not None and all(type(value) is kind for value in comparison.values)


def _is_alone(ref: TableMention) -> bool:
    """Whether one value of a column is all that its SELECT asks of the reference's rows."""
    select = ref.node.find_ancestor(exp.Select)
    if select is None or any(select.args.get(one) for one in _MORE):
        return False
    where = select.args.get("where")
    return where is not None and isinstance(where.this.unnest(), exp.EQ)


def _needed(rewritten: Rewritten, spec: TableSpec) -> Sequence[str]:
    """The columns it can need: planning takes longer with each."""
    named = rewritten.needed_columns
    needed = [name for name in sorted(spec.schema.column_names) if named is None or name.lower() in named]
    return needed or spec.schema.column_names[:1]


def _shown(rewritten: Rewritten, served: ReadView, names: Sequence[str]) -> str:
    """The columns; those that lie as ENUM become text where more is done with them than an ENUM does alike."""
    texts = {name for name in served.enums if name.lower() not in rewritten.shown}
    return ", ".join(
        f"{identifier(name)}::VARCHAR AS {identifier(name)}" if name in texts else identifier(name) for name in names
    )
