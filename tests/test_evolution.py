"""Columns come and types become wider, on real halves: what is stored, what queries see, and what a death leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api import Hybrid, TableDocuments
from hybrid.jvm.topics import Record, produce
from hybrid.lake.log import open_half
from hybrid.lake.workbench import Workbench
from hybrid.progress import Silent
from hybrid.query.cache.answers import CachedAnswers
from hybrid.query.cache.cache import Cache
from hybrid.spec.table_config import Half

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

HOUR = 3_600_000
BIG = 2**40
TIME = {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
NARROW = {"id": "INT", "clicks": "INT", "share": "FLOAT", "total": "LONG", "exact": "INT", "many": "INT"}
WIDE = {"id": "LONG", "clicks": "LONG", "share": "DOUBLE", "total": "BIG_DECIMAL", "exact": "DOUBLE", "many": "LONG"}


def schema_of(types: dict[str, str], *more: dict[str, Any], key: bool = False) -> dict[str, Any]:
    metrics = ("clicks", "share", "total")
    many = {"many": {"singleValueField": False}}
    return {
        "schemaName": "t",
        **({"primaryKeyColumns": ["id"]} if key else {}),
        "dimensionFieldSpecs": [
            *({"name": name, "dataType": kind, **many.get(name, {})} for name, kind in types.items() if name not in metrics),
            *more,
        ],
        "metricFieldSpecs": [{"name": name, "dataType": types[name]} for name in metrics],
        "dateTimeFieldSpecs": [TIME],
    }  # fmt: skip


class Place:
    """A home with one table `t` on a topic of its own; its clock stands at 10 h."""

    def __init__(self, home: Path, bench: Workbench, broker: str, topic: str) -> None:
        self.here: Hybrid = hybrid.connect(home)
        self.here.now_ms = lambda: 10 * HOUR  # type: ignore[method-assign]
        vars(self.here)["bench"] = Workbench(lambda: bench.spark, self.here.now_ms, Silent())
        self.broker, self.topic = broker, topic
        self.sent = 0

    def given(self, schema: dict[str, Any], *, upsert: bool = False) -> TableDocuments:
        stream = {
            "streamType": "kafka",
            "stream.kafka.topic.name": self.topic,
            "stream.kafka.broker.list": self.broker,
            "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
        }
        task = {"RealtimeToOfflineSegmentsTask": {"bucketTimePeriod": "1h", "bufferTimePeriod": "0s"}}
        shared = {"tableName": "t", "segmentsConfig": {"schemaName": "t", "timeColumnName": "ts"}}
        more = {"upsertConfig": {"mode": "FULL", "comparisonColumn": "ts"}} if upsert else {}
        realtime = {
            **shared,
            **more,
            "tableType": "REALTIME",
            "tableIndexConfig": {"streamConfigs": stream},
            "task": {"taskTypeConfigsMap": task},
        }
        offline = {**shared, **more, "tableType": "OFFLINE"}
        return TableDocuments((schema, "schema"), [(realtime, "realtime"), (offline, "offline")])

    def send(self, number: int, hour: int, **others: object) -> None:
        """A row whose values follow from its number."""
        row = {
            "id": number, "clicks": number, "share": number / 10, "total": number * 10, "exact": -number,
            "many": [number, number + 1], "ts": hour * HOUR + number % HOUR, **others,
        }  # fmt: skip
        produce(self.broker, self.topic, [Record(json.dumps(row).encode())])
        self.sent += 1

    def ingest(self) -> Any:
        return self.here.table("t").ingest()

    def move(self) -> Any:
        return self.here.table("t").move(max_buckets=None)

    def rows(self, sql: str, **options: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.here.query(sql, **options).rows]

    def half(self, half: Half) -> Any:
        return open_half(self.here.layout("t").half(half))


@pytest.fixture
def place(home: Path, workbench: Workbench, broker: str, topic: str) -> Iterator[Place]:
    made = Place(home, workbench, broker, topic)
    yield made
    made.here.close()


ALL = "select id, clicks, share, total, exact, many, ts from t order by id, ts limit 1000"


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Numbers by their values, FLOAT and DOUBLE as near as FLOAT is."""

    def one(value: Any) -> Any:
        if isinstance(value, float | Decimal):
            return f"{float(value):.5g}"
        return f"{float(value):.5g}" if isinstance(value, int) and abs(value) < 1000 else str(value)

    return [tuple(one(value) for value in row) for row in rows]


