"""Many answers, each held to arithmetic, while rows arrive, buckets move, segments are replaced and put back, old ones
expire, the cache has no room for all of it, and the query process is killed and builds its tables anew.

HYBRID_MILLION=1000000 goes on until so many were checked; see `readers` for what each of them is held to.
"""

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from hybrid.kafka.topics import create_topic
from tests.serve.server import Server
from tests.soak import cold
from tests.soak.events import PARTITIONS, TABLES, offline_config, realtime_config
from tests.soak.harness import Producer
from tests.soak.readers import Readers, Seen, total
from tests.soak.served import (
    JOB,
    MOVE,
    RETENTION,
    Client,
    Load,
    Mover,
    Replacer,
    Worker,
    check_runs,
    counted,
    producing,
)
from tests.soak.shared import Shared
from tests.soak.stream import HOUR_MS, View, ends, event

ANSWERS = int(os.environ.get("HYBRID_MILLION", "500"))
SECONDS = float(os.environ.get("HYBRID_MILLION_S", "45"))
_SMALL = ANSWERS <= 500
# A slow machine may need longer for so many answers, a move, a replacement and what expires.
SECONDS_MAX = 2 * SECONDS + 120 if _SMALL else float(os.environ.get("HYBRID_MILLION_S_MAX", "5400"))
FIRST_KILL_S, KILL_EVERY_S, KILLS_MAX = (20.0, 20.0, 2) if _SMALL else (60.0, 180.0, 100)
READERS = 4
ROWS_PER_S, ROWS_AT_ONCE = 200, 10_000 if _SMALL else 50_000
# An hour of event time is 5 s. What goes at once, and what is kept at least, by the newest row of OFFLINE.
_CUT_MS, _KEPT_MS = (2 * HOUR_MS, 6 * HOUR_MS) if _SMALL else (12 * HOUR_MS, 36 * HOUR_MS)
_ROOM_MS = 5 * 60_000  # what a run of retention may take, from when it is told how long to keep rows
# Too little for the tables of the stream and the cold one, but enough to lay each of them.
CACHE_BYTES = 160_000_000
# What is replaced again and again: hours that will not expire soon. Each has some segments, for rows that came late.
_REPLACED_MAX, _LEFT_ALONE = 24, 1
_ONE_EACH = 4
# Between moves of everything, and between looks for what may expire: readers need the cores too.
_PAUSE_S = 5.0 if _SMALL else 20.0
WARNED_MAX, FILES_MAX, FAILED_MAX = 0.05, 0.2, 0.1
_WRONG_MAX = 20
_SAMPLE_EACH_S, _TELL_EACH_S = 5.0, 30.0
_CACHED = re.compile(r'hybrid_cache_bytes\{kind="[^"]*",place="(memory|disk)"\} (\S+)')

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
    with (
        Server(home, broker, options=["--cache-bytes", str(CACHE_BYTES)]) as server,
        producing(broker, topic) as producer,
    ):
        client = Client(server.url, patient=True)
        _create_tables(client, topic, broker)
        _load_cold(client, tmp_path / "cold")
        churn = Churn(server.url, [], {}, patient=True)
        churn.begin(producer, shared, tmp_path / "replacements")
        try:
            _await_a_move(client, churn)
            started = time.monotonic()
            with Readers(server.url, shared) as readers:
                kills, sizes = _go_on(server, client, churn, shared, readers)
                took_s = time.monotonic() - started
                seen = readers.seen()
        finally:
            churn.stop()
        runs = check_runs(client, churn, home)
        _check_end(client, shared)
        client.close()
    wrong = sum(shared.wrong)
    _report(seen, wrong, took_s, kills, runs, sizes)
    assert not wrong, f"{wrong} complaints of {sum(shared.answers)} answers:\n" + "\n".join(seen.wrong[:10])
    assert sum(shared.answers) > ANSWERS
    assert seen.found["warned"] <= WARNED_MAX * sum(shared.answers)
    assert seen.found["files"] <= FILES_MAX * sum(shared.answers)
    assert kills and all(runs[(kind, "DONE")] for kind in (MOVE, JOB, RETENTION)), runs
    failed = sum(number for (_, state), number in runs.items() if state == "FAILED")
    assert failed <= max(3, FAILED_MAX * runs.total()), runs
    assert sizes.most["disk"], "nothing was evicted"


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
    """Moves all that is closed, for an hour lasts some seconds; now and then a bucket after it, as a schedule does."""

    _steps = 0

    def step(self) -> None:
        self._steps += 1
        if self._steps % _ONE_EACH == 0:
            self._begun = False
            super().step()
            return
        for run in [self._move_all(table) for table in TABLES]:
            self.client.ended(run)
        self.load.stopped.wait(_PAUSE_S)


