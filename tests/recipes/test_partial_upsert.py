"""PARTIAL upsert with two comparison columns on Kafka: what producers of different columns send becomes one row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.kafka.topics import TopicRecord, produce
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SCHEMA = {
    "schemaName": "rides",
    "primaryKeyColumns": ["id"],
    "dimensionFieldSpecs": [
        {"name": "id", "dataType": "INT"},
        {"name": "driver", "dataType": "STRING"},
        {"name": "stops", "dataType": "STRING", "singleValueField": False},
        {"name": "gone", "dataType": "BOOLEAN"},
    ],
    "metricFieldSpecs": [
        {"name": "fare", "dataType": "LONG"},
        {"name": "billed_at", "dataType": "LONG"},
        {"name": "driven_at", "dataType": "LONG"},
    ],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}
DAY = 86_400_000
MESSAGES = [
    {"id": 1, "ts": 1, "billed_at": 10, "fare": 100},
    {"id": 1, "ts": 2, "driven_at": 5, "driver": "ann", "stops": ["a"]},
    {"id": 1, "ts": DAY, "billed_at": 30, "fare": 50},
    {"id": 1, "ts": DAY, "billed_at": 20, "fare": 7},
    {"id": 1, "ts": DAY, "driven_at": 4, "driver": "bob"},
    {"id": 1, "ts": 2 * DAY, "driven_at": 6, "stops": ["b", "a"]},
    {"id": 2, "ts": 3, "billed_at": 10, "fare": 1},
    {"id": 2, "ts": DAY, "billed_at": 11, "gone": True},
    {"id": 3, "ts": 4, "billed_at": 1, "driven_at": 1},
    {"id": 3, "ts": 4},
]
SQL = "select id, driver, fare, stops, billed_at, driven_at, ts from rides order by id"
FOLDED = {"id": 1, "driver": "ann", "fare": 150, "stops": ["a", "b"], "billed_at": 30, "driven_at": 6, "ts": 2 * DAY}


def _documents(folder: Path, topic: str, **strategies: str) -> list[str]:
    index = {
        "nullHandlingEnabled": True,
        "streamConfigs": {
            "streamType": "kafka", "stream.kafka.topic.name": topic, "stream.kafka.broker.list": "there:1",
            "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.stream.kafka.KafkaJSONMessageDecoder",
            "auto.offset.reset": "smallest",
        },
    }  # fmt: skip
    upsert = {
        "mode": "PARTIAL", "comparisonColumns": ["billed_at", "driven_at"], "deleteRecordColumn": "gone",
        "partialUpsertStrategies": {"fare": "INCREMENT", "stops": "UNION", **strategies},
    }  # fmt: skip
    task = {"taskTypeConfigsMap": {"RealtimeToOfflineSegmentsTask": {"bucketTimePeriod": "1d"}}}
    common = {"tableName": "rides", "segmentsConfig": {"timeColumnName": "ts"}}
    realtime = {**common, "tableType": "REALTIME", "tableIndexConfig": index, "upsertConfig": upsert, "task": task}
    offline = {**common, "tableType": "OFFLINE", "tableIndexConfig": {"nullHandlingEnabled": True}}
    words = []
    for option, name, doc in (("schema", "s", SCHEMA), ("config", "r", realtime), ("config", "o", offline)):
        path = folder / f"{name}.json"
        path.write_text(json.dumps(doc))
        words += [f"--{option}", str(path)]
    return words


def test_the_same_answer_everywhere_and_corrections_that_say_what_they_do(
    tmp_path: Path, capsys: Any, broker: str, topic: str
) -> None:
    home = RecipeHome(tmp_path / "home", capsys)
    home.run("table", "create", *_documents(tmp_path, topic), "--kafka", broker)
    # Producers whose clocks jump: in a partition offsets tell what arrived first.
    produce(broker, topic, [
        TopicRecord(json.dumps(one).encode(), key=b"1", timestamp_ms=1_700_000_000_000 - place)
        for place, one in enumerate(MESSAGES)
    ])  # fmt: skip
    assert home.rows(SQL) == [FOLDED], "in the tail"
    assert home.run("ingest", "rides", "--until-caught-up")["rejected"] == 2
    assert home.rows(SQL) == [FOLDED]
    reasons = [one["reason"] for one in home.run("rejected", "list", "rides")]
    assert sorted(reason.partition(":")[0] for reason in reasons) == [
        "Columns 'billed_at' and 'driven_at' are missing or null",
        "Columns 'billed_at' and 'driven_at' have a value",
    ]
    assert "2 buckets" in home.run("move", "rides", "--max-buckets", "2")["sentence"]
    assert home.rows(SQL) == [FOLDED], "in two offline segments and REALTIME"
    home.run("move", "rides")
    assert home.rows(SQL) == [FOLDED]
    assert home.rows("select count(*) as n from rides_OFFLINE") == [{"n": 7}], "every row but the delete marker"
    _corrected(home, tmp_path)
    # Rows are kept as they came: another strategy holds for the past, too.
    changed = home.run("table", "apply", *_documents(tmp_path, topic, fare="MAX", driver="FORCE_OVERWRITE"))
    assert "Changed table 'rides'" in changed["sentence"]
    assert home.rows(SQL) == [{**FOLDED, "fare": 100, "driver": None}]
    other = _documents(tmp_path, topic)
    home.run("table", "apply", *other[:4], "--set", "/upsertConfig/mode=FULL", *other[4:], code=1)
    assert "its upsert settings" in home.messages


def _corrected(home: RecipeHome, folder: Path) -> None:
    """A job whose rows arrive too late to count, and a statement that would count rows twice."""
    (folder / "in").mkdir()
    row = {"id": 1, "ts": 5, "billed_at": 12, "fare": 1000}
    (folder / "in" / "rows.json").write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": 4}) + "\n")
    spec = folder / "job.yml"
    spec.write_text(
        "jobType: SegmentCreationAndTarPush\ninputDirURI: in\nincludeFileNamePattern: 'glob:**/*.json'\n"
        "recordReaderSpec: {dataFormat: json}\ntableSpec: {tableName: rides}\n"
        "segmentNameGeneratorSpec: {type: fixed, configs: {segment.name: more}}\n"
    )
    report = home.run("job", "run", str(spec), "--append", "--dry-run")
    assert any("1 row of the input will be ignored" in one for one in report["warnings"]), report
    home.run("job", "run", str(spec), "--append", "--sql", "select * from rides", "--dry-run", code=2)
    assert "FROM rides gives one row for each key, folded of all its rows" in home.messages