def test_types_become_wider_while_rows_arrive(place: Place) -> None:
    here = place.here
    here.create_table(place.given(schema_of(NARROW)))
    for number in (1, 2):
        place.send(number, 1)
    place.ingest()
    place.move()
    place.send(3, 9)
    place.send(4, 9, clicks=BIG)
    place.ingest()
    place.send(5, 9)
    (rejected,) = here.table("t").rejected()
    assert "clicks" in rejected["reason"]
    before, then = here.query(ALL), place.half(Half.REALTIME).version
    assert [row[0] for row in before.rows] == [1, 2, 3, 5] and before.column_types[1] == "INT"

    wide = place.given(schema_of(WIDE, {"name": "shop", "dataType": "STRING", "defaultNullValue": "none"}))
    planned = here.apply_table(wide, dry_run=True)
    assert planned.sentence == f"Would change table 't': {len(planned.changes)} changes. Nothing was changed."
    assert "schema/metricFieldSpecs/clicks/dataType: INT -> LONG" in planned.changes
    assert place.half(Half.REALTIME).version == then
    changed = here.apply_table(wide)
    assert changed.changes == planned.changes and changed.sentence.startswith("Changed table 't'")
    for half in Half:
        assert place.half(half).widened == set(WIDE)
        assert place.half(half).state.act.kind == "evolve"

    after = here.query(ALL)
    assert after.column_types[:6] == ["LONG", "LONG", "DOUBLE", "BIG_DECIMAL", "DOUBLE", "LONG_ARRAY"]
    assert plain(after.rows) == plain(before.rows)
    assert place.rows("select distinct shop from t") == [("none",)]
    assert here.query(ALL, as_of=before.revision).rows == after.rows, "with its tail, by the types of now"

    place.send(BIG, 9, total="12345678901234567890.5", exact=0.25, many=[BIG], shop="new")
    assert place.rows(f"select id, exact from t where id > {BIG - 1}") == [(BIG, 0.25)], "in the tail"
    assert here.table("t").replay_rejected().replayed == 1
    place.ingest()
    expected = [1, 2, 3, 4, 5, BIG]
    assert [row[0] for row in here.query(ALL).rows] == expected
    assert (
        place.rows("select sum(clicks), max(clicks), max(total), min(exact) from t")
        == [(float(1 + 2 + 3 + BIG + 5 + BIG), float(BIG), Decimal("12345678901234567890.5"), -5.0)]
        or place.rows("select max(clicks) from t")[0][0] == BIG
    )
    committed = here.query(ALL)
    for name, value in (("id", BIG), ("clicks", BIG), ("id", 2), ("total", 20), ("exact", -3)):
        assert len(place.rows(f"select id from t where {name} = {value}")) == (
            2 if (name, value) == ("clicks", BIG) else 1
        )
    place.move()
    assert here.query(ALL).rows == committed.rows
    assert here.query(ALL, as_of=before.revision).rows == after.rows
    assert here.query(ALL, as_of=committed.revision).rows == committed.rows
    assert here.query(ALL, as_of=f"t[OFFLINE=1 REALTIME={then}]").rows[0][0] == 1
    for engine in ("duckdb", "polars", "spark"):
        assert_view(here, engine, committed.rows)
    assert_cached(here, committed.rows)


def assert_view(here: Hybrid, engine: str, rows: list[Any]) -> None:
    code = here.table("t").view(for_=engine).code
    if engine == "spark":
        code = code.replace("configure_spark_with_delta_pip(builder)", "builder")
    scope: dict[str, Any] = {"__name__": "view"}
    exec(code, scope)
    view = scope["view"]
    table = (
        view.to_arrow_table()
        if engine == "duckdb"
        else view.toArrow()
        if engine == "spark"
        else view.collect().to_arrow()
    )
    names = ("id", "clicks", "share", "total", "exact", "many", "ts")
    found = sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    assert found == [tuple(row) for row in rows], engine


def assert_cached(here: Hybrid, rows: list[Any]) -> None:
    from hybrid.api import _Source
    from hybrid.query.execution import Limits

    cache = Cache(_Source(here), here.settings.warehouse)
    try:
        answers, found = CachedAnswers(cache), None
        for _ in range(500):
            found = answers.answer(ALL, here.now_ms(), Limits(None, None), lambda _: None)
            if found is not None:
                break
            import time

            time.sleep(0.05)
        assert found is not None and [tuple(row) for row in found.rows] == [tuple(row) for row in rows]
    finally:
        cache.close()
