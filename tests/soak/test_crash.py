"""The process dies at every commit site, and at random; nothing is lost, nothing is there twice.

Thousands of events (shared keys, late rows, malformed rows, three partitions) go to an append and an upsert table.
After each death, before anything is started again, the tables must already answer right: what is not committed is in
Kafka.

HYBRID_CRASH_ALL=1 has every kind die at every position, and more deaths at random.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from hybrid.kafka.topics import create_topic
from hybrid.lake.commit_context import CommitContext
from tests.shared_jvm import die_at, run_forked
from tests.soak.events import TABLES, live_rows, make_events, rejected, write_files
from tests.soak.harness import Producer, check_all_once, rejected_places, start

# Sealing by age has a test of its own: it needs a clock.
KINDS = ("create", "ingest", "move", "replace", "revert", "boundary")
POSITIONS = ("before", "inside", "after")
# Each kind dies at each position in a test of its own (tests/cases, tests/replace); here deaths come on top of each
# other, some kinds at one position unless all are asked for.
IS_LONG = "HYBRID_CRASH_ALL" in os.environ
FAILPOINTS = [
    f"{kind}.commit.{position}"
    for number, kind in enumerate(KINDS)
    for position in (POSITIONS if IS_LONG else POSITIONS[number % 3 :][: number % 2])
]
# Processes that die in an ingestion, or at random, have JVMs of their own, which they leave as orphans.
ORPHANING = "ingest."
RANDOM_KILLS = 5 if IS_LONG else 1
COUNT = 20_000 if IS_LONG else 6_000
VERBS = ("ingest", "move", "correct", "revert", "boundary")
LAST_VERBS = ("ingest", "move", "correct")

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(1500)]


def check(home: Path, events: list) -> None:
    for table, upsert in TABLES.items():
        check_all_once(home, table, live_rows(events, upsert=upsert), rejected(events))


def test_death_at_every_failpoint_and_at_random(broker: str, tmp_path: Path, workbench: CommitContext) -> None:
    home, log = tmp_path / "home", tmp_path / "worker.log"
    create_topic(broker, "soak-crash", 3)
    write_files(tmp_path, "soak-crash", broker)
    events = make_events(COUNT, seed=7)
    producer = Producer(broker, "soak-crash")
    step = COUNT // (len(FAILPOINTS) + RANDOM_KILLS) + 1
    sent: list = []

    def send_more() -> None:
        more = events[len(sent) : len(sent) + step]
        producer.send(more)
        sent.extend(more)

    try:
        for number, failpoint in enumerate(FAILPOINTS):
            send_more()
            # The first table is the one that dies: each of the two in turn.
            tables = "soak_a,soak_u" if number % 2 else "soak_u,soak_a"
            words = (*VERBS, "--create", str(tmp_path))
            if failpoint.startswith(ORPHANING):
                worker = start(home, log, *words, tables=tables, failpoint=failpoint)
                assert worker.wait(timeout=300) == -signal.SIGKILL, (
                    f"{failpoint} was not reached:\n{log.read_text()[-3000:]}"
                )
            else:
                die_at(failpoint, workbench, "tests.soak.worker", str(home), tables, *words)
            if not failpoint.startswith("create"):
                check(home, sent)
        for seed in range(RANDOM_KILLS):
            send_more()
            _kill_at_random(home, log, random.Random(seed))
            check(home, sent)
        producer.send(events[len(sent) :])
        last = ("tests.soak.worker", str(home), ",".join(TABLES), *LAST_VERBS)
        code, words = run_forked("", workbench, *last, timeout_s=300)
        assert code == 0, words[-3000:]
    finally:
        producer.close()
    check(home, events)
    for table in TABLES:
        assert rejected_places(home, table) == rejected(events)


def _kill_at_random(home: Path, log: Path, chance: random.Random) -> None:
    """kill -9 after some seconds: of Python alone (its JVM may go on for a moment), or of both at once."""
    worker = start(home, log, *VERBS, "--loop", "60")
    time.sleep(chance.uniform(4, 16 if IS_LONG else 10))
    if chance.random() < 0.5:
        os.kill(worker.pid, signal.SIGKILL)
    else:
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(timeout=30)
