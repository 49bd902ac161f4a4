"""A served home under load, by HTTP: a producer, readers, a mover and a replacer, and what they saw.

Each works in a thread of its own until it is stopped; what it could not bear is raised again by `Load.stop`.
"""

import http.client
import json
import random
import threading
import time
from abc import abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hybrid.home.home import is_act_of
from tests.soak.events import BUCKET_MS, FIRST_MS, PARTITIONS, SCHEMA, TABLES, Event, offline_config, realtime_config
from tests.soak.harness import Producer
from tests.soak.oracle import CORRECTED, EVERYTHING, Question, Revision, TableOracle, between

MOVE, JOB, RETENTION = "RealtimeToOfflineSegmentsTask", "job", "RetentionManager"
STALE_S_MAX = 5.0
WARNED_MAX = 0.05
_PATIENCE_S = 90.0
_RUN_S = 600.0  # a run starts anew with each pipeline, and those may be killed every few seconds
_IDLE_S = 2.0
_POLL_S = 0.1
_THINK_S = 0.25  # readers check answers; they are not there to take the cores from those who write


class Lost(Exception):
    """The connection broke before the answer came: whether the request was carried out is not known."""


class Client:
    """One kept connection to a server whose address stays the same. A `patient` one outlasts the server's falls.

    `secret` is that of an account.
    """

    def __init__(self, url: str, *, patient: bool, secret: str = "") -> None:
        parts = urlsplit(url)
        assert parts.hostname
        self._host, self._port, self._patient = parts.hostname, parts.port, patient
        self._headers = {
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {secret}"} if secret else {}),
        }
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and JSON. Lost when the connection broke."""
        if self._connection is None or time.monotonic() - self._used_at > _IDLE_S:
            self.close()
            self._connection = http.client.HTTPConnection(self._host, self._port, timeout=60)
        try:
            payload = None if body is None else json.dumps(body)
            self._connection.request(method, path, payload, self._headers)
            response = self._connection.getresponse()
            status, answer = response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Lost(f"{method} {path}: {type(error).__name__} {error}") from error
        self._used_at = time.monotonic()
        return status, answer

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a request that must succeed and may be repeated."""
        deadline = time.monotonic() + (_PATIENCE_S if self._patient else 0)
        while True:
            try:
                status, answer = self.call(method, path, body)
                assert status == 200, (method, path, status, answer)
                return answer
            except Lost:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL_S)

    def rows(self, sql: str) -> list[list[Any]]:
        return self.answer(sql)["resultTable"]["rows"]

    def answer(self, sql: str) -> Any:
        """An answer that could see all there is: one that says that Kafka did not answer is asked for again."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            answer = self.ask("POST", "/query/sql", {"sql": sql})
            assert not answer["exceptions"], (sql, answer)
            if not answer["warnings"]:
                return answer
            assert time.monotonic() < deadline, (sql, answer)

    def ended(self, run: str) -> dict[str, Any]:
        """Follows a run to its end."""
        deadline = time.monotonic() + _RUN_S
        while True:
            found = self.ask("GET", f"/runs/{run}")
            if found["state"] not in {"QUEUED", "RUNNING"}:
                return found
            assert time.monotonic() < deadline, f"run {run} does not end: {found}"
            time.sleep(_POLL_S)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass
class Answer:
    """What a reader was answered, when it asked (monotonic), and how long it took.

    `warned`: the answer says that Kafka could not be read, and so that it is of committed rows only.
    """

    table: str
    question: Question
    began: float
    took_s: float
    revision: str
    rows: list[list[Any]]
    warned: bool


class Worker(threading.Thread):
    """Does `step` until it is stopped or fails."""

    def __init__(self, load: "Load", name: str, seed: int = 0) -> None:
        super().__init__(name=name, daemon=True)
        self.load, self.chance = load, random.Random(seed)
        self.client = Client(load.url, patient=load.patient)
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.load.stopped.is_set():
                try:
                    self.step()
                except Lost:
                    if not self.load.patient:
                        raise
                    self.load.lost += 1
                    time.sleep(_POLL_S)
        except BaseException as error:
            self.error = error
            self.load.stopped.set()
        finally:
            self.client.close()

    @abstractmethod
    def step(self) -> None: ...


class Feeder(Worker):
    """Produces the first events at once and the others at a steady rate; notes when Kafka had acknowledged how much."""

    def __init__(self, load: "Load", producer: Producer, rows_per_s: float, at_once: int) -> None:
        super().__init__(load, "feeder")
        self._producer, self._rate, self._at_once, self._sent = producer, rows_per_s, at_once, 0
        self._since = time.monotonic()

    def step(self) -> None:
        due = min(len(self.load.events), self._at_once + int((time.monotonic() - self._since) * self._rate))
        self._producer.send(self.load.events[self._sent : due])
        self._sent = due
        self.load.acknowledged(self._producer.acknowledged)
        time.sleep(0.1)


class Reader(Worker):
    """Asks one question after the other of both tables."""

    def step(self) -> None:
        table = self.chance.choice(sorted(TABLES))
        low = FIRST_MS + self.chance.randrange(-3, 10) * BUCKET_MS + self.chance.randrange(BUCKET_MS)
        window = between(low, low + self.chance.randrange(BUCKET_MS // 4, 3 * BUCKET_MS))
        question = self.chance.choice([EVERYTHING, EVERYTHING, window, CORRECTED])
        began = time.monotonic()
        status, answer = self.client.call("POST", "/query/sql", {"sql": question.sql(table)})
        took_s = time.monotonic() - began
        assert status == 200 and not answer["exceptions"], (status, answer)
        assert all("committed rows only" in warning for warning in answer["warnings"]), answer["warnings"]
        rows, warned = answer["resultTable"]["rows"], bool(answer["warnings"])
        self.load.answers.append(Answer(table, question, began, took_s, answer["revision"], rows, warned))
        time.sleep(_THINK_S)


class Mover(Worker):
    """Moves all that there is, then schedules the move of one table and the other, and follows each to its end."""

    _begun = False

    def step(self) -> None:
        if not self._begun:
            self._begun = True
            for run in [self._move_all(table) for table in TABLES]:
                self.client.ended(run)
        for table in TABLES:
            path = f"/tasks/schedule?taskType={MOVE}&tableName={table}_REALTIME"
            status, answer = self.client.call("POST", path)
            assert status == 200, answer
            if answer[MOVE] is None:  # one whose answer was lost is under way
                assert "incomplete run" in answer["schedulingErrors"], answer
                time.sleep(_POLL_S)
                continue
            self.load.accepted.append((table, answer[MOVE]))
            while self.client.ask("GET", f"/tasks/task/{answer[MOVE]}/state") in {"NOT_STARTED", "IN_PROGRESS"}:
                time.sleep(_POLL_S)

    def _move_all(self, table: str) -> str:
        status, answer = self.client.call("POST", "/verbs/move", {"table": table, "max_buckets": None})
        assert status == 202, answer
        self.load.accepted.append((table, answer["run"]))
        return answer["run"]


class Replacer(Worker):
    """Corrects a segment that was moved, whole and under its name; one time in four it takes the newest one back.

    It does so after its first correction, too, so that every run of the test has both.
    """

    def __init__(self, load: "Load", folder: Path, seed: int) -> None:
        super().__init__(load, "replacer", seed)
        self._folder, self._number = folder, 0
        self._members: dict[str, list[tuple[int, int]]] = {}
        self._revisions: Counter[str] = Counter()
        self._table, self._reverted = "", False  # the table of the last correction

    def step(self) -> None:
        table = self.chance.choice(sorted(TABLES))
        first_revert = self._number > 0 and not self._reverted
        table = self._table if first_revert else table
        reverts = first_revert or self.chance.random() < 0.25
        run = (self._revert(table) if reverts else None) or self._correct(table)
        if run is None:
            time.sleep(_POLL_S)
            return
        self.load.accepted.append((table, run))
        self.client.ended(run)

    def _correct(self, table: str) -> str | None:
        sql = f"select $segmentName, max(rev) from {table}_OFFLINE group by $segmentName order by 1 limit 10000"
        segments = [name for name, _ in self.client.rows(sql)]
        if not segments:
            return None
        segment = self.chance.choice(segments)
        if segment not in self._members:  # its first correction: nothing else changes a segment, so these are all
            sql = f"select p, i from {table}_OFFLINE where $segmentName = '{segment}' limit 1000000"
            self._members[segment] = [(p, i) for p, i in self.client.rows(sql)]
        self._number, self._table = self._number + 1, table
        self._revisions[segment] += 1
        reason = f"correction {self._number}"
        oracle = self.load.oracles[table]
        rows = oracle.correct(reason, segment, self._members[segment], self._revisions[segment])
        folder = self._folder / f"correction-{self._number}"
        folder.mkdir(parents=True)
        (folder / "rows.json").write_text("\n".join(map(json.dumps, rows)))
        spec = {
            "jobType": "SegmentCreationAndTarPush",
            "inputDirURI": str(folder),
            "includeFileNamePattern": "glob:**/rows.json",
            "recordReaderSpec": {"dataFormat": "json"},
            "tableSpec": {"tableName": table},
            "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": segment}},
        }
        status, run = self.client.call("POST", "/jobs", {"spec": spec, "reason": reason})
        assert status == 200, run
        return run["id"]

    def _revert(self, table: str) -> str | None:
        entries = self.client.ask("GET", f"/tables/{table}/replacements")
        active = [entry["id"] for entry in entries if entry["kind"] == "replace" and entry["state"] == "ACTIVE"]
        if not active:
            return None
        status, answer = self.client.call("POST", "/verbs/revert", {"table": table, "entry": active[0]})
        assert status == 202, answer
        self._reverted = True
        return answer["run"]


@dataclass
class Load:
    """What works on a server, and what it noted. `patient`: the server's processes may fall."""

    url: str
    events: list[Event]
    oracles: dict[str, TableOracle]
    patient: bool = False
    stopped: threading.Event = field(default_factory=threading.Event)
    answers: list[Answer] = field(default_factory=list)
    accepted: list[tuple[str, str]] = field(default_factory=list)
    lost: int = 0
    _acks: list[tuple[list[int], list[float]]] = field(default_factory=lambda: [([], []) for _ in range(PARTITIONS)])
    _workers: list[Worker] = field(default_factory=list)

    def acknowledged(self, positions: Mapping[int, int]) -> None:
        for p, (ends, times) in enumerate(self._acks):
            if positions.get(p, 0) > (ends[-1] if ends else 0):
                times.append(time.monotonic())
                ends.append(positions[p])

    def staleness_s(self, began: float, positions: Sequence[int]) -> float:
        """How long the oldest row beyond `positions` had been acknowledged when the query began."""
        found = 0.0
        for position, (ends, times) in zip(positions, self._acks, strict=True):
            first_missing = bisect_right(ends, position)
            if first_missing < len(times):
                found = max(found, began - times[first_missing])
        return found

    def produced(self) -> int:
        return sum(ends[-1] for ends, _ in self._acks if ends)

    def start(self, producer: Producer, folder: Path, *, rows_per_s: float, readers: int, seed: int) -> None:
        """Starts all workers. A third of the events is produced at once, so that there is something to move."""
        self._workers = [
            Feeder(self, producer, rows_per_s, len(self.events) // 3),
            Mover(self, "mover"),
            Replacer(self, folder, seed),
            *(Reader(self, f"reader-{number}", seed + number) for number in range(readers)),
        ]
        for worker in self._workers:
            worker.start()

    def wait(self, seconds: float) -> None:
        """Lets the load go on. Raises what a worker could not bear."""
        self.stopped.wait(seconds)
        self._raise()

    def stop(self) -> None:
        """Stops all workers and raises what they could not bear."""
        self.stopped.set()
        for worker in self._workers:
            worker.join(timeout=_RUN_S)
            assert not worker.is_alive(), f"{worker.name} does not end"
        self._raise()

    def _raise(self) -> None:
        for worker in self._workers:
            if worker.error is not None:
                raise AssertionError(f"{worker.name}: {worker.error!r}") from worker.error


@contextmanager
def producing(broker: str, topic: str) -> Iterator[Producer]:
    producer = Producer(broker, topic)
    try:
        yield producer
    finally:
        producer.close()


def create_tables(client: Client, topic: str, broker: str) -> None:
    for table, upsert in TABLES.items():
        client.ask("POST", "/schemas", {"schemaName": table, **SCHEMA})
        client.ask("POST", "/tables", realtime_config(table, topic, broker, upsert=upsert))
        client.ask("POST", "/tables", offline_config(table))


def drop_tables(client: Client) -> None:
    for table in TABLES:
        client.ask("DELETE", f"/tables/{table}")
        client.ask("DELETE", f"/schemas/{table}")


def oracles_of(events: Sequence[Event]) -> dict[str, TableOracle]:
    return {table: TableOracle(table, upsert, events) for table, upsert in TABLES.items()}


def lineage_of(client: Client) -> dict[str, list[dict]]:
    return {table: client.ask("GET", f"/tables/{table}/replacements") for table in TABLES}


@dataclass(frozen=True)
class Checked:
    """All answers were right. `stalest_s` is the slowest one's staleness, without the `warned` that said so."""

    stalest_s: float
    warned: int

    def __str__(self) -> str:
        return f"none wrong, stalest {self.stalest_s:.2f} s, {self.warned} said that Kafka did not answer"


def check_answers(load: Load, lineage: Mapping[str, list[dict]], home: Path) -> Checked:
    """Every answer is the one of its revision; none is stale, but for a few that say so."""
    wrong, stalest, checked = [], 0.0, []
    for table in TABLES:
        committed = [_positions(state) for state in states_of(home / "warehouse" / table / "REALTIME")]
        answers = [answer for answer in load.answers if answer.table == table]
        checked += [(answer, Revision.parse(answer.revision, committed)) for answer in answers]
    for answer, revision in sorted(checked, key=lambda pair: (pair[0].table, pair[1].offline)):
        expected = load.oracles[answer.table].answer(answer.question, revision, lineage[answer.table])
        if [[p, count, int(total), keys] for p, count, total, keys in answer.rows] != expected:
            wrong.append(f"{answer.table} {answer.question.where}: {answer.rows}, not {expected}: {answer.revision}")
        stale_s = 0.0 if answer.warned else load.staleness_s(answer.began, revision.positions)
        stalest = max(stalest, stale_s)
        if stale_s > STALE_S_MAX:
            wrong.append(f"{answer.table}: {stale_s:.1f} s stale: {answer.revision}")
    assert not wrong, f"{len(wrong)} of {len(checked)} answers are wrong:\n" + "\n".join(wrong[:10])
    warned = sum(answer.warned for answer in load.answers)
    assert warned <= WARNED_MAX * len(checked), f"{warned} of {len(checked)} answers are of committed rows only"
    return Checked(stalest, warned)


def check_end(client: Client, load: Load, sent: Sequence[Event]) -> None:
    """Every row of `sent` is visible once with its values, as corrected; rejected rows are those with their offsets."""
    lineage = lineage_of(client)
    ends = tuple(sum(1 for event in sent if event.p == p) for p in range(PARTITIONS))
    bad = {(event.p, event.i) for event in sent if event.row is None}
    for table, oracle in load.oracles.items():
        answer = client.answer(f"select p, i, k, v, ts, rev from {table} limit 10000000")
        revision = Revision.parse(answer["revision"])
        assert revision.positions == ends, answer["revision"]
        seen = Counter(map(tuple, answer["resultTable"]["rows"]))
        expected = oracle.visible(revision, lineage[table])
        twice = [row for row, count in seen.items() if count > 1]
        assert not twice, f"{table}: seen twice: {twice[:5]}"
        missing, beyond = sorted(expected - seen.keys()), sorted(seen.keys() - expected)
        assert not missing and not beyond, f"{table}: missing {missing[:5]}, beyond {beyond[:5]}"
        again = client.rows(f"select p, i, count(*) from {table}_OFFLINE group by p, i having count(*) > 1 limit 5")
        assert not again, f"{table}: moved twice: {again}"
        assert _rejected(client, table, len(bad)) == bad, table


def _rejected(client: Client, table: str, count: int) -> set[tuple[int, int]]:
    """The rejected rows' places, once their batch is committed."""
    deadline = time.monotonic() + 60
    while True:
        found = client.ask("GET", f"/tables/{table}/rejected?limit=10000")
        if found["total"] >= count or time.monotonic() > deadline:
            assert found["total"] == len(found["rows"])
            return {(row["partition"], row["offset"]) for row in found["rows"]}
        time.sleep(_POLL_S)


def check_runs(client: Client, load: Load, home: Path) -> Counter[tuple[str, str]]:
    """Every run that was accepted has ended and says how; each run that is DONE, and no other one, has one commit.

    Counts runs by type and state.
    """
    states: Counter[tuple[str, str]] = Counter()
    ended = {run: client.ended(run) for _, run in load.accepted}
    for found in ended.values():
        assert found["state"] in {"DONE", "NOTHING", "FAILED"} and found["result"], found
        states[(found["type"], found["state"])] += 1
        if found["state"] == "FAILED":
            print(f"\n{found['id']} FAILED: {found['result']}", end="")
    for table in TABLES:
        acts = [state["act"] for state in states_of(home / "warehouse" / table / "OFFLINE")]
        assert [act["number"] for act in acts] == list(range(len(acts)))
        done = Counter(_run_of(client, ended, act["id"]) for act in acts if act["kind"] not in {"create", "retention"})
        assert all(count == 1 for count in done.values()), f"done twice: {done.most_common(3)}"
        for run in done:
            found = ended.get(run) or client.ended(run)
            assert found["state"] == "DONE", found
        of_table = {run for of, run in load.accepted if of == table and ended[run]["state"] == "DONE"}
        wanted = {run for run in of_table if ended[run]["type"] != RETENTION}
        # Retention's acts do not bear their run's id; one whose answer was lost is not among the accepted.
        assert len(of_table - wanted) <= sum(act["kind"] == "retention" for act in acts), (
            f"{table}: nothing was dropped"
        )
        assert wanted <= done.keys(), f"{table}: DONE without a commit: {sorted(wanted - done.keys())}"
    return states


def _run_of(client: Client, accepted: Iterable[str], act: str) -> str:
    """The run of an operation. One whose answer was lost is not among the accepted: the server knows it by its id."""
    kind, _, rest = act.partition("-")
    runs = [run for run in (rest, f"{kind}_{rest}") if is_act_of(act, run)]
    known = [run for run in runs if run in accepted]
    known = known or [run for run in runs if client.call("GET", f"/runs/{run}")[0] == 200]
    assert len(known) == 1, (act, known)
    return known[0]


def counted(runs: Counter[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {state} {count}" for (kind, state), count in sorted(runs.items()))


def states_of(half: Path) -> list[dict[str, Any]]:
    """What each commit of a half carries, by version."""
    found = []
    for entry in sorted((half / "_delta_log").glob("*.json")):
        for line in entry.read_text().split("\n"):
            if line.startswith('{"commitInfo"'):
                found.append(json.loads(json.loads(line)["commitInfo"]["userMetadata"]))
    return found


def _positions(state: Mapping[str, Any]) -> tuple[int, ...]:
    offsets = {int(key.rpartition("/")[2]): offset for key, offset in state["offsets"].items()}
    return tuple(offsets.get(p, 0) for p in range(PARTITIONS))
