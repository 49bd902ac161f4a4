"""The SELECT of a view, the same for DuckDB and Spark except for quotes and names of types.

It uses only SQL that both support: no QUALIFY, and no FILTER in windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hybrid.query import partial_upsert as fold
from hybrid.query.views.reads import ViewPart, ViewReads
from hybrid.schema.schema import FieldSpec
from hybrid.table.columns import ARRIVAL, OP, OP_DELETE
from hybrid.table.coverage_sql import below_sql, visible_offline_sql, visible_realtime_sql
from hybrid.table.upsert_order import first_wins, winners_first_sql


@dataclass(frozen=True)
class ViewDialect:
    """An engine's SQL: a quoted name, a quoted text, and the type of a column.

    `shown` is a stored column as queries show it, `listed` a list of one value, `folding` the functions of partial
    upsert.
    """

    identifier: Callable[[str], str]
    text: Callable[[str], str]
    type_of: Callable[[FieldSpec], str]
    shown: Callable[[FieldSpec], str]
    listed: Callable[[str], str]
    folding: fold.SqlDialect


@dataclass(frozen=True)
class ViewSource:
    """The source of a part's rows: `relation` in FROM, its columns, and further conditions on its rows."""

    part: ViewPart
    relation: str
    columns: frozenset[str]
    conditions: Sequence[str] = ()


def statement(reads: ViewReads, words: ViewDialect, sources: Sequence[ViewSource]) -> str:
    """The SELECT of a view, with the user's columns in the order of `select *`."""
    if not sources:
        nulls = ",\n  ".join(_column(reads, words, field, is_there=False) for field in reads.fields)
        return f"SELECT\n  {nulls}\nWHERE FALSE"
    names = [words.identifier(field.name) for field in reads.fields]
    shown = ",\n  ".join(names)
    stored = "\n  UNION ALL\n".join(_part(reads, words, source) for source in sources)
    if reads.is_append:
        return f"SELECT\n  {shown}\nFROM (\n{stored}\n) AS stored"
    if reads.spec.folds:
        rows = fold.folded_sql(reads.spec, f"(\n{stored}\n)", words.folding)
        return f"SELECT\n  {shown}\nFROM (\n{rows}\n) AS folded -- the rows of each key, in order of arrival"
    not_deleted = f"{OP} IS DISTINCT FROM '{OP_DELETE}'"
    if reads.scan.nets:
        counted = (
            f"row_number() OVER (PARTITION BY {', '.join(names)}, {OP} ORDER BY {', '.join(ARRIVAL)}) AS _hy_place,\n"
            f"    sum(CASE WHEN {OP} = '{OP_DELETE}' THEN 1 ELSE 0 END) OVER (PARTITION BY {', '.join(names)})"
            " AS _hy_deletes"
        )
        condition = f"{not_deleted} AND _hy_place > _hy_deletes -- a delete takes one equal row away"
    else:
        key = ", ".join(words.identifier(name) for name in reads.spec.primary_key)
        order, which = winners_first_sql(reads.spec, words.identifier), "first" if first_wins(reads.spec) else "newest"
        counted = f"row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS _hy_place"
        condition = f"_hy_place = 1 AND {not_deleted} -- the {which} row of each key, unless it is a delete marker"
    ranked = f"SELECT *,\n    {counted}\n  FROM (\n{stored}\n  ) AS stored"
    return f"SELECT\n  {shown}\nFROM (\n  {ranked}\n) AS ranked\nWHERE {condition}"


def _part(reads: ViewReads, words: ViewDialect, source: ViewSource) -> str:
    columns = [_column(reads, words, field, is_there=field.name in source.columns) for field in reads.fields]
    where = [*source.conditions, *_visible(reads, source.part)]
    shown = f"\n  WHERE {' AND '.join(where)}" if where else ""
    listed = ",\n    ".join([*columns, *reads.hidden])
    return f"  SELECT\n    {listed}\n  FROM {source.relation}{shown}"


def _visible(reads: ViewReads, part: ViewPart) -> list[str]:
    """The conditions of the boundary on a part's rows, and of the end of the tail."""
    boundary, conditions = reads.scan.boundary, list[str]()
    if boundary is not None and part.name == "OFFLINE" and boundary.restricts_offline:
        conditions.append(visible_offline_sql(boundary))
    if boundary is not None and part.name != "OFFLINE":
        conditions.append(visible_realtime_sql(boundary))
    return [*conditions, *([below_sql(reads.scan.ends)] if part.name == "LATER" else [])]


def _column(reads: ViewReads, words: ViewDialect, field: FieldSpec, *, is_there: bool) -> str:
    name, kind, default = words.identifier(field.name), words.type_of(field), reads.default_of(field)
    value = words.shown(field) if is_there else f"CAST(NULL AS {kind})"
    if default is not None:
        element = f"CAST({words.text(default)} AS {words.type_of(replace(field, single_value=True))})"
        value = f"coalesce({value}, {element if field.single_value else words.listed(element)})"
    return name if value == name else f"{value} AS {name}"