class Retainer(Worker):
    """Lets what is older than some hour expire, exactly there, by the OFFLINE half's retention."""

    def __init__(self, load: "Churn", shared: Shared) -> None:
        super().__init__(load, "retainer")
        self._churn, self._cuts = load, shared.cuts

    def step(self) -> None:
        for table in TABLES:
            segments = self._segments(table)
            cut_ms = self._cut(table, segments)
            if cut_ms is not None and self._churn.propose(table, cut_ms):
                self._drop(table, cut_ms, _room_ms(segments, cut_ms))
        self.load.stopped.wait(_PAUSE_S)

    def _segments(self, table: str) -> list[tuple[int, int]]:
        """The first and the last time of each segment of OFFLINE."""
        sql = f"select $segmentName, min(ts), max(ts) from {table}_OFFLINE group by $segmentName limit 100000"
        return [(int(low), int(high)) for _, low, high in self.client.rows(sql)]

    def _cut(self, table: str, segments: list[tuple[int, int]]) -> int | None:
        """The next cut, once enough is before it: of some hours that of which each segment has the latest rows.

        A segment expires when its newest row does, and rows go on to expire between now and the run.
        """
        last_ms = (max((high for _, high in segments), default=0) - _KEPT_MS) // HOUR_MS * HOUR_MS
        first_ms = min((low for low, _ in segments), default=0)
        if last_ms - max(first_ms, self._cuts.last_ms(table)) < _CUT_MS:
            return None
        hours = range(last_ms - _CUT_MS // 2, last_ms + 1, HOUR_MS)
        cut_ms = max(hours, key=lambda hour_ms: _room_ms(segments, hour_ms))
        assert not any(low < cut_ms <= high for low, high in segments), "a segment of two hours"
        return cut_ms if _room_ms(segments, cut_ms) > _ROOM_MS else None

    def _drop(self, table: str, cut_ms: int, room_ms: int) -> None:
        config = self.client.ask("GET", f"/tables/{table}")["OFFLINE"]
        began_ms = time.time_ns() // 1_000_000
        kept = {"retentionTimeUnit": "MILLISECONDS", "retentionTimeValue": str(began_ms - cut_ms)}
        config["segmentsConfig"] |= kept
        self.client.ask("PUT", f"/tables/{table}", config)
        while True:
            path = f"/tasks/schedule?taskType={RETENTION}&tableName={table}_OFFLINE"
            if (run := self.client.ask("POST", path)[RETENTION]) is not None:
                break
            time.sleep(0.1)  # one whose answer was lost is under way: the next one finds nothing to do
        self.load.accepted.append((table, run))
        state = self.client.ended(run)["state"]
        assert time.time_ns() // 1_000_000 - began_ms < room_ms, f"{run} came too late to know what it dropped"
        if state != "FAILED":
            self._cuts.settle(table)


def _room_ms(segments: list[tuple[int, int]], cut_ms: int) -> int:
    """By how much all segments that begin at or after a cut end after it."""
    return min(high for low, high in segments if low >= cut_ms) - cut_ms


class StatusReplacer(Replacer):
    """Replaces one of the last segments by the same rows with a status of the replacement's own; sometimes reverts."""

    def __init__(self, load: "Churn", folder: Path, seed: int) -> None:
        super().__init__(load, folder, seed)
        self._churn = load

    def step(self) -> None:
        super().step()
        self._churn.release()

    def _correct(self, table: str) -> str | None:
        sql = f"select $segmentName, min(ts) from {table}_OFFLINE group by $segmentName order by 2 limit 10000"
        segments = self.client.rows(sql)
        if len(segments) <= _LEFT_ALONE:
            time.sleep(1)  # files answer this: to ask again and again takes the cores from the move it waits for
            return None
        segment, first_ms = self.chance.choice(segments[:-_LEFT_ALONE][-_REPLACED_MAX:])
        if not self._churn.hold(table, int(first_ms)):
            return None
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


@dataclass
class Churn(Load):
    """What works on the tables while they are read.

    What is being replaced does not expire: a job for a segment that is gone would bring its rows back, as a new one.
    """

    _held: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _shared: Shared | None = None

    def begin(self, producer: Producer, shared: Shared, folder: Path) -> None:
        """Starts those who write."""
        self._shared = shared
        self._workers = [
            Feeder(self, producer, shared),
            BucketMover(self, "mover"),
            StatusReplacer(self, folder, seed=7),
            Retainer(self, shared),
        ]
        for worker in self._workers:
            worker.start()

    def propose(self, table: str, cut_ms: int) -> bool:
        """Proposes a cut, unless it takes away what is being replaced."""
        assert self._shared
        with self._lock:
            is_free = self._held.get(table, cut_ms) >= cut_ms
            if is_free:
                self._shared.cuts.propose(table, cut_ms)
            return is_free

    def hold(self, table: str, first_ms: int) -> bool:
        """Keeps a segment from expiring; False when it may have expired."""
        assert self._shared
        with self._lock:
            is_there = first_ms >= self._shared.cuts.last_ms(table)
            if is_there:
                self._held[table] = first_ms
            return is_there

    def release(self) -> None:
        with self._lock:
            self._held.clear()


@dataclass
class Sizes:
    """The most that the cache had in memory and on disk, and how often there was something on disk."""

    most: Counter[str] = field(default_factory=Counter)
    taken: int = 0
    with_disk: int = 0

    def take(self, server: Server) -> None:
        try:
            status, text = server.call("GET", "/metrics", timeout=30, text=True)
        except (OSError, HTTPException):  # it was killed
            return
        sums: Counter[str] = Counter()
        for place, size in _CACHED.findall(text):
            sums[place] += int(float(size))
        if status == 200:
            self.most |= sums
            self.taken += 1
            self.with_disk += sums["disk"] > 0


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


def _load_cold(client: Client, folder: Path) -> None:
    """Pushes all rows of the table without a stream."""
    client.ask("POST", "/schemas", cold.SCHEMA)
    client.ask("POST", "/tables", offline_config(cold.COLD))
    folder.mkdir()
    cold.write_cold(folder / "rows.parquet")
    spec = {
        "jobType": "SegmentCreationAndTarPush",
        "inputDirURI": str(folder),
        "includeFileNamePattern": "glob:**/rows.parquet",
        "recordReaderSpec": {"dataFormat": "parquet"},
        "tableSpec": {"tableName": cold.COLD},
        "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": cold.COLD}},
    }
    run = client.ask("POST", "/jobs", {"spec": spec, "reason": "loaded once"})
    found = client.ended(str(run["id"]))
    assert found["state"] == "DONE", found


