"""The boundary as Pinot's clients ask for it, by the format of the time column: exact also below a millisecond."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hybrid.config.table_config import Half, MoveConfig, TableSpec
from hybrid.lake.files import LaidFile
from hybrid.lake.log import open_half
from hybrid.move.move import MoveReport
from hybrid.move.task_splits import TaskSplit, names_of
from hybrid.operations.time_boundary import time_boundary_of
from hybrid.query.revision import time_text
from hybrid.rpc.json_views import move_view
from hybrid.runtime.json_values import epoch_ms, utc
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.table.boundary import INFINITE, Boundary
from hybrid.table.names import exact_time
from tests.query.halves import KEY, Halves, Row, orders_spec

NANOS = 1_700_000_000_123_456_789


def spec_of(fmt: str, kind: DataType = DataType.LONG) -> TableSpec:
    spec = orders_spec()
    form = TimeFormat.parse(fmt, "schema", "ts", kind)
    fields = [replace(one, data_type=kind, time_format=form) if one.name == "ts" else one for one in spec.schema.fields]
    return replace(spec, schema=replace(spec.schema, fields=tuple(fields)))


def told(folder: Path, spec: TableSpec, stored: list[object], limit_ms: int | None) -> str:
    halves = Halves.create(folder, spec)
    field = spec.time_field
    assert field is not None and field.time_format is not None
    rows = [
        Row({"order_id": place, "ts": one}, field.time_format.to_millis(one), place, segment="o")
        for place, one in enumerate(stored)
    ]
    halves.commit_offline(rows, Boundary(2**52, {KEY: 9}, override_ms=limit_ms))
    found = time_boundary_of(spec, open_half(halves.layout.half(Half.OFFLINE)))
    assert found is not None and found.time_column == "ts"
    return found.time_value


@pytest.mark.parametrize(
    ("fmt", "stored", "limit_ms", "value"),
    [
        ("1:NANOSECONDS:EPOCH", [NANOS - 5, NANOS], None, str(NANOS)),
        ("1:NANOSECONDS:EPOCH", [NANOS - 2_000_000, NANOS], 1_700_000_000_123, "1700000000122999999"),
        ("EPOCH|MICROSECONDS|1", [NANOS // 1000], None, str(NANOS // 1000)),
        ("1:MILLISECONDS:EPOCH", [NANOS // 1_000_000], None, str(NANOS // 1_000_000)),
        ("1:SECONDS:EPOCH", [1_700_000_000], None, "1700000000"),
    ],
)
def test_the_last_covered_value(
    tmp_path: Path, fmt: str, stored: list[object], limit_ms: int | None, value: str
) -> None:
    assert told(tmp_path, spec_of(fmt), stored, limit_ms) == value


def test_a_timestamp_is_milliseconds_as_in_pinot(tmp_path: Path) -> None:
    at = datetime(2500, 1, 1, 0, 0, 0, 999000, tzinfo=UTC)
    assert told(tmp_path, spec_of("TIMESTAMP", DataType.TIMESTAMP), [at], None) == "16725225600999"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00.001Z", "2242-03-16T12:56:31.999Z", "9999-12-31T23:59:59.999Z"])
def test_every_millisecond_is_written_and_read_exactly(moment: str) -> None:
    found = datetime.fromisoformat(moment)
    millis = (found - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution * 1000)
    assert (utc(millis), epoch_ms(moment), time_text(millis)) == (moment, millis, moment)


def test_a_move_without_a_time_column_has_no_time() -> None:
    report = MoveReport(1, 1, 0, ("a",), Boundary(INFINITE, {KEY: 3}), 4, "Moved.")
    shown = move_view(report)["boundary"]
    assert (shown["time"], shown["time_ms"], shown["frontier"]) == (None, None, {"kafka/orders/0/0": 3})
    timed = move_view(replace(report, boundary=Boundary(1000, {})))["boundary"]
    assert (timed["time"], timed["time_ms"]) == ("1970-01-01T00:00:01Z", 1000)


def test_names_have_the_values_of_a_column_that_counts_finer() -> None:
    spec = spec_of("1:NANOSECONDS:EPOCH")
    statistics = (
        f'{{"minValues": {{"ts": {NANOS}, "_hy_time": 1700000000123}},'
        f' "maxValues": {{"ts": {NANOS + 7_000_000}, "_hy_time": 1700000000130}}}}'
    )
    part = TaskSplit(0, (LaidFile("a", 2, 1, 1, statistics),))
    assert names_of(spec, MoveConfig(), [part], {}, ()) == [f"orders_{NANOS}_{NANOS + 7_000_000}_0"]
    rounded = MoveConfig(round_ms=1000)
    assert names_of(spec, rounded, [part], {0: (1_700_000_000_000, 1_700_000_000_000)}, ()) == [
        "orders_1700000000000000000_1700000000000000000_0"
    ], "a rounded time is no value of a row"
    assert exact_time(spec, 1_700_000_000_123, None) == 1_700_000_000_123_000_000
    assert exact_time(spec_of("1:MILLISECONDS:EPOCH"), 5, 5) == 5
