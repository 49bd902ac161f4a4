"""Columns come and types become wider, on real halves: what is stored, what queries see, and what a death leaves."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError
from hybrid.kafka.topics import TopicRecord, produce
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import physical_ddl
from hybrid.lake.log import open_half
from hybrid.lake.worker_files import WorkerFiles
from hybrid.operations.queries import _Source
from hybrid.operations.tables import change
from hybrid.progress import Silent
from hybrid.query.cache.cache import Cache
from hybrid.query.cache.cache_reader import CachedAnswers
from hybrid.query.execution import Limits
from hybrid.table.state import next_act

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

HOUR = 3_600_000
BIG = 2**40
TIME = {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
NARROW = {"id": "INT", "clicks": "INT", "share": "FLOAT", "total": "LONG", "exact": "INT", "many": "INT"}
WIDE = {"id": "LONG", "clicks": "LONG", "share": "DOUBLE", "total": "BIG_DECIMAL", "exact": "DOUBLE", "many": "LONG"}


def schema_of(types: dict[str, str], *more: dict[str, Any], key: bool = False) -> dict[str, Any]:
    dimensions = [{"name": name, "dataType": types[name]} for name in ("id", "exact")]
    many = {"name": "many", "dataType": types["many"], "singleValueField": False}
    return {
        "schemaName": "t",
        **({"primaryKeyColumns": ["id"]} if key else {}),
        "dimensionFieldSpecs": [*dimensions, many, *more],
        "metricFieldSpecs": [{"name": name, "dataType": types[name]} for name in ("clicks", "share", "total")],
        "dateTimeFieldSpecs": [TIME],
    }


class Place:
    """A home with one table `t` on a topic of its own; its clock stands at 10 h."""

    def __init__(self, home: Path, bench: CommitContext, broker: str, topic: str) -> None:
        self.here: Hybrid = hybrid.connect(home)
        self.here.context.now_ms = lambda: 10 * HOUR  # type: ignore[method-assign]
        vars(self.here)["bench"] = CommitContext(lambda: bench.spark, self.here.context.now_ms, Silent())
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
        produce(self.broker, self.topic, [TopicRecord(json.dumps(row).encode())])
        self.sent += 1

    def ingest(self) -> Any:
        return self.here.table("t").ingest()

    def move(self) -> Any:
        return self.here.table("t").move(max_buckets=None)

    def two_moved(self) -> None:
        """Creates the table in its narrow types, with two rows of the first hour that have moved."""
        self.here.create_table(self.given(schema_of(NARROW)))
        for number in (1, 2):
            self.send(number, 1)
        self.ingest()
        self.move()

    def rows(self, sql: str, **options: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.here.query(sql, **options).rows]

    def half(self, half: Half) -> Any:
        return open_half(self.here.context.layout("t").half(half))


@pytest.fixture
def place(home: Path, workbench: CommitContext, broker: str, topic: str) -> Iterator[Place]:
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


ADDED = (
    {"name": "shop", "dataType": "STRING", "defaultNullValue": "none"},
    {"name": "price", "dataType": "BIG_DECIMAL"},
    {"name": "seen", "dataType": "TIMESTAMP"},
    {"name": "tags", "dataType": "STRING", "singleValueField": False, "defaultNullValue": "-"},
)
MORE = "select id, shop, price, seen, tags from t order by id limit 1000"


def test_types_become_wider_while_rows_arrive(place: Place) -> None:
    here = place.here
    place.two_moved()
    place.send(3, 9)
    place.send(4, 9, clicks=BIG)
    place.ingest()
    place.send(5, 9)
    (rejected,) = here.table("t").rejected()
    assert "clicks" in rejected["reason"]
    before, then = here.query(ALL), place.half(Half.REALTIME).version
    assert [row[0] for row in before.rows] == [1, 2, 3, 5] and before.column_types[1] == "INT"

    wide = place.given(schema_of(WIDE, *ADDED))
    planned = here.apply_table(wide, dry_run=True)
    assert planned.sentence == f"Would change table 't': {len(planned.changes)} changes. Nothing was changed."
    assert "schema/metricFieldSpecs/clicks/dataType: INT -> LONG" in planned.changes
    assert place.half(Half.REALTIME).version == then
    changed = here.apply_table(wide)
    assert changed.changes == planned.changes and changed.sentence.startswith("Changed table 't'")
    assert here.apply_table(wide).sentence.startswith("Nothing to change")
    for half in Half:
        assert (place.half(half).widened, place.half(half).added) == (set(WIDE), {one["name"] for one in ADDED})
        assert place.half(half).state.act.kind == "evolve"

    after = here.query(ALL)
    assert after.column_types[:6] == ["LONG", "LONG", "DOUBLE", "BIG_DECIMAL", "DOUBLE", "LONG_ARRAY"]
    assert plain(after.rows) == plain(before.rows)
    defaults = ("none", Decimal(0), datetime(1970, 1, 1), ["-"])
    assert place.rows(MORE) == [(number, *defaults) for number in (1, 2, 3, 5)]
    assert here.query(ALL, as_of=before.revision).rows == after.rows, "with its tail, by the types of now"

    new = {"shop": "new", "price": 1.5, "seen": 0, "tags": ["a"]}
    place.send(BIG, 9, total="12345678901234567890.5", exact=0.25, many=[BIG], **new)
    assert place.rows(f"select id, exact from t where id > {BIG - 1}") == [(BIG, 0.25)], "in the tail"
    assert here.table("t").replay_rejected().replayed == 1
    place.ingest()
    committed = here.query(ALL)
    assert [row[0] for row in committed.rows] == [1, 2, 3, 4, 5, BIG]
    assert here.query("select sum(clicks) from t").rows == [(float(1 + 2 + 3 + BIG + 5 + BIG),)]
    assert here.query("select max(total) from t").rows == [(12345678901234567890.5,)]
    assert here.query("select sumprecision(total) from t where exact = 0.25").rows == [
        (Decimal("12345678901234567890.5"),)
    ]
    for name, value, rows in (("id", BIG, 1), ("clicks", BIG, 2), ("id", 2, 1), ("total", 20, 1), ("exact", -3, 1)):
        assert len(place.rows(f"select id from t where {name} = {value}")) == rows, (name, value)
    place.move()
    assert here.query(ALL).rows == committed.rows
    assert place.rows(MORE)[:5] == [(number, *defaults) for number in (1, 2, 3, 4, 5)], "nulls that moved"
    assert place.rows(MORE)[5] == (BIG, "new", Decimal("1.5"), datetime(1970, 1, 1), ["a"])
    assert here.query(ALL, as_of=before.revision).rows == after.rows
    assert here.query(ALL, as_of=committed.revision).rows == committed.rows
    for engine in ("duckdb", "polars", "spark"):
        assert_view(here, engine)
    assert_cached(here, committed.rows)


def test_winners_over_keys_that_became_wider(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what a death between the halves leaves, and what acts do that began before the change."""
    here = place.here
    here.create_table(place.given(schema_of(NARROW, key=True), upsert=True))
    for number, hour in ((1, 1), (2, 1), (1, 2), (3, 8)):
        place.send(number, hour)
    place.ingest()
    place.move()
    place.send(1, 9, clicks=11)
    place.ingest()
    before = here.query(ALL)
    assert [(row[0], row[1]) for row in before.rows] == [(1, 11), (2, 2), (3, 3)]

    wide = place.given(schema_of(WIDE, *ADDED, key=True), upsert=True)
    evolved = change.evolve_half

    def dying(table: Any, half: Half) -> None:
        if half is Half.REALTIME:
            raise KeyboardInterrupt
        evolved(table, half)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(change, "evolve_half", dying)
        here.apply_table(wide)
    assert (place.half(Half.OFFLINE).widened, place.half(Half.REALTIME).widened) == (set(WIDE), set())
    assert here.query(ALL).rows == before.rows and here.query(ALL).column_types == before.column_types
    place.send(2, 9, clicks=22)
    place.ingest()
    with pytest.raises(ConflictError, match="are being changed"):
        place.move()
    narrow = here.table("t")
    definition = here.context.definitions.find("t")
    assert definition is not None
    here.context.definitions.replace(replace(definition, schema_doc=wide.schema[0]))  # `hybrid doctor`, of a lost one
    assert here.apply_table(wide).changes == ["columns of REALTIME: an earlier change of them did not end"]
    for half in Half:
        assert place.half(half).widened == set(WIDE)

    place.send(3, 9, clicks=33)
    place.send(BIG, 9, clicks=44)
    assert narrow.ingest_batch().rejected == 1, "a batch that began before the change"
    with pytest.raises(ConflictError, match="are being changed"):
        commit_narrow(here, narrow)
    assert here.table("t").replay_rejected().replayed == 1
    place.send(BIG, 9, clicks=BIG, ts=9 * HOUR + HOUR - 1)
    place.send(2, 1, clicks=-1)
    winners = [(1, 11), (2, 22), (3, 33), (BIG, BIG)]
    assert [(row[0], row[1]) for row in here.query(ALL).rows] == winners
    place.ingest()
    assert [(row[0], row[1]) for row in here.query(ALL).rows] == winners
    assert place.rows(f"select clicks from t where id in (2, {BIG}) order by id") == [(22,), (BIG,)]
    place.move()
    assert [(row[0], row[1]) for row in here.query(ALL).rows] == winners
    for engine in ("duckdb", "spark"):
        assert_view(here, engine)
    assert_cached(here, here.query(ALL).rows)


