"""Three readers, a producer, a mover and a replacer work on one server by HTTP: every answer is right and fresh.

Right: count, sum and distinct keys are those of the answer's own revision. Fresh: a row that Kafka had acknowledged
five seconds before the query began is in it.

It goes on until a move and a replacement were done, at least. HYBRID_CHURN_S=300 has it go on for long.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hybrid.kafka.topics import create_topic
from tests.serve.server import Server
from tests.soak.events import FIRST_MS, PARTITIONS, TABLES, Event, make_events
from tests.soak.harness import Producer
from tests.soak.served import (
    JOB,
    MOVE,
    Checked,
    Client,
    Load,
    check_answers,
    check_end,
    check_runs,
    counted,
    create_tables,
    drop_tables,
    lineage_of,
    oracles_of,
    producing,
)

SECONDS = float(os.environ.get("HYBRID_CHURN_S", "8"))
ROWS_PER_S = 200
READERS = 3


def churn(server: Server, broker: str, folder: Path) -> None:
    """Works on the server, checks what it answered, and drops the tables again. Its files are in `folder`."""
    topic = "soak-server-churn"
    create_topic(broker, topic, PARTITIONS)
    events = make_events(int(SECONDS * ROWS_PER_S * 4), seed=23)
    with producing(broker, topic) as producer:
        client = Client(server.url, patient=False)
        create_tables(client, topic, broker)
        load = Load(server.url, events, oracles_of(events))
        load.start(producer, folder / "corrections", rows_per_s=ROWS_PER_S, readers=READERS, seed=5)
        try:
            load.wait(SECONDS)
            _await_a_swap(client, load)
        finally:
            load.stop()
        # What is under way ends; nothing acts after it.
        runs = check_runs(client, load, server.home)
        checked = check_answers(load, lineage_of(client), server.home)
        check_end(client, load, events[: load.produced()])
        _check_late_rows(client, load, producer)
        drop_tables(client)
        client.close()
    _report(load, runs, checked)
    assert len(load.answers) > SECONDS
    assert runs[(MOVE, "DONE")] >= SECONDS / 60 and runs[(JOB, "DONE")] >= SECONDS / 120, runs


def _await_a_swap(client: Client, load: Load) -> None:
    """Lets the load go on until a move and a replacement were done: on a busy machine that can take longer."""
    deadline = time.monotonic() + 6 * SECONDS
    while time.monotonic() < deadline:
        runs = [client.ask("GET", f"/runs/{run}") for _, run in list(load.accepted)]
        done = {run["type"] for run in runs if run["state"] == "DONE"}
        if {MOVE, JOB} <= done:
            return
        load.wait(2)


def _report(load: Load, runs: Counter[tuple[str, str]], checked: Checked) -> None:
    by_table = dict(Counter(answer.table for answer in load.answers))
    took = sorted(answer.took_s for answer in load.answers)
    print(f"\n{len(load.answers)} answers {by_table}: {checked}; {load.produced() / SECONDS:.0f} rows/s produced")
    print(f"an answer took {took[len(took) // 2]:.3f} s (median), {took[-1]:.3f} s (max)")
    print(f"runs: {counted(runs)}")


def _check_late_rows(client: Client, load: Load, producer: Producer) -> None:
    """Rows that arrive after their bucket has moved are visible at once, and move later, once."""
    for table in TABLES:
        _move(client, table, max_buckets=None)
    before = {table: client.rows(_COUNT.format(table))[0][0] for table in TABLES}
    numbers = Counter(producer.acknowledged)
    late = [_late(numbers, n) for n in range(30 * PARTITIONS)]
    producer.send(late)
    sent = [*load.events[: load.produced()], *late]
    for table, oracle in oracles_of(sent).items():
        oracle.corrections.update(load.oracles[table].corrections)
        load.oracles[table] = oracle
    check_end(client, load, sent)
    for table in TABLES:
        assert client.rows(_COUNT.format(table)) == [[before[table]]], "visible, and not moved yet"
        assert f"{len(late)} late rows of '{table}'" in _move(client, table)["result"]
        assert client.rows(_COUNT.format(table)) == [[before[table] + len(late)]]
        assert _move(client, table)["state"] == "NOTHING"
    check_end(client, load, sent)


_COUNT = "select count(*) from {}_OFFLINE"


def _late(numbers: Counter[int], n: int) -> Event:
    p = n % PARTITIONS
    i, numbers[p] = numbers[p], numbers[p] + 1
    row = {"k": (9_000_000 + n) * PARTITIONS + p, "p": p, "i": i, "rev": 0, "v": n, "ts": FIRST_MS + n}
    return Event(p, i, json.dumps(row).encode(), row)


def _move(client: Client, table: str, **more: object) -> dict[str, Any]:
    status, answer = client.call("POST", "/verbs/move", {"table": table, **more})
    assert status == 202, answer
    return client.ended(answer["run"])
