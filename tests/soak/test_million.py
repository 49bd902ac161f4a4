"""Many answers, each held to arithmetic, while rows arrive, buckets move, segments are replaced and put back, and the
query process is killed and builds its tables anew.

HYBRID_MILLION=1000000 goes on until so many were checked; see `readers` for what each of them is held to.
"""

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hybrid.jvm.topics import create_topic
from tests.serve.server import Server
from tests.soak.events import PARTITIONS, TABLES, offline_config, realtime_config
from tests.soak.harness import Producer
from tests.soak.readers import Readers, Seen, Shared, count, ends, event, total
from tests.soak.served import JOB, MOVE, Client, Load, Mover, Replacer, Worker, check_runs, counted, producing

ANSWERS = int(os.environ.get("HYBRID_MILLION", "500"))
SECONDS = float(os.environ.get("HYBRID_MILLION_S", "45"))
# A slow machine may need longer for so many answers, a move and a replacement.
SECONDS_MAX = 3600.0 if ANSWERS > 500 else 2 * SECONDS + 120
KILL_EVERY_S, KILLS_MAX = (20.0, 2) if ANSWERS <= 500 else (180.0, 100)
READERS = 4
ROWS_PER_S, ROWS_AT_ONCE = 200, 10_000
# What is replaced again and again: the first hours, once a move is beyond them.
_REPLACED_MAX, _LEFT_ALONE = 24, 1
WARNED_MAX = 0.05
_WRONG_MAX = 20

SCHEMA: dict[str, Any] = {
    "primaryKeyColumns": ["order_id"],
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
_COLUMNS = ("order_id", "customer_id", "order_status", "amount", "ts")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(int(SECONDS_MAX) + 600),
    pytest.mark.skipif("HYBRID_MILLION" not in os.environ, reason="takes long: HYBRID_MILLION is how many answers"),
]


def test_each_of_many_answers_is_right(broker: str, tmp_path: Path) -> None:
    home, topic, shared = tmp_path / "home", "soak-million", Shared.of(READERS)
    create_topic(broker, topic, PARTITIONS)
    with Server(home, broker) as server, producing(broker, topic) as producer:
        client = Client(server.url, patient=True)
        _create_tables(client, topic, broker)
        churn = Churn(server.url, [], {}, patient=True)
        churn.begin(producer, shared, tmp_path / "replacements")
        try:
            _await_a_move(client, churn)
            started = time.monotonic()
            with Readers(server.url, shared) as readers:
                kills = _go_on(server, client, churn, shared, readers)
                took_s = time.monotonic() - started
                seen = readers.seen()
        finally:
            churn.stop()
        runs = check_runs(client, churn, home)
        _check_end(client, tuple(shared.acknowledged))
        client.close()
    wrong = sum(shared.wrong)
    _report(seen, wrong, took_s, kills, runs)
    assert not wrong, f"{wrong} complaints of {sum(shared.answers)} answers:\n" + "\n".join(seen.wrong[:10])
    assert sum(shared.answers) > ANSWERS
    assert seen.found["warned"] <= WARNED_MAX * sum(shared.answers)
    assert kills and runs[(MOVE, "DONE")] and runs[(JOB, "DONE")], runs


class Feeder(Worker):
    """Produces the stream: some at once, so that there is something to move, then at a steady rate."""

    def __init__(self, load: Load, producer: Producer, shared: Shared) -> None:
        super().__init__(load, "feeder")
        self._producer, self._shared = producer, shared
        self._sent, self._since = 0, time.monotonic()

    def step(self) -> None:
        due = ROWS_AT_ONCE + int((time.monotonic() - self._since) * ROWS_PER_S)
        self._shared.offered[:] = list(ends(due))
        self._producer.send([event(n) for n in range(self._sent, due)])
        self._shared.acknowledged[:] = list(ends(due))
        self._sent = due
        time.sleep(0.1)


class BucketMover(Mover):
    """Schedules moves from the start, a bucket each."""

    _begun = True


