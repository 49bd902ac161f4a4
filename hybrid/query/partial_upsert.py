"""The SQL of partial upsert: combines the rows of each key, also where a table has several comparison columns.

    order      of arrival: by Kafka timestamp, but never against the offsets of a partition, nor against its resets
    accepted   a row whose comparison value is not below an earlier one of its key in the same column
    reset      the last accepted delete marker: earlier rows do not count; as the last row it hides its key
    folded     the accepted rows since, combined column by column with the column's strategy; the key stays

Filters on columns other than the key must be applied outside. The SQL is the same for DuckDB and Spark, but for the
functions in `SqlDialect`. The same rows give the same answer in any order and from any place; tests/folding.py combines
them one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hybrid.config.table_config import Strategy, TableSpec
from hybrid.query.connection import identifier
from hybrid.query.types import duckdb_type
from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.columns import ARRIVAL, CONNECTOR, EPOCH, OFFSET, OP, OP_DELETE, PARTITION, TIMESTAMP, TOPIC
from hybrid.table.replays import REPLAY

_ARRIVED, _PLACE, _ACCEPTED, _RESET = "_hy_arrived", "_hy_place", "_hy_accepted", "_hy_reset"
# Identifies a stream of rows in offset order. A reset begins a later epoch of the same stream. Each epoch of replays is
# a stream of its own, whose offsets may lie below those of an earlier one.
_STREAM = f"{CONNECTOR}, {TOPIC}, {PARTITION}, CASE WHEN {CONNECTOR} LIKE '{REPLAY}%' THEN {EPOCH} END"
_SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_FLOATS = {DataType.FLOAT, DataType.DOUBLE}


@dataclass(frozen=True)
class SqlDialect:
    """An engine's SQL functions. Over values ordered by a second one, without nulls: `last`, `first`, all as a list
    (`listed`, null if empty) and the `total` of floats. `at_last` is the last value, null or not; `united` the sorted
    distinct values of a list.
    """

    identifier: Callable[[str], str]
    type_of: Callable[[FieldSpec], str]
    last: Callable[[str, str], str]
    at_last: Callable[[str, str], str]
    first: Callable[[str, str], str]
    listed: Callable[[str, str], str]
    total: Callable[[str, str], str]
    united: Callable[[str], str]


# Sums of floats are ordered, or the same rows could give another answer the next time.
DUCKDB = SqlDialect(
    identifier,
    duckdb_type,
    last=lambda value, place: f"arg_max({value}, {place})",
    at_last=lambda value, place: f"arg_max_null({value}, {place})",
    first=lambda value, place: f"arg_min({value}, {place})",
    listed=lambda value, place: f"list({value} ORDER BY {place}) FILTER ({value} IS NOT NULL)",
    total=lambda value, place: f"sum(CAST({value} AS DOUBLE) ORDER BY {place})",
    united=lambda values: f"list_sort(list_distinct({values}))",
)


def folded_sql(spec: TableSpec, rows: str, words: SqlDialect = DUCKDB, last: Iterable[str] = ()) -> str:
    """A SELECT of the user's columns, one row per key that exists; `rows` is a relation of stored rows.

    `last` names further columns of `rows`, quoted; they are taken from the last accepted row.
    """
    assert spec.upsert is not None
    key = ", ".join(words.identifier(name) for name in spec.primary_key)
    ties = ", ".join(name for name in ARRIVAL if name != TIMESTAMP)
    arrivals = f"PARTITION BY {key} ORDER BY {_ARRIVED}, {ties}"
    arrived = (
        f"max({TIMESTAMP}) OVER (PARTITION BY {key}, {_STREAM} ORDER BY {EPOCH}, {OFFSET} {_SO_FAR}) AS {_ARRIVED}"
    )
    placed = (
        f"row_number() OVER ({arrivals}) AS {_PLACE}, {_accepted(spec, words, f'{arrivals} {_SO_FAR}')} AS {_ACCEPTED}"
    )
    deleted = f"CASE WHEN {OP} = '{OP_DELETE}' THEN {_PLACE} ELSE 0 END"
    columns = [_folded(spec, field, words) for field in spec.schema.fields]
    columns += [f"{words.at_last(name, _PLACE)} AS {name}" for name in last]
    return (
        f"SELECT {', '.join(columns)}\nFROM (\n"
        f"SELECT *, max({deleted}) OVER (PARTITION BY {key}) AS {_RESET}\nFROM (\n"
        f"SELECT *, {placed}\nFROM (\nSELECT *, {arrived}\nFROM {rows} AS stored\n) AS arrived"
        f"\n) AS placed\nWHERE {_ACCEPTED}"
        f"\n) AS accepted\nWHERE {_PLACE} > {_RESET}\nGROUP BY {key}"
    )


def _accepted(spec: TableSpec, words: SqlDialect, window: str) -> str:
    """The condition that a row is accepted: its comparison value is the highest so far, and a null is below all.

    Of several comparison columns a row has a value in one.
    """
    assert spec.upsert is not None
    names = [words.identifier(name) for name in spec.upsert.comparison_columns]
    highest = [f"{name} IS NOT DISTINCT FROM max({name}) OVER ({window})" for name in names]
    if len(names) == 1:
        return highest[0]
    return " AND ".join(f"({name} IS NULL OR {is_it})" for name, is_it in zip(names, highest, strict=True))


def _folded(spec: TableSpec, field: FieldSpec, words: SqlDialect) -> str:
    assert spec.upsert is not None
    name = words.identifier(field.name)
    if field.name in spec.primary_key:
        return name
    return f"{_by_strategy(spec.upsert.strategy_of(field.name), field, name, words)} AS {name}"


def _by_strategy(strategy: Strategy, field: FieldSpec, name: str, words: SqlDialect) -> str:
    match strategy:
        case Strategy.FORCE_OVERWRITE:
            return words.at_last(name, _PLACE)
        case Strategy.IGNORE:
            return words.first(name, _PLACE)
        case Strategy.INCREMENT:
            # The cast fails where the sum does not fit the column.
            total = words.total(name, _PLACE) if field.data_type in _FLOATS else f"sum({name})"
            return f"CAST({total} AS {words.type_of(field)})"
        case Strategy.MAX:
            return f"max({name})"
        case Strategy.MIN:
            return f"min({name})"
        case Strategy.APPEND:
            return f"flatten({words.listed(name, _PLACE)})"
        case Strategy.UNION:
            # As in Pinot, a single list stays as it arrived.
            united = words.united(f"flatten({words.listed(name, _PLACE)})")
            return f"CASE WHEN count({name}) > 1 THEN {united} ELSE {words.last(name, _PLACE)} END"
        case _:
            return words.last(name, _PLACE)
