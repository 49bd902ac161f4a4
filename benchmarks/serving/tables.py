"""The tables as Pinot's JSON: the same schema and configs are given to the product and to Pinot.

Pinot is tuned: rows of a segment sorted by time, an inverted index on every column that a statement looks up, a range
index on the time (it serves segments that are still consuming), a bloom filter on the key, several segments for its
threads. The product reads the same documents; of these it uses the columns of inverted indexes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOVE = "RealtimeToOfflineSegmentsTask"
Json = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """One table over a topic. `seal_rows` is how many rows of both partitions together fill their segments."""

    name: str
    topic: str
    upsert: bool
    seal_rows: int
    bucket: str = "6h"

    def schema(self) -> Json:
        key = {"primaryKeyColumns": ["order_id"]} if self.upsert else {}
        return {
            "schemaName": self.name,
            **key,
            "dimensionFieldSpecs": [
                {"name": "order_id", "dataType": "LONG"},
                {"name": "customer_id", "dataType": "LONG"},
                {"name": "order_status", "dataType": "STRING"},
            ],
            "metricFieldSpecs": [{"name": "amount", "dataType": "DOUBLE"}],
            "dateTimeFieldSpecs": [
                {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
            ],
        }

    def realtime(self, brokers: str) -> Json:
        config = self._config("REALTIME")
        config["tableIndexConfig"]["streamConfigs"] = {
            "streamType": "kafka",
            "stream.kafka.consumer.type": "lowlevel",
            "stream.kafka.topic.name": self.topic,
            "stream.kafka.broker.list": brokers,
            "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
            "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.stream.kafka.KafkaJSONMessageDecoder",
            "stream.kafka.consumer.factory.class.name": "org.apache.pinot.plugin.stream.kafka20.KafkaConsumerFactory",
            "realtime.segment.flush.threshold.rows": str(self.seal_rows),
            "realtime.segment.flush.threshold.time": "24h",
        }
        if self.upsert:
            config["upsertConfig"] = {"mode": "FULL", "comparisonColumn": "ts"}
            config["routing"] = {"instanceSelectorType": "strictReplicaGroup"}
        config["task"] = {"taskTypeConfigsMap": {MOVE: {"bucketTimePeriod": self.bucket, "bufferTimePeriod": "1m"}}}
        return config

    def offline(self) -> Json:
        config = self._config("OFFLINE")
        batch = {"segmentIngestionType": "APPEND", "segmentIngestionFrequency": "HOURLY"}
        config["ingestionConfig"] = {"batchIngestionConfig": batch}
        return config

    def _config(self, half: str) -> Json:
        return {
            "tableName": self.name,
            "tableType": half,
            "segmentsConfig": {
                "timeColumnName": "ts",
                "timeType": "MILLISECONDS",
                "schemaName": self.name,
                "replication": "1",
                "replicasPerPartition": "1",
            },
            "tenants": {},
            "tableIndexConfig": {
                "loadMode": "MMAP",
                "sortedColumn": ["ts"],
                "invertedIndexColumns": ["order_id", "customer_id", "order_status"],
                "rangeIndexColumns": ["ts"],
                "bloomFilterColumns": ["order_id"],
            },
            "metadata": {"customConfigs": {}},
        }
