"""Events of the soak tests and what must become of them, worked out here by plain Python, not by the product.

Every event carries its partition `p` and its number `i` in it, so that a query can be checked for being a prefix.
"""

import json
import random
from dataclasses import dataclass
from pathlib import Path

BUCKET_MS = 3_600_000
FIRST_MS = 1_700_000_400_000 // BUCKET_MS * BUCKET_MS
PARTITIONS = 3
TABLES = {"soak_a": False, "soak_u": True}  # name -> upsert

SCHEMA = {
    "primaryKeyColumns": ["k"],
    "dimensionFieldSpecs": [
        {"name": "k", "dataType": "INT"},
        {"name": "p", "dataType": "INT"},
        {"name": "i", "dataType": "INT"},
        {"name": "rev", "dataType": "INT"},
    ],
    "metricFieldSpecs": [{"name": "v", "dataType": "LONG"}],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}


def realtime_config(table: str, topic: str, brokers: str, *, upsert: bool) -> dict:
    config = {
        "tableName": table,
        "tableType": "REALTIME",
        "segmentsConfig": {"timeColumnName": "ts", "schemaName": table},
        "task": {
            "taskTypeConfigsMap": {
                "RealtimeToOfflineSegmentsTask": {"bucketTimePeriod": "1h", "bufferTimePeriod": "1m"}
            }
        },
        "tableIndexConfig": {
            "streamConfigs": {
                "streamType": "kafka",
                "stream.kafka.topic.name": topic,
                "stream.kafka.broker.list": brokers,
                "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.stream.kafka.KafkaJSONMessageDecoder",
                "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
                "realtime.segment.flush.threshold.rows": 1500,
            }
        },
    }
    return {**config, "upsertConfig": {"mode": "FULL"}} if upsert else config


def write_files(folder: Path, topic: str, brokers: str) -> None:
    """Schema and table configs of the append table `soak_a` and the upsert table `soak_u`."""
    for table, upsert in TABLES.items():
        documents = {
            "schema": {"schemaName": table, **SCHEMA},
            "realtime": realtime_config(table, topic, brokers, upsert=upsert),
            "offline": offline_config(table),
        }
        for name, document in documents.items():
            (folder / f"{table}_{name}.json").write_text(json.dumps(document))


def offline_config(table: str) -> dict:
    return {
        "tableName": table,
        "tableType": "OFFLINE",
        "segmentsConfig": {"timeColumnName": "ts", "schemaName": table},
    }


@dataclass(frozen=True)
class Event:
    """One message of partition `p` at offset `i`; `row` is None for a malformed one."""

    p: int
    i: int
    payload: bytes
    row: dict | None


def make_events(count: int, seed: int) -> list[Event]:
    """`count` events over three partitions: 1 of 50 malformed, 1 of 20 late by hours, keys shared by about 8 events."""
    chance = random.Random(seed)
    numbers = [0] * PARTITIONS
    events = []
    for n in range(count):
        p = chance.randrange(PARTITIONS)
        events.append(_event(chance, p, numbers[p], n, count))
        numbers[p] += 1
    return events


def _event(chance: random.Random, p: int, i: int, n: int, count: int) -> Event:
    if chance.random() < 0.02:
        bad = chance.choice(
            [b"{not json", b"[1,2]", b'{"k":1}', b"\xff\xfe", b'{"k":"x","p":0,"i":0,"rev":0,"v":1,"ts":1}']
        )
        return Event(p, i, bad, None)
    ts = FIRST_MS + n * 10 * BUCKET_MS // count
    if chance.random() < 0.05:
        hours = chance.randrange(1, 4)
        # The odd milliseconds keep times apart: versions of a key with equal times are another test's matter.
        ts = ts - hours * BUCKET_MS + hours
    # A key lives in one partition, as it does with a keyed producer, so its versions have one order of arrival.
    row = {"k": chance.randrange(max(1, count // 25)) * PARTITIONS + p, "p": p, "i": i, "rev": 0, "v": n, "ts": ts}
    return Event(p, i, json.dumps(row).encode(), row)


def live_rows(events: list[Event], *, upsert: bool) -> dict[tuple[int, int], dict]:
    """The rows that must be visible, by (p, i)."""
    rows = {(event.p, event.i): event.row for event in events if event.row is not None}
    if not upsert:
        return rows
    winners: dict[int, dict] = {}
    for row in rows.values():
        best = winners.get(row["k"])
        if best is None or (row["ts"], row["i"]) > (best["ts"], best["i"]):
            winners[row["k"]] = row
    return {(row["p"], row["i"]): row for row in winners.values()}


def rejected(events: list[Event]) -> set[tuple[int, int]]:
    return {(event.p, event.i) for event in events if event.row is None}
