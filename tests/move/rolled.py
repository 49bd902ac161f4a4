"""Tables of sales whose moves and merges roll up, with a metric of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import (
    Aggregation,
    BoundaryMode,
    Half,
    MergeLevel,
    MergeType,
    MoveConfig,
    TableSpec,
)
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.move.merging.run import run_merges
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.types import DataType
from tests.move.clocked import DAY
from tests.move.test_merging import Merging
from tests.query.halves import KEY, MILLIS, Halves, Row, orders_spec

HOUR, MINUTE = 3_600_000, 60_000
METRICS = {
    "whole": (DataType.INT, Aggregation.SUM),
    "long": (DataType.LONG, Aggregation.SUM),
    "half": (DataType.FLOAT, Aggregation.SUM),
    "broken": (DataType.DOUBLE, Aggregation.SUM),
    "exact": (DataType.BIG_DECIMAL, Aggregation.SUM),
    "low": (DataType.LONG, Aggregation.MIN),
    "high": (DataType.DOUBLE, Aggregation.MAX),
    "rows": (DataType.LONG, Aggregation.COUNT),
    "price": (DataType.DOUBLE, Aggregation.AVG),
    "price_sum": (DataType.DOUBLE, Aggregation.SUM),
    "price_count": (DataType.LONG, Aggregation.SUM),
}
NULLS: dict[DataType, object] = {
    DataType.INT: 0, DataType.LONG: 0, DataType.FLOAT: 0.0, DataType.DOUBLE: 0.0, DataType.BIG_DECIMAL: Decimal(0),
}  # fmt: skip
MOVED = tuple((name, how) for name, (_, how) in METRICS.items())
MERGED = tuple((name, Aggregation.SUM if how is Aggregation.COUNT else how) for name, how in MOVED)


def sales_spec(move: MoveConfig, *levels: MergeLevel, time: FieldSpec | None = None, **changes: Any) -> TableSpec:
    """Sales by shop, article and labels, with a metric of every kind."""
    fields = [
        FieldSpec("shop", DataType.STRING, FieldKind.DIMENSION),
        FieldSpec("weight", DataType.DOUBLE, FieldKind.DIMENSION),
        FieldSpec("labels", DataType.STRING, FieldKind.DIMENSION, single_value=False),
        *(FieldSpec(name, kind, FieldKind.METRIC, default_null=NULLS[kind]) for name, (kind, _) in METRICS.items()),
        time or FieldSpec("ts", DataType.LONG, FieldKind.DATE_TIME, time_format=MILLIS),
    ]
    spec = replace(orders_spec(), schema=Schema("orders", tuple(fields)), move=move, merge_levels=levels)
    return replace(spec, **changes)


def sale(shop: str | None, time: int, offset: int, **values: Any) -> Row:
    metrics = {name: 1 if kind is DataType.LONG else None for name, (kind, _) in METRICS.items()}
    stored = {"shop": shop, "weight": 0.5, "labels": ["a", "b"], "ts": time, **metrics, **values}
    return Row(stored, time, offset, timestamp_ms=offset, segment="orders__0__0__x")


class Rolling(Merging):
    """A table that moves."""

    @property
    def context(self) -> TableContext:
        return TableContext(self.bench, self.spec, self.halves.layout)

    @property
    def spec(self) -> TableSpec:
        return self.halves.spec

    def live(self, *rows: Row) -> None:
        self.halves.realtime = open_half(self.halves.layout.half(Half.REALTIME)).realtime
        before = self.halves.realtime.offsets.get(KEY, 0)
        ends = [row.offset + 1 for row in rows if row.offset is not None]
        self.halves.commit_realtime(rows, offsets={KEY: max([before, *ends])})

    def move(self, **options: Any) -> Any:
        options = {"reach": Reach(None), **options}
        return run_move(self.context, **options)

    def merge(self, **options: Any) -> Any:
        return run_merges(self.context, **options)

    def rows(self, half: str = "orders_OFFLINE", what: str = "*") -> list[dict[str, Any]]:
        names = [field.name for field in self.spec.schema.fields] if what == "*" else what.split(", ")
        sql = f"SET enableNullHandling = true; select {', '.join(names)} from {half} order by ts, shop limit 10000"
        return [dict(zip(names, found, strict=True)) for found in self.ask(sql)]

    def sums(self) -> list[tuple[Any, ...]]:
        return self.ask("select shop, sum(long), sum(price_sum), sum(price_count) from orders group by 1 order by 1")


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Callable[..., Rolling]:
    def made(spec: TableSpec, mode: BoundaryMode | None = None) -> Rolling:
        return Rolling(Halves.create(tmp_path, replace(spec, null_handling=True), mode), workbench)

    return made


def rolling(**changes: Any) -> MoveConfig:
    settings = {"merge_type": MergeType.ROLLUP, "aggregations": MOVED, "round_ms": HOUR, **changes}
    return MoveConfig(DAY, DAY, **settings)


def daily(**changes: Any) -> MergeLevel:
    settings = {"merge_type": MergeType.ROLLUP, "aggregations": MERGED, "round_ms": HOUR, **changes}
    return MergeLevel(DAY, DAY, name="1day", **settings)
