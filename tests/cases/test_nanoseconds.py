"""A table whose time column counts nanoseconds: ingested, moved, replaced and asked, as numbers and as texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import DataError
from hybrid.operations.time_boundary import time_boundary_of
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.table.names import time_text
from tests.cases.tables import FIELDS, HOUR, LiveTable, layout_in, table_spec

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
NS = HOUR * 1_000_000  # an hour
# By id: the first and last nanoseconds of two hours, and the first one of the third.
TIMES = {1: 5, 2: NS - 1, 3: NS, 4: NS + 1, 5: 2 * NS - 1, 6: 2 * NS}


def _text(nanos: int) -> str:
    second = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=nanos // 1_000_000_000)
    return f"{second:%Y-%m-%dT%H:%M:%S}.{nanos % 1_000_000_000:09d}"


FORMATS: dict[str, tuple[str, DataType, Callable[[int], int | str]]] = {
    "number": ("1:NANOSECONDS:EPOCH", DataType.LONG, int),
    "text": ("SIMPLE_DATE_FORMAT|yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSS", DataType.STRING, _text),
}


@pytest.mark.parametrize("kind", list(FORMATS))
def test_a_table_in_nanoseconds(broker, topic, workbench, tmp_path, kind):
    form, data_type, stored = FORMATS[kind]
    time = TimeFormat.parse(form, "test", "ts", data_type)
    fields = [replace(one, data_type=data_type, time_format=time) if one.name == "ts" else one for one in FIELDS]
    spec = table_spec(broker, topic, fields=tuple(fields))
    table = LiveTable(spec, layout_in(tmp_path), workbench, now=2 * HOUR).create()

    def row(number: int, value: int = 1, **more: int) -> dict[str, object]:
        return {
            "id": number,
            "key": f"k{number}",
            "value": value,
            "ts": stored(more.get("nanos", TIMES.get(number, 0))),
        }

    def name(low: int, high: int) -> str:
        return f"t_{time_text(stored(low))}_{time_text(stored(high))}_0"

    def where(condition: str, *nanos: int) -> list[int]:
        told = condition.format(*(repr(stored(one)) for one in nanos))
        return sorted(found for (found,) in table.query(f"select id from t where {told} limit 100"))

    def check() -> None:
        """Whatever has moved, rows and their order are the same to the nanosecond."""
        assert table.query("select id, ts from t order by ts limit 100") == [
            (number, stored(nanos)) for number, nanos in TIMES.items()
        ]
        assert where("ts < {}", NS) == [1, 2] and where("ts <= {}", NS) == [1, 2, 3]
        assert where("ts = {}", NS - 1) == [2] and where("ts between {} and {}", NS + 1, 2 * NS - 1) == [4, 5]
        assert where("ts > {}", 2 * NS - 1) == [6] and where("ts > {}", 2 * NS) == []
        if kind == "number":
            assert table.query("select min(ts), max(ts) from t") == [(stored(5), stored(2 * NS))]

    table.produce(*map(row, TIMES))
    check()
    table.ingest()
    assert table.visible() == [*TIMES]
    check()
    table.move(max_buckets=None)
    assert table.segments() == {name(5, NS - 1): 2, name(NS, 2 * NS - 1): 3}
    assert (table.boundary.time_ms, table.visible()) == (2 * HOUR, [*TIMES])
    limit = time_boundary_of(spec, table.half(Half.OFFLINE))
    assert limit is not None and limit.time_value == str(stored(2 * NS - 1))
    check()

    table.replace(name(NS, 2 * NS - 1), [row(number, 10) for number in (3, 4, 5)])
    assert where("value = 10 and ts >= {}", 0) == [3, 4, 5]
    check()
    with pytest.raises(DataError, match="is outside of the times in the name of segment"):
        table.replace(name(NS, 2 * NS - 1), [row(3, nanos=NS - 1)])
    check()

    table.produce(row(7, nanos=NS - 2))
    table.ingest()
    assert where("ts < {}", NS) == [1, 2, 7], "a late row is seen at once"
    table.move()
    assert where("ts between {} and {}", NS - 2, NS - 1) == [2, 7]
    assert table.segments()[name(NS - 2, NS - 2)] == 1 and table.visible() == [*TIMES, 7]