def test_a_correction_from_before_the_change_is_taken_back_after_it(place: Place, tmp_path: Path) -> None:
    here = place.here
    place.two_moved()
    first = place.rows("select id, clicks, share from t order by id")
    (segment,) = [one.name for one in here.table("t").segments() if one.half == Half.OFFLINE]

    def correct(clicks: int) -> Any:
        rows = [
            {"id": n, "clicks": clicks, "share": 0.5, "total": 1, "exact": 1, "many": [1], "ts": HOUR + n}
            for n in (1, 2)
        ]
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / "rows.json").write_text("\n".join(map(json.dumps, rows)))
        job = {
            "jobType": "SegmentCreationAndTarPush",
            "inputDirURI": str(tmp_path / "in"),
            "includeFileNamePattern": "glob:**/*.json",
            "recordReaderSpec": {"dataFormat": "json"},
            "tableSpec": {"tableName": "t"},
            "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": segment}},
        }
        (tmp_path / "job.yml").write_text(json.dumps(job))
        return here.run_job(tmp_path / "job.yml", {})

    correct(7)
    assert place.rows("select id, clicks, share from t order by id") == [(1, 7, 0.5), (2, 7, 0.5)]
    here.apply_table(place.given(schema_of(WIDE, *ADDED)))
    correct(BIG)
    assert place.rows("select id, clicks, share from t order by id") == [(1, BIG, 0.5), (2, BIG, 0.5)]
    table = here.table("t")
    for entry in table.replacements()[:2]:  # the newest first
        table.revert(entry.id)
    assert plain(place.rows("select id, clicks, share from t order by id")) == plain(first)
    assert place.rows("select distinct shop from t") == [("none",)]
    for engine in ("duckdb", "spark"):
        assert_view(here, engine)


