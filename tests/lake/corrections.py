"""Corrections and upkeep of two tables in one session of Spark: what each step said, and the rows afterwards.

Workers that see the home and workers that do not give the same. `tests.lake.commands` runs them in a process.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.kafka.topics import TopicRecord, create_topic, produce
from hybrid.operations.backfill_change import BackfillChange
from hybrid.replace.backfill.options import BackfillOptions

HOUR_MS = 3_600_000
START_MS = 1_632_441_600_000  # the begin of an hour
CUSTOMERS, SALES = "customers", "sales"
# Rows of orders by the minute; the later ones of a customer are corrections of the earlier.
ROWS = 400


def _schema(name: str, key: list[str], dimensions: dict[str, str], metrics: dict[str, str]) -> dict[str, Any]:
    fields = [{"name": field, "dataType": kind} for field, kind in dimensions.items()]
    fields.append({"name": "tags", "dataType": "STRING", "singleValueField": False})
    return {
        "schemaName": name,
        "primaryKeyColumns": key,
        "dimensionFieldSpecs": fields,
        "metricFieldSpecs": [{"name": field, "dataType": kind} for field, kind in metrics.items()],
        "dateTimeFieldSpecs": [
            {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
        ],
    }


def _configs(name: str, topic: str, broker: str, move: dict[str, str], tasks: dict[str, Any]) -> list[dict[str, Any]]:
    segments = {"timeColumnName": "ts", "schemaName": name, "replication": "1"}
    stream = {
        "streamType": "kafka",
        "stream.kafka.topic.name": topic,
        "stream.kafka.broker.list": broker,
        "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
        "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.stream.kafka.KafkaJSONMessageDecoder",
    }
    task = {"RealtimeToOfflineSegmentsTask": {"bucketTimePeriod": "1h", "bufferTimePeriod": "1m", **move}}
    realtime = {
        "tableName": name,
        "tableType": "REALTIME",
        "segmentsConfig": segments,
        "tableIndexConfig": {"streamConfigs": stream},
        "task": {"taskTypeConfigsMap": task},
    }
    offline = {
        "tableName": name,
        "tableType": "OFFLINE",
        "segmentsConfig": segments,
        "tableIndexConfig": {},
        "task": {"taskTypeConfigsMap": tasks},
    }
    if name == CUSTOMERS:
        realtime["upsertConfig"] = {"mode": "FULL", "comparisonColumns": ["version"]}
        realtime["routing"] = {"instanceSelectorType": "strictReplicaGroup"}
    return [realtime, offline]


def fill(broker: str, topic: str) -> None:
    """A topic for each table. One row of customers is rejected: its level is no INT."""
    for name in (CUSTOMERS, SALES):
        create_topic(broker, f"{topic}-{name}")
    customers, sales = list[str](), list[str]()
    for n in range(ROWS):
        ts = START_MS + n * 60_000 // 2
        level = 5_000_000_000 if n == 7 else n % 9
        customer = {"id": n % 100, "name": f"é{n}", "level": level, "version": n, "seen": ts, "tags": [f"a{n}", "b"]}
        customers.append(json.dumps({**customer, "ts": START_MS + n % 100 * 60_000}))
        sale = {"city": f"c{n % 3}", "price": f"{n % 2}.125", "tags": ["x"], "amount": n / 4, "pieces": n}
        sales.append(json.dumps({**sale, "ts": ts}))
    late = {"city": "c0", "price": "1.125", "tags": ["x"], "amount": 0.5, "pieces": 1, "ts": START_MS}
    sales.append(json.dumps(late))
    customers.append(json.dumps({"id": 5, "name": "late", "version": 20_000, "ts": START_MS + 5 * 60_000}))
    for name, rows in ((CUSTOMERS, customers), (SALES, sales)):
        produce(broker, f"{topic}-{name}", [TopicRecord(row.encode()) for row in rows])


def create(hy: Hybrid, broker: str, topic: str) -> None:
    sums = {"mergeType": "rollup", "amount.aggregationType": "sum", "pieces.aggregationType": "max"}
    day = {"1day.mergeType": "rollup", "1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "1d"}
    schema = _schema(SALES, [], {"city": "STRING", "price": "BIG_DECIMAL"}, {"amount": "DOUBLE", "pieces": "LONG"})
    rounded = {**sums, "roundBucketTimePeriod": "10m"}
    hy.create_table(schema, *_configs(SALES, f"{topic}-{SALES}", broker, rounded, {"MergeRollupTask": day}))
    hy.create_table(customers_schema("INT"), *_configs_of(broker, topic))


def customers_schema(level: str) -> dict[str, Any]:
    dimensions = {"id": "INT", "name": "STRING", "level": level, "version": "LONG", "seen": "TIMESTAMP"}
    return _schema(CUSTOMERS, ["id"], dimensions, {})


def corrections(hy: Hybrid, folder: Path, broker: str, topic: str) -> list[str]:
    """Everything: moves, a merge, a compaction, a replay, a job, a revert, a backfill, a statement on Spark.

    Returns what each step said.
    """
    create(hy, broker, topic)
    sales, customers = hy.table(SALES), hy.table(CUSTOMERS)
    said = list[str]()
    for _ in range(2):  # the last row of each topic comes late
        for table in (sales, customers):
            table.ingest_batch(ROWS)
            said.append(table.move(max_buckets=None).sentence)
    said.append(sales.upkeep.merge_segments().sentence)
    said.append(customers.upkeep.compact().sentence)
    hy.apply_table(customers_schema("LONG"), *_configs_of(broker, topic))
    said.append(hy.table(CUSTOMERS).replay_rejected().sentence)
    said += [*replaced(hy, folder), *backfilled(hy)]
    by_spark = f"set engine = 'spark'; select count(*), sum(version), max(name), min(seen) from {CUSTOMERS}"
    return [*said, str(hy.query(by_spark).rows)]


def corrected(hy: Hybrid, folder: Path, broker: str, topic: str) -> list[str]:
    """Of these, a job and its revert, and a backfill."""
    create(hy, broker, topic)
    customers = hy.table(CUSTOMERS)
    customers.ingest()
    customers.move(max_buckets=None)
    return [*replaced(hy, folder), *backfilled(hy)]


def _configs_of(broker: str, topic: str) -> list[dict[str, Any]]:
    compaction = {"UpsertCompactionTask": {"bufferTimePeriod": "0d", "invalidRecordsThresholdCount": "1"}}
    return _configs(CUSTOMERS, f"{topic}-{CUSTOMERS}", broker, {}, compaction)


def replaced(hy: Hybrid, folder: Path) -> list[str]:
    """A job that replaces a segment of customers by a file, and its revert."""
    rows = [{"id": n, "name": "job", "level": 1, "version": 10_000, "seen": START_MS, "tags": []} for n in range(30)]
    files = folder / "input"
    files.mkdir()
    (files / "rows.json").write_text("".join(json.dumps({**row, "ts": START_MS}) + "\n" for row in rows))
    names = sorted({segment.name for segment in hy.table(CUSTOMERS).segments() if segment.half == "OFFLINE"})
    spec = f"""