def _await_a_move(client: Client, churn: Churn) -> None:
    """Until a first move was done: readers would take the cores from a pipeline that has yet to compile itself."""
    deadline = time.monotonic() + SECONDS_MAX
    while not _are_done(client, churn, {MOVE}):
        assert time.monotonic() < deadline, churn.accepted
        churn.wait(1)


def _go_on(server: Server, client: Client, churn: Churn, shared: Shared, readers: Readers) -> tuple[int, Sizes]:
    """Until there are enough answers, and a run of each kind, or enough is wrong; kills, and what the cache took."""
    started, kills, sizes, before = time.monotonic(), 0, Sizes(), len(churn.accepted)
    told = 0
    while (took_s := time.monotonic() - started) < SECONDS_MAX and sum(shared.wrong) < _WRONG_MAX:
        churn.wait(1)
        assert readers.are_at_work(), "a reader has ended"
        if took_s > sizes.taken * _SAMPLE_EACH_S:
            sizes.take(server)
        if took_s > (told + 1) * _TELL_EACH_S:
            told += 1
            print(f"\n{took_s:.0f} s: {sum(shared.answers)} answers, {sum(shared.wrong)} wrong", end="", flush=True)
        if kills < KILLS_MAX and took_s > FIRST_KILL_S + kills * KILL_EVERY_S:
            kills += 1
            for pid in server.pids("query"):
                os.kill(pid, signal.SIGKILL)
        if (
            took_s > SECONDS
            and sum(shared.answers) > ANSWERS
            and _are_done(client, churn, {MOVE, JOB, RETENTION}, before)
        ):
            break
    return kills, sizes


def _are_done(client: Client, churn: Churn, types: set[str], before: int = 0) -> bool:
    """Whether a run of each of these types was done, of the runs after the first `before`."""
    done: set[str] = set()
    for _, run in churn.accepted[before:]:
        found = client.ask("GET", f"/runs/{run}")
        done |= {found["type"]} if found["state"] == "DONE" else set()
        if types <= done:
            return True
    return False


def _check_end(client: Client, shared: Shared) -> None:
    """Everything that has not expired is there when nobody writes any more."""
    for table in TABLES:
        question, sent = total(table), tuple(shared.acknowledged)
        rows, cuts = client.rows(question.sql), shared.cuts.since(table, shared.cuts.done(table))
        wrong = [question.wrong(rows, {table: View(sent, cut_ms)}) for cut_ms in cuts]  # one, unless a run has failed
        assert not all(wrong), f"{table}: {rows} {wrong}"


def _report(seen: Seen, wrong: int, took_s: float, kills: int, runs: Counter[tuple[str, str]], sizes: Sizes) -> None:
    answers = seen.found["cache"] + seen.found["files"]
    moves, jobs, drops = (runs[(kind, "DONE")] for kind in (MOVE, JOB, RETENTION))
    sources = ", ".join(
        f"{seen.found[source]} from {source} ({seen.took_ms[source] / max(1, seen.found[source]):.1f} ms, at most "
        f"{seen.longest_ms[source]} ms)"
        for source in ("cache", "files")
    )
    print(
        f"\n{answers} answers, {answers / took_s:.0f} a second, {wrong} wrong, {moves} moves, {jobs} jobs, "
        f"{drops} times rows expired, {kills} kills; {sources}"
    )
    memory, disk = (sizes.most[place] / 1e6 for place in ("memory", "disk"))
    print(
        f"cache of {CACHE_BYTES / 1e6:.0f} MB: at most {memory:.1f} MB in memory and {disk:.1f} MB on disk, where "
        f"something lay {sizes.with_disk} of {sizes.taken} times"
    )
    print(f"found: {dict(seen.found)}; runs: {counted(runs)}")
