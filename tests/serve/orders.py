"""The recipe's table on a live server, under a name of its own."""

from __future__ import annotations

import json
from pathlib import Path

from hybrid.kafka.topics import create_topic, produce
from tests.serve.server import Server

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"


def create_orders(
    server: Server, broker: str, name: str, events: int = 14, partitions: int = 1, segment_rows: int = 5
) -> str:
    """Creates schema, topic and table, and sends the first of its events. Returns the name when they are visible."""
    create_topic(broker, name, partitions)
    schema = {**json.loads((DATA / "orders_schema.json").read_text()), "schemaName": name}
    server.ok("POST", "/schemas", schema)
    for file in ("orders_table.json", "orders_offline_table.json"):
        config = json.loads((DATA / file).read_text())
        config = {**config, "tableName": name, "segmentsConfig": {**config["segmentsConfig"], "schemaName": name}}
        streams = config.get("tableIndexConfig", {}).get("streamConfigs")
        if streams:
            streams.update({"stream.kafka.topic.name": name, "auto.offset.reset": "smallest"})
            streams["realtime.segment.flush.threshold.rows"] = segment_rows
        server.ok("POST", f"/tables?kafka={broker}", config)
    lines = (DATA / "events.jsonl").read_bytes().splitlines()[:events]
    produce(broker, name, lines)
    server.await_true(lambda: server.rows(f"select count(*) from {name}") == [[len(lines)]], "rows are visible")
    return name
