"""Freshness: from the acknowledgement of a row by Kafka to the first answer that counts it, while others arrive.

Sample after sample: one row with a key of its own is produced, and once it is acknowledged its count is asked for again
and again until it is 1.
"""

from __future__ import annotations

import time
from functools import partial

from kafka import KafkaProducer

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.measure import Json, summary
from benchmarks.serving.stream import Feeder
from benchmarks.serving.workload import PARTITIONS, START_MS, STATUSES, message

FIRST_PROBE = 1_000_000_000
RATE = 2000
_PATIENCE_S = 20.0
_WARM = 50


def arriving(n: int, keys: int) -> tuple[int, bytes]:
    """The nth of the events that arrive meanwhile."""
    key = n * 7919 % keys
    return key % PARTITIONS, message(key, key % 1000, n % len(STATUSES), 1.0, START_MS + n)


def freshness(endpoint: Endpoint, brokers: str, table: str, topic: str, samples: int) -> Json:
    """Milliseconds from acknowledged to visible. `never`: rows that were not seen for 20 s; `twice`: counted twice."""
    client = Client(endpoint)
    producer = KafkaProducer(bootstrap_servers=brokers, acks="all", linger_ms=0)
    took, never, twice = [], 0, 0
    with Feeder(brokers, topic, partial(arriving, keys=100_000), RATE) as feeder:
        while feeder.sent < RATE:
            time.sleep(0.05)
        for number in range(samples + _WARM):
            key = FIRST_PROBE + number
            ts = START_MS + feeder.sent
            producer.send(topic, message(key, 1, 0, 1.0, ts), partition=key % PARTITIONS).get(timeout=30)
            acknowledged = time.perf_counter()
            seen = _await(client, f"select count(*) from {table} where order_id = {key}", acknowledged + _PATIENCE_S)
            visible = time.perf_counter()
            never += seen == 0
            twice += seen > 1
            if seen and number >= _WARM:
                took.append((visible - acknowledged) * 1000)
        rate = feeder.rate_of
    producer.close()
    client.close()
    figures = summary(took) if took else {}
    return {"ms": figures, "never": never, "twice": twice, "arriving_per_s": round(rate)}


def _await(client: Client, sql: str, deadline: float) -> int:
    while time.perf_counter() < deadline:
        rows = client.rows(sql)
        if rows and rows[0][0]:
            return int(rows[0][0])
    return 0