def commit_narrow(here: Hybrid, table: Any) -> None:
    """An act that goes by the definition from before the change, and writes by Spark."""
    path, act_id = here.context.layout("t").half(Half.OFFLINE), new_act_id("replace")
    with here.context.bench.lock(here.context.layout("t"), Half.OFFLINE):
        current = open_half(path)
        act = next_act(current.state, act_id, "replace", here.context.bench.now_iso(), {})
        frame = here.context.bench.spark.createDataFrame([], physical_ddl(table.spec, Half.OFFLINE))
        commit_act(frame, WorkerFiles(path, True), replace(current.state, act=act), planned=current.version)


def assert_view(here: Hybrid, engine: str) -> None:
    """What a view gives is what the product answers."""
    code = here.table("t").view(for_=engine).code.replace("configure_spark_with_delta_pip(builder)", "builder")
    scope: dict[str, Any] = {"__name__": "view"}
    exec(code, scope)
    view = scope["view"]
    if engine == "duckdb":
        table = view.to_arrow_table()
    else:
        table = view.toArrow() if engine == "spark" else view.collect().to_arrow()
    names = table.column_names
    found = sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True), key=str)
    rows = sorted(here.query("select * from t limit 1000").rows, key=str)
    assert [[_naive(value) for value in row] for row in found] == [list(row) for row in rows], engine


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def assert_cached(here: Hybrid, rows: Sequence[Any]) -> None:
    """What a server answers from memory is what the files say."""
    cache = Cache(_Source(here.context), here.settings.warehouse)
    try:
        answers, deadline = CachedAnswers(cache), time.monotonic() + 60
        found = None
        while found is None and time.monotonic() < deadline:
            time.sleep(0.05)
            found = answers.answer(ALL, here.context.now_ms(), Limits(None, None), lambda _: None)
        assert found is not None and list(found.rows) == list(rows)
    finally:
        cache.close()
