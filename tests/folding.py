"""Rows of a key folded one after the other, as Pinot's servers do on arrival, and tables to try it on.

The product folds all rows of a key at once, by aggregates; here each row meets what the ones before it left.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from hybrid.config.table_config import Partial, Strategy, TableSpec, UpsertConfig
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from tests.oracle import Event
from tests.query.halves import orders_spec

Values = Mapping[str, Any]
# By strategy, the kinds of columns that can have it.
FITTING = {
    Strategy.OVERWRITE: "text whole real list",
    Strategy.FORCE_OVERWRITE: "text whole real list",
    Strategy.IGNORE: "text whole real list",
    Strategy.INCREMENT: "whole real",
    Strategy.MAX: "text whole real",
    Strategy.MIN: "text whole real",
    Strategy.APPEND: "list",
    Strategy.UNION: "list",
}
TYPES = {"text": DataType.STRING, "whole": DataType.LONG, "real": DataType.DOUBLE, "list": DataType.STRING}
# customer and amount are the orders table's own.
KINDS = {"customer": "text", "note": "text", "n": "whole", "m": "whole", "x": "real", "a": "list", "b": "list"}


def folding_spec(
    dice: random.Random, *, several: bool = False, partial: bool = True, deletes: bool = True
) -> TableSpec:
    """The orders table with more columns, each of some strategy. With `several` c1 and c2 are compared, else ts."""
    extra = [
        FieldSpec(name, TYPES[kind], FieldKind.DIMENSION, single_value=kind != "list")
        for name, kind in KINDS.items()
        if name != "customer"
    ]
    extra += [FieldSpec(name, DataType.LONG, FieldKind.METRIC) for name in ("c1", "c2")]
    fits = {name: [one for one, kinds in FITTING.items() if kind in kinds.split()] for name, kind in KINDS.items()}
    strategies = {name: dice.choice(found) for name, found in fits.items()}
    default = dice.choice([Strategy.OVERWRITE, Strategy.FORCE_OVERWRITE, Strategy.IGNORE])
    spec = orders_spec(upsert=True, deletes=deletes, extra=extra)
    first, *others = ("c1", "c2") if several else ("ts",)
    upsert = UpsertConfig(
        first,
        "gone" if deletes else None,
        further_comparison_columns=tuple(others),
        partial=Partial(strategies, default) if partial else None,
    )
    return replace(spec, upsert=upsert, null_handling=True)


def some_values(dice: random.Random, spec: TableSpec, key: int, ts: int, gone: bool) -> dict[str, Any]:
    """A record of the table, with nulls."""
    drawn = {
        "text": lambda: dice.choice("abcdé"),
        "whole": lambda: dice.randrange(-5, 6),
        "real": lambda: dice.choice([0.1, 0.2, 1e16, -1e16, 3.0]),
        "list": lambda: [dice.choice("abc") for _ in range(dice.randrange(1, 4))],
    }
    found = {name: drawn[kind]() if dice.random() < 0.7 else None for name, kind in KINDS.items()}
    compared = dice.choice(["c1", "c2"])
    others = {name: dice.randrange(8) if name == compared else None for name in ("c1", "c2")}
    marker = {"gone": gone} if spec.upsert and spec.upsert.delete_column else {}
    return {"order_id": key, "amount": 1.5, "ts": ts, **found, **others, **marker}


def folded(spec: TableSpec, rows: Iterable[Event]) -> list[dict[str, Any]]:
    """What each key shows; `payload` holds a row's values."""
    by_key: dict[object, list[Event]] = {}
    for row in arrived(rows):
        by_key.setdefault(row.key, []).append(row)
    found = [_folded(spec, of_key) for of_key in by_key.values()]
    return [one for one in found if one is not None]


def arrived(rows: Iterable[Event]) -> list[Event]:
    """In order of arrival: by Kafka timestamp, none before one of its key that precedes it in its stream."""
    ranked = []
    ordered = sorted(rows, key=lambda row: (str(row.key), stream_of(row), row.place))
    for _, of_partition in groupby(ordered, key=lambda row: (row.key, stream_of(row))):
        latest = 0
        for row in of_partition:
            latest = max(latest, row.timestamp)
            ranked.append(((latest, *row.place), row))
    return [row for _, row in sorted(ranked, key=lambda one: one[0])]


def stream_of(row: Event) -> tuple[object, ...]:
    """A partition through all its resets; of replays each epoch, for a later one may bring lower offsets."""
    connector, topic, epoch, partition = row.partition
    return (connector, topic, partition, epoch if connector.startswith("replay/") else 0)


def _folded(spec: TableSpec, rows: list[Event]) -> dict[str, Any] | None:
    assert spec.upsert is not None
    highest: dict[str, Any] = {}
    current: dict[str, Any] | None = None
    for row in rows:
        values: Any = row.payload
        own = {name: values[name] for name in spec.upsert.comparison_columns}
        if any(value is not None and name in highest and value < highest[name] for name, value in own.items()):
            continue
        highest.update({name: value for name, value in own.items() if value is not None})
        if row.is_delete:
            current = None
        elif current is None:
            current = dict(values)
        else:
            current = {name: _merged(spec, name, current[name], values[name]) for name in values}
    return current


def _merged(spec: TableSpec, name: str, before: Any, new: Any) -> Any:
    assert spec.upsert is not None
    if name in spec.primary_key:
        return new
    strategy = spec.upsert.strategy_of(name)
    if strategy is Strategy.FORCE_OVERWRITE:
        return new
    if before is None or new is None:
        return new if before is None else before
    match strategy:
        case Strategy.IGNORE:
            return before
        case Strategy.INCREMENT | Strategy.APPEND:
            return before + new
        case Strategy.MAX:
            return max(before, new)
        case Strategy.MIN:
            return min(before, new)
        case Strategy.UNION:
            return sorted({*before, *new})
    return new
