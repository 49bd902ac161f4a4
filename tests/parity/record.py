"""Asks a real Pinot all statements and records its answers, or compares them with the recording.

    PINOT_CONTROLLER_URL=http://127.0.0.1:9100 PINOT_BROKER_URL=http://127.0.0.1:8199 PINOT_KAFKA=127.0.0.1:9092 \
        python -m tests.parity.record [--compare]

Neither Pinot nor Kafka is started here. The table is created and its rows are produced when it is not there yet.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from decimal import Decimal
from typing import Any

from tests.parity.fixtures import ROWS, SCHEMA, TABLE, Answer, fixtures, recorded, write_recorded

LOAD_S_MAX = 120


def main(compare: bool) -> int:
    """Exit code 1 when the answers are not the recorded ones."""
    controller, broker = os.environ["PINOT_CONTROLLER_URL"], os.environ["PINOT_BROKER_URL"]
    _load(controller, broker, os.environ["PINOT_KAFKA"])
    answers = {one.id: (one.sql, ask(broker, one.sql)) for one in fixtures()}
    if not compare:
        write_recorded(_call(f"{controller}/version")["pinot-core"], answers)
        return 0
    before = recorded()
    changed = [name for name, (sql, answer) in answers.items() if before.get(name) != (sql, answer)]
    for name in changed:
        sys.stdout.write(f"{name}\n  recorded {before.get(name)}\n  now      {answers[name]}\n")
    return 1 if changed else 0


def ask(broker: str, sql: str) -> Answer:
    """Pinot's answer to one statement."""
    try:
        found = _call(f"{broker}/query/sql", {"sql": sql})
    except RuntimeError as error:  # Pinot's broker fell over the statement
        return Answer(error=500, message=str(error).partition(": ")[2])
    for problem in found.get("exceptions", ()):
        message = str(problem.get("message", "")).strip().splitlines()
        return Answer(error=int(problem["errorCode"]), message=" / ".join(message[:2])[:300])
    table = found.get("resultTable") or {"dataSchema": {"columnNames": [], "columnDataTypes": []}, "rows": []}
    schema = table["dataSchema"]
    types = tuple(schema["columnDataTypes"])
    rows = tuple(tuple(_exact(*pair) for pair in zip(row, types, strict=True)) for row in table["rows"])
    return Answer(tuple(schema["columnNames"]), types, rows)


def _exact(value: Any, kind: str) -> Any:
    """Pinot writes BIG_DECIMALs as numbers, of which floats would lose digits: they are recorded as texts."""
    if isinstance(value, list):
        return [_exact(one, kind) for one in value]
    if not isinstance(value, Decimal):
        return value
    return str(value) if kind == "BIG_DECIMAL" else float(value)


def _load(controller: str, broker: str, kafka: str) -> None:
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    config = json.loads(TABLE.read_text(encoding="utf-8"))
    if config["tableName"] not in _call(f"{controller}/tables")["tables"]:
        _produce(kafka, config["tableIndexConfig"]["streamConfigs"]["stream.kafka.topic.name"], lines)
        config["tableIndexConfig"]["streamConfigs"]["stream.kafka.broker.list"] = kafka
        _call(f"{controller}/schemas", json.loads(SCHEMA.read_text(encoding="utf-8")))
        _call(f"{controller}/tables?validationTypesToSkip=ALL", config)
    deadline = time.monotonic() + LOAD_S_MAX
    while ask(broker, "select count(*) from parity").rows != ((len(lines),),):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Pinot does not show {len(lines)} rows")
        time.sleep(1)


def _produce(kafka: str, topic: str, lines: list[str]) -> None:
    from kafka import KafkaProducer

    from hybrid.kafka.topics import create_topic

    create_topic(kafka, topic)
    producer = KafkaProducer(bootstrap_servers=kafka)
    for line in lines:
        producer.send(topic, line.encode(), partition=0)
    producer.flush()
    producer.close()


def _call(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read(), parse_float=Decimal)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{url}: {error.code} {error.read().decode()[:500]}") from error


if __name__ == "__main__":
    sys.exit(main("--compare" in sys.argv[1:]))