class StatusReplacer(Replacer):
    """Replaces one of the first segments by the same rows with a status of the replacement's own; sometimes reverts."""

    def _correct(self, table: str) -> str | None:
        sql = f"select $segmentName, min(ts) from {table}_OFFLINE group by $segmentName order by 2 limit 10000"
        segments = [name for name, _ in self.client.rows(sql)]
        if len(segments) <= _LEFT_ALONE:
            time.sleep(1)  # files answer this: to ask again and again takes the cores from the move it waits for
            return None
        segment = self.chance.choice(segments[:-_LEFT_ALONE][:_REPLACED_MAX])
        sql = f"select {', '.join(_COLUMNS)} from {table}_OFFLINE where $segmentName = '{segment}' limit 1000000"
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in self.client.rows(sql)]
        self._number += 1
        status = f"FIXED_{self._number}_{len(rows)}"
        folder = self._folder / str(self._number)
        folder.mkdir(parents=True)
        (folder / "rows.json").write_text("\n".join(json.dumps({**row, "order_status": status}) for row in rows))
        spec = {
            "jobType": "SegmentCreationAndTarPush",
            "inputDirURI": str(folder),
            "includeFileNamePattern": "glob:**/rows.json",
            "recordReaderSpec": {"dataFormat": "json"},
            "tableSpec": {"tableName": table},
            "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": segment}},
        }
        code, run = self.client.call("POST", "/jobs", {"spec": spec, "reason": status})
        assert code == 200, run
        return str(run["id"])


class Churn(Load):
    """What works on the tables while they are read."""

    def begin(self, producer: Producer, shared: Shared, folder: Path) -> None:
        """Starts those who write."""
        self._workers = [
            Feeder(self, producer, shared),
            BucketMover(self, "mover"),
            StatusReplacer(self, folder, seed=7),
        ]
        for worker in self._workers:
            worker.start()


def _create_tables(client: Client, topic: str, broker: str) -> None:
    for table, upsert in TABLES.items():
        schema = {"schemaName": table, **SCHEMA}
        if not upsert:
            del schema["primaryKeyColumns"]
        indexes = {"invertedIndexColumns": ["order_id", "customer_id", "order_status"]}
        realtime = realtime_config(table, topic, broker, upsert=upsert)
        realtime["tableIndexConfig"] |= indexes
        client.ask("POST", "/schemas", schema)
        client.ask("POST", "/tables", realtime)
        client.ask("POST", "/tables", {**offline_config(table), "tableIndexConfig": indexes})


def _await_a_move(client: Client, churn: Churn) -> None:
    """Until a first move was done: readers would take the cores from a pipeline that has yet to compile itself."""
    deadline = time.monotonic() + SECONDS_MAX
    while not _are_done(client, churn, {MOVE}):
        assert time.monotonic() < deadline, churn.accepted
        churn.wait(1)


def _go_on(server: Server, client: Client, churn: Churn, shared: Shared, readers: Readers) -> int:
    """Until there are enough answers, a move and a replacement, or enough is wrong; how often something was killed."""
    started, kills, before = time.monotonic(), 0, len(churn.accepted)
    while (took_s := time.monotonic() - started) < SECONDS_MAX and sum(shared.wrong) < _WRONG_MAX:
        churn.wait(1)
        assert readers.are_at_work(), "a reader has ended"
        if kills < KILLS_MAX and took_s > (kills + 1) * KILL_EVERY_S:
            kills += 1
            for pid in server.pids("query"):
                os.kill(pid, signal.SIGKILL)
        if took_s > SECONDS and sum(shared.answers) > ANSWERS and _are_done(client, churn, {MOVE, JOB}, before):
            break
    return kills


def _are_done(client: Client, churn: Churn, types: set[str], before: int = 0) -> bool:
    """Whether a run of each of these types was done, of the runs after the first `before`."""
    done: set[str] = set()
    for _, run in churn.accepted[before:]:
        found = client.ask("GET", f"/runs/{run}")
        done |= {found["type"]} if found["state"] == "DONE" else set()
        if types <= done:
            return True
    return False


def _check_end(client: Client, sent: tuple[int, ...]) -> None:
    """Everything is there when nobody writes any more."""
    for table in TABLES:
        assert client.rows(total(table).sql) == [[count(table, sent)] * 3]


def _report(seen: Seen, wrong: int, took_s: float, kills: int, runs: Counter[tuple[str, str]]) -> None:
    answers = seen.found["cache"] + seen.found["files"]
    moves, jobs = runs[(MOVE, "DONE")], runs[(JOB, "DONE")]
    sources = ", ".join(
        f"{seen.found[source]} from {source} ({seen.took_ms[source] / max(1, seen.found[source]):.1f} ms, at most "
        f"{seen.longest_ms[source]} ms)"
        for source in ("cache", "files")
    )
    print(
        f"\n{answers} answers, {answers / took_s:.0f} a second, {wrong} wrong, {moves} moves, {jobs} jobs, "
        f"{kills} kills; {sources}"
    )
    print(f"found: {dict(seen.found)}; runs: {counted(runs)}")
