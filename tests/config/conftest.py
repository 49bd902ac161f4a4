from __future__ import annotations

import copy
from typing import Any

import pytest

SCHEMA: dict[str, Any] = {
    "schemaName": "orders",
    "primaryKeyColumns": ["order_id"],
    "dimensionFieldSpecs": [
        {"name": "order_id", "dataType": "INT"},
        {"name": "order_status", "dataType": "STRING"},
        {"name": "gone", "dataType": "BOOLEAN"},
        {"name": "labels", "dataType": "STRING", "singleValueField": False},
    ],
    "metricFieldSpecs": [{"name": "amount", "dataType": "FLOAT"}],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}
# The published orders recipe, key by key.
REALTIME: dict[str, Any] = {
    "tableName": "orders",
    "tableType": "REALTIME",
    "segmentsConfig": {
        "timeColumnName": "ts",
        "timeType": "MILLISECONDS",
        "segmentPushType": "APPEND",
        "segmentAssignmentStrategy": "BalanceNumSegmentAssignmentStrategy",
        "schemaName": "orders",
        "replicasPerPartition": "1",
    },
    "task": {
        "taskTypeConfigsMap": {"RealtimeToOfflineSegmentsTask": {"bucketTimePeriod": "2h", "bufferTimePeriod": "1m"}}
    },
    "tenants": {},
    "tableIndexConfig": {
        "loadMode": "MMAP",
        "streamConfigs": {
            "streamType": "kafka",
            "stream.kafka.consumer.type": "lowLevel",
            "stream.kafka.topic.name": "orders",
            "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.stream.kafka.KafkaJSONMessageDecoder",
            "stream.kafka.hlc.zk.connect.string": "zookeeper:2181/kafka",
            "stream.kafka.consumer.factory.class.name": "org.apache.pinot.plugin.stream.kafka20.KafkaConsumerFactory",
            "stream.kafka.zk.broker.url": "zookeeper:2181/kafka",
            "stream.kafka.broker.list": "kafka:9093",
            "realtime.segment.flush.threshold.rows": 5,
        },
    },
    "metadata": {"customConfigs": {}},
    "routing": {"instanceSelectorType": "strictReplicaGroup"},
}
OFFLINE: dict[str, Any] = {
    "tableName": "orders",
    "tableType": "OFFLINE",
    "segmentsConfig": {"timeColumnName": "ts", "schemaName": "orders", "replication": "1", "replicasPerPartition": "1"},
    "ingestionConfig": {
        "batchIngestionConfig": {"segmentIngestionType": "APPEND", "segmentIngestionFrequency": "HOURLY"}
    },
    "tableIndexConfig": {"loadMode": "MMAP"},
    "tenants": {},
    "metadata": {},
}


@pytest.fixture
def schema_doc() -> dict[str, Any]:
    return copy.deepcopy(SCHEMA)


@pytest.fixture
def realtime_doc() -> dict[str, Any]:
    return copy.deepcopy(REALTIME)


@pytest.fixture
def offline_doc() -> dict[str, Any]:
    return copy.deepcopy(OFFLINE)
