"""The SQL that folds the rows of each key of a table with PARTIAL upsert, or with several comparison columns.

    order      of arrival: by Kafka timestamp, but never against the offsets of a partition, nor against its resets
    accepted   is a row whose comparison value is not below an earlier one of its key in the same column
    reset      is the last accepted delete marker: what came before it does not count; as the last row it hides its key
    folded     are the accepted rows since, column by column, as its strategy says; the key is as it is

Filters that are not on the key have to stand outside. DuckDB and Spark read it alike but for a few words
(`SqlDialect`). The same rows give the same answer in any order and from any place; tests/folding.py folds them one
after the other.
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
# What tells one stream of rows that follow each other from another. A reset begins a later epoch of the same stream; of
# replays each epoch is one of its own, whose offsets may lie below those of an earlier one.
_STREAM = f"{CONNECTOR}, {TOPIC}, {PARTITION}, CASE WHEN {CONNECTOR} LIKE '{REPLAY}%' THEN {EPOCH} END"
_SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_FLOATS = {DataType.FLOAT, DataType.DOUBLE}


@dataclass(frozen=True)
class SqlDialect:
    """An engine's words. Of values in order of a second one, nulls left out: `last`, `first`, all in a `listed` (null
    where there is none) and the `total` of floats. `at_last` is the last one, null or not; `united` a list's values,
    each once, sorted.
    """

    identifier: Callable[[str], str]
    type_of: Callable[[FieldSpec], str]
    last: Callable[[str, str], str]
    at_last: Callable[[str, str], str]
    first: Callable[[str, str], str]
    listed: Callable[[str, str], str]
    total: Callable[[str, str], str]
    united: Callable[[str], str]


# Sums of floats go by the order of their parts, or the same rows could give another answer the next time.
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
    """A SELECT of the user's columns, one row for each key that is there; `rows` is a relation of stored rows.

    `last` names further columns of `rows`, quoted: those of the last accepted row.
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
    """A row's own value is the highest so far; a null is below all. Of several columns a row has one."""
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
            # The cast is an error where the sum does not fit the column.
            total = words.total(name, _PLACE) if field.data_type in _FLOATS else f"sum({name})"
            return f"CAST({total} AS {words.type_of(field)})"
        case Strategy.MAX:
            return f"max({name})"
        case Strategy.MIN:
            return f"min({name})"
        case Strategy.APPEND:
            return f"flatten({words.listed(name, _PLACE)})"
        case Strategy.UNION:
            # As Pinot: a list that nothing was united with stays as it came.
            united = words.united(f"flatten({words.listed(name, _PLACE)})")
            return f"CASE WHEN count({name}) > 1 THEN {united} ELSE {words.last(name, _PLACE)} END"
        case _:
            return words.last(name, _PLACE)
