"""Churn with checked answers on a cluster, while each of its parts is killed in turn.

Events are produced, moved and corrected all the time; a reader at each of two servers that follow. After each kill, or
the return of what was stopped, new events are committed and answered by both within 30 s. Every event is there once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from hybrid.kafka.topics import create_topic
from tests.cluster.churn import ClusterLoad, WriterClient, await_tables, check_answers
from tests.cluster.cluster import BROKERS, DATABASE, READERS, SPARK, STORE, Cluster
from tests.cluster.role import Role
from tests.soak.events import PARTITIONS, make_events
from tests.soak.served import (
    JOB,
    MOVE,
    Client,
    check_end,
    counted,
    create_tables,
    lineage_of,
    oracles_of,
    producing,
)

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1500)]

TOPIC = "churn"
ROWS_PER_S = 40
EVENTS = 40_000
RECOVERY_S_MAX = 30.0
START_S = 300.0
WAIT_S = 240.0  # to see how long it takes, also where it takes too long
OUTAGE_S = 30.0
PAUSE_S = 8.0

# Each returns the time from which the recovery counts, and what is done behind the recovery.
Disturbance = Callable[[Cluster, ClusterLoad], tuple[float, Callable[[], None]]]


def _nothing() -> None: ...


def kill_pipeline(cluster: Cluster, load: ClusterLoad) -> tuple[float, Callable[[], None]]:
    """Its own server starts another one."""
    cluster.writer().kill_role("pipeline")
    return time.monotonic(), _nothing


def kill_writing_server(cluster: Cluster, load: ClusterLoad) -> tuple[float, Callable[[], None]]:
    """All its processes and its JVM: the standby takes over; the former writer comes back behind that, and follows."""
    role = cluster.writer().role
    role.kill()
    return time.monotonic(), role.start


def _restarted(name: str) -> Disturbance:
    return lambda cluster, load: _kill_and_start(cluster.roles[name])


def _kill_and_start(role: Role) -> tuple[float, Callable[[], None]]:
    role.kill()
    killed_at = time.monotonic()
    role.start()
    return killed_at, _nothing


def kill_leader(cluster: Cluster, load: ClusterLoad) -> tuple[float, Callable[[], None]]:
    """The broker that leads a partition of the topic."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.brokers)
    try:
        (topic,) = admin.describe_topics([TOPIC])
    finally:
        admin.close()
    return _kill_and_start(cluster.roles[BROKERS[topic["partitions"][0]["leader_id"] - 1]])


def _stopped(name: str) -> Disturbance:
    def disturb(cluster: Cluster, load: ClusterLoad) -> tuple[float, Callable[[], None]]:
        role = cluster.roles[name]
        role.kill()
        load.wait(OUTAGE_S)
        role.start()
        role.await_answers()
        return time.monotonic(), _nothing

    return disturb


DISTURBANCES: dict[str, Disturbance] = {
    "the pipeline's process killed": kill_pipeline,
    "a query server killed": _restarted(READERS[0]),
    "a Spark worker killed": _restarted(SPARK[1]),
    "a Kafka broker killed, which leads": kill_leader,
    "PostgreSQL stopped for 30 s": _stopped(DATABASE),
    "the store stopped for 30 s": _stopped(STORE),
    "the writing server killed": kill_writing_server,
}


def test_every_part_is_killed_under_load(running: Cluster, tmp_path: Path) -> None:
    create_topic(running.brokers, TOPIC, PARTITIONS)
    events = make_events(EVENTS, seed=31)
    client = WriterClient(running)
    create_tables(client, TOPIC, running.brokers)
    await_tables(running)
    load = ClusterLoad(running.writer().url, events, oracles_of(events), patient=True)
    took: dict[str, float] = {}
    with producing(running.brokers, TOPIC) as producer:
        load.begin(running, producer, tmp_path / "corrections", ROWS_PER_S, seed=7)
        try:
            began = time.monotonic()
            print(f"\nfirst events answered after {load.await_recovery(running, began, START_S):.1f} s")
            for name, disturb in DISTURBANCES.items():
                load.wait(PAUSE_S)
                since, afterwards = disturb(running, load)
                took[name] = load.await_recovery(running, since, WAIT_S)
                print(f"{name}: {took[name]:.1f} s until new events were committed and answered", flush=True)
                afterwards()
            load.wait(PAUSE_S)
        finally:
            load.stop()
    sent = events[: load.produced()]
    checked = check_answers(load, running, lineage_of(client))
    for server in (running.writer(), *running.readers):
        check_end(Client(server.url, patient=True, secret=server.secret), load, sent)
    print(f"{checked}; {len(sent)} events, each once at 3 servers; runs: {counted(load.runs)}")
    for failure in load.failures:
        print(f"  {failure}")
    assert load.runs[(MOVE, "DONE")] and load.runs[(JOB, "DONE")], load.runs
    assert max(took.values()) < RECOVERY_S_MAX, took
