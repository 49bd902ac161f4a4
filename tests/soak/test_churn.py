"""While ingestion, moves and replacements run in other processes, every answer equals the oracle's for some prefix of
each partition, at least as long as what was acknowledged before the query; and replacements are seen whole.

It goes on until a replacement was done, at least. HYBRID_CHURN_S=300 has it go on for long.
"""

import os
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

import hybrid
from hybrid.kafka.topics import create_topic
from hybrid.lake.commit_context import CommitContext
from tests.shared_jvm import start_forked
from tests.soak.events import PARTITIONS, TABLES, Event, make_events, write_files
from tests.soak.harness import Producer, start

SECONDS = float(os.environ.get("HYBRID_CHURN_S", "12"))
LONGEST_S = max(360.0, 4 * SECONDS)  # on a busy machine the first replacement can take long
COUNT = int(1000 * SECONDS)
ASK_EACH_S = 0.25  # whoever only asks must not take the cores from what there is to ask about

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

Answer = tuple[int, int]


def prefix_answers(events: list[Event], *, upsert: bool) -> list[list[Answer]]:
    """By partition, (count, sum of v) of the live rows after each number of its messages."""
    answers: list[list[Answer]] = [[(0, 0)] for _ in range(PARTITIONS)]
    best: dict[int, dict] = {}
    for event in events:
        count, total = answers[event.p][-1]
        row = event.row
        if row is not None:
            known = best.get(row["k"]) if upsert else None
            if known is None:
                count, total = count + 1, total + row["v"]
            elif (row["ts"], row["i"]) > (known["ts"], known["i"]):
                total += row["v"] - known["v"]
            if upsert and (known is None or (row["ts"], row["i"]) > (known["ts"], known["i"])):
                best[row["k"]] = row
        answers[event.p].append((count, total))
    return answers


def test_every_answer_under_churn_is_a_prefix(broker: str, tmp_path: Path, workbench: CommitContext) -> None:
    home, topic = tmp_path / "home", "soak-churn"
    create_topic(broker, topic, PARTITIONS)
    write_files(tmp_path, topic, broker)
    events = make_events(COUNT, seed=11)
    answers = {table: prefix_answers(events, upsert=upsert) for table, upsert in TABLES.items()}
    assert start(home, tmp_path / "create.log", "--create", str(tmp_path)).wait(timeout=60) == 0
    workers = [
        _loop(workbench, home, tmp_path / "ingest.log", "ingest"),
        _loop(workbench, home, tmp_path / "move.log", "move", "correct"),
    ]
    producer = Producer(broker, topic)
    feeding = threading.Thread(target=_feed, args=(producer, events, SECONDS * 0.8))
    feeding.start()
    try:
        begun = time.monotonic()

        def done() -> bool:
            passed_s, replaced = time.monotonic() - begun, "Replaced" in (tmp_path / "move.log").read_text()
            return passed_s > (SECONDS if replaced else LONGEST_S)

        checked = _query_until(home, answers, producer, done)
    finally:
        feeding.join()
        producer.close()
        for worker in workers:
            worker.terminate()
            worker.join(120)
    assert checked > 10
    for name in ("ingest.log", "move.log"):
        assert "Traceback" not in (tmp_path / name).read_text(), (tmp_path / name).read_text()[-3000:]
    assert "Replaced" in (tmp_path / "move.log").read_text()


def _loop(workbench: CommitContext, home: Path, log: Path, *verbs: str) -> BaseProcess:
    """A process that does verbs again and again. In the JVM of the tests: tests/cases/test_crashes.py has two JVMs."""
    words = (str(home), ",".join(TABLES), *verbs, "--loop", str(LONGEST_S))
    return start_forked("", workbench, "tests.soak.worker", words, log)


def _feed(producer: Producer, events: list[Event], seconds: float) -> None:
    step = 200
    for begin in range(0, len(events), step):
        producer.send(events[begin : begin + step])
        time.sleep(seconds * step / len(events))


def _query_until(home: Path, answers: dict, producer: Producer, done: Callable[[], bool]) -> int:
    hy = hybrid.connect(home)
    checked, revisions = 0, {table: {} for table in TABLES}
    try:
        while not done():
            for table in TABLES:
                at_least = dict(producer.acknowledged)
                result = hy.query(f"select p, count(*), sum(v) from {table} group by p order by p limit 100")
                found = {p: (count, int(total)) for p, count, total in result.rows}
                for p in range(PARTITIONS):
                    possible = answers[table][p][at_least.get(p, 0) :]
                    assert found.get(p, (0, 0)) in possible, f"{table} partition {p}: {found.get(p)}, {result.revision}"
                _check_replacements(hy, table, revisions[table])
                checked += 1
            time.sleep(ASK_EACH_S)
    finally:
        hy.close()
    return checked


def _check_replacements(hy: hybrid.Hybrid, table: str, known: dict[str, int]) -> None:
    """A segment is seen before or after its replacement, never between, and never goes back."""
    sql = f"select $segmentName, min(rev), max(rev) from {table}_OFFLINE group by $segmentName limit 1000"
    for segment, low, high in hy.query(sql).rows:
        assert low == high, f"{table} {segment}: rows of two revisions, {low} to {high}"
        assert low >= known.get(segment, 0), f"{table} {segment}: went back from {known[segment]} to {low}"
        known[segment] = low
