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
from benchmarks.serving.stream import Feeder, Flood
from benchmarks.serving.workload import PARTITIONS, START_MS, STATUSES, message

FIRST_PROBE = 1_000_000_000
RATE = 2000
_PATIENCE_S = 20.0
_WARM_S = 20.0
_PROBE_S, _SETTLE_S = 0.4, 120.0


def arriving(n: int, keys: int) -> tuple[int, bytes]:
    """The nth of the events that arrive meanwhile."""
    key = n * 7919 % keys
    return key % PARTITIONS, message(key, key % 1000, n % len(STATUSES), 1.0, START_MS + n)


def freshness(endpoint: Endpoint, brokers: str, table: str, topic: str, samples: int) -> Json:
    """Milliseconds from acknowledged to visible, of `samples` rows, after 20 s in which rows are sampled, too.

    `never`: rows that were not seen for 20 s; `twice`: counted twice; `slowest`: the ten slowest samples, each with the
    seconds since the first.
    """
    client = Client(endpoint)
    producer = KafkaProducer(bootstrap_servers=brokers, acks="all", linger_ms=0)
    took, never, twice, number = [], 0, 0, 0
    with Feeder(brokers, topic, partial(arriving, keys=100_000), RATE) as feeder:
        warm_at = time.perf_counter() + _WARM_S
        while len(took) + never < samples:
            key, number = FIRST_PROBE + number, number + 1
            ts = START_MS + feeder.sent
            producer.send(topic, message(key, 1, 0, 1.0, ts), partition=key % PARTITIONS).get(timeout=30)
            acknowledged = time.perf_counter()
            seen = _await(client, f"select count(*) from {table} where order_id = {key}", acknowledged + _PATIENCE_S)
            visible = time.perf_counter()
            never += seen == 0
            twice += seen > 1
            if seen and acknowledged > warm_at:
                took.append(((visible - acknowledged) * 1000, acknowledged - warm_at))
        rate = feeder.rate_of
    producer.close()
    client.close()
    figures = summary([ms for ms, _ in took]) if took else {}
    slowest = [{"ms": round(ms, 1), "at_s": round(at_s, 1)} for ms, at_s in sorted(took, reverse=True)[:10]]
    return {"ms": figures, "never": never, "twice": twice, "arriving_per_s": round(rate), "slowest": slowest}


def sustained(
    endpoint: Endpoint, brokers: str, table: str, topic: str, rate: int, seconds: float, *, upsert: bool
) -> Json:
    """How old rows are when they are first seen while `rate` events a second arrive: a probe about every half second.

    `all_seen_s` is how long after the flood every row of it was counted; of an upsert table only keys could be.
    """
    client = Client(endpoint)
    producer = KafkaProducer(bootstrap_servers=brokers, acks="all", linger_ms=0)
    ready = [arriving(n, keys=100_000) for n in range(100_000)]
    before = _count(client, table)
    took, never, number = [], 0, 0
    with Flood(brokers, topic, ready, rate) as flood:
        began = time.perf_counter()
        while time.perf_counter() < began + seconds:
            key = FIRST_PROBE * 2 + number
            producer.send(topic, message(key, 1, 0, 1.0, START_MS + number), partition=key % PARTITIONS).get(timeout=30)
            acknowledged = time.perf_counter()
            seen = _await(client, f"select count(*) from {table} where order_id = {key}", acknowledged + _PATIENCE_S)
            never += seen == 0
            number += 1
            if seen:
                took.append((time.perf_counter() - acknowledged) * 1000)
            time.sleep(_PROBE_S)
        passed_s = time.perf_counter() - began
        arrived = flood.sent / passed_s
    ended, expected = time.perf_counter(), before + flood.sent + number
    while not upsert and _count(client, table) != expected and time.perf_counter() < ended + _SETTLE_S:
        time.sleep(0.1)
    settled = not upsert and _count(client, table) == expected
    producer.close()
    client.close()
    return {
        "ms": summary(took) if took else {},
        "worst_ms": round(max(took), 1) if took else None,
        "never": never,
        "arriving_per_s": round(arrived),
        "seconds": round(passed_s, 1),
        "all_seen_s": round(time.perf_counter() - ended, 1) if settled else None,
        "upsert": upsert,
    }


def _count(client: Client, table: str) -> int:
    rows = client.rows(f"select count(*) from {table}")
    return int(rows[0][0]) if rows else 0


def _await(client: Client, sql: str, deadline: float) -> int:
    while time.perf_counter() < deadline:
        rows = client.rows(sql)
        if rows and rows[0][0]:
            return int(rows[0][0])
    return 0