executionFrameworkSpec: {{name: standalone}}
jobType: SegmentCreationAndTarPush
inputDirURI: '{files}'
recordReaderSpec: {{dataFormat: json}}
tableSpec: {{tableName: {CUSTOMERS}}}
segmentNameGeneratorSpec: {{type: fixed, configs: {{segment.name: '{names[0]}'}}}}
"""
    (folder / "job.yml").write_text(spec)
    first = hy.run_job(folder / "job.yml", {})
    reverted = hy.table(CUSTOMERS).revert(str(first.act))
    return [first.sentence, reverted.sentence.replace(str(first.act), "ID")]


def backfilled(hy: Hybrid) -> list[str]:
    """A correction of values."""
    plan = hy.backfills.plan(CUSTOMERS, BackfillChange(update="name = concat(name, '!', '')", where="ts >= 0"))
    return [plan.sentence, hy.backfills.run(plan.id, BackfillOptions()).sentence.replace(plan.id, "ID")]


def rows_of(hy: Hybrid) -> dict[str, list[Any]]:
    """The rows of the tables, as queries and the halves show them."""
    names = [SALES, CUSTOMERS, f"{SALES}_OFFLINE", f"{CUSTOMERS}_OFFLINE"]
    return {name: sorted(map(str, hy.query(f"select * from {name} limit 10000").rows)) for name in names}


def run(folder: Path, broker: str, topic: str, which: str) -> str:
    """As JSON what `corrections` or `corrected` say in a home, and its rows. `topic` is the prefix of its topics."""
    work = corrections if which == "corrections" else corrected
    with hybrid.connect(folder) as hy:
        return json.dumps({"said": work(hy, folder, broker, topic), "rows": rows_of(hy)})
