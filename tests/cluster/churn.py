"""Load on a cluster while its parts are killed: who produces, asks, moves and corrects, and what must hold of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.table.state import RealtimeState, from_user_metadata
from tests.cluster.cluster import Cluster
from tests.cluster.server import ClusterServer
from tests.soak.events import PARTITIONS, TABLES
from tests.soak.harness import Producer
from tests.soak.oracle import Revision
from tests.soak.served import Answer, Client, Feeder, Load, Lost, Reader, Replacer, Worker

RUN_S = 600.0
_POLL_S = 0.5
_TICK_S = 0.5  # between batches of events: servers follow each of them
_REST_S = 5.0  # a processor for each dozen of processes: the load must leave room for the starts of JVMs
_THINK_S = 0.75
AT_ONCE = 3_000  # so that there is something to move
Positions = tuple[int, ...]
_NOWHERE: Positions = (0,) * PARTITIONS


class WriterClient(Client):
    """A client of the server that writes, whichever it is by now. One that cannot answer yet counts as Lost."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.writer().url, patient=True, secret=cluster.secret)
        self._cluster = cluster
        self._clients: dict[str, Client] = {}

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        url = self._cluster.writer().url
        client = self._clients.setdefault(url, Client(url, patient=False, secret=self._cluster.secret))
        status, answer = client.call(method, path, body)
        if status >= 500:
            raise Lost(f"{method} {path}: {status} {answer}")
        return status, answer

    def ended(self, run: str) -> dict[str, Any]:
        """Follow a run to its end; `LOST` when the server that had it does not write any more."""
        deadline = time.monotonic() + RUN_S
        while True:
            try:
                status, found = self.call("GET", f"/runs/{run}")
                if status == 404:
                    return {"id": run, "state": "LOST", "type": "", "result": "another server writes"}
                if found["state"] not in {"QUEUED", "RUNNING"}:
                    return found
            except Lost:
                pass
            assert time.monotonic() < deadline, f"run {run} does not end\n{self._cluster.logged()}"
            time.sleep(_POLL_S)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


class PatientClient(Client):
    """A client of one server, for which `503` is as a broken connection."""

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        status, answer = super().call(method, path, body)
        if status == 503:
            raise Lost(f"{method} {path}: {answer}")
        return status, answer


class Follower(Reader):
    """A reader that takes its time between two questions."""

    def step(self) -> None:
        super().step()
        self.load.stopped.wait(_THINK_S)


class MarkingFeeder(Feeder):
    """Notes for each batch that Kafka has acknowledged when it was given to Kafka."""

    load: ClusterLoad

    def step(self) -> None:
        began = time.monotonic()
        super().step()
        positions = self._producer.acknowledged
        self.load.newest = began, tuple(positions[p] for p in range(PARTITIONS))
        self.load.stopped.wait(_TICK_S)


class Mover(Worker):
    """Moves all that there is of one table and the other, again and again."""

    load: ClusterLoad

    def step(self) -> None:
        for table in TABLES:
            status, answer = self.client.call("POST", "/verbs/move", {"table": table, "max_buckets": None})
            assert status == 202, (status, answer)
            self.load.note(self.client.ended(answer["run"]))
        self.load.stopped.wait(_REST_S)


class Corrector(Replacer):
    """Corrects segments, and takes corrections back."""

    load: ClusterLoad

    def step(self) -> None:
        before = len(self.load.accepted)
        super().step()
        for _, run in self.load.accepted[before:]:
            self.load.note(self.client.ended(run))
        self.load.stopped.wait(_REST_S)


@dataclass
class ClusterLoad(Load):
    """What works on a cluster. Each worker but the feeder has a client of its own, of the server that it asks."""

    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    newest: tuple[float, Positions] = (0.0, _NOWHERE)
    followers: dict[str, Load] = field(default_factory=dict)

    def note(self, run: Mapping[str, Any]) -> None:
        self.runs[(run["type"], run["state"])] += 1
        if run["state"] not in {"DONE", "NOTHING"}:
            self.failures.append(f"{run['id']} {run['state']}: {run['result']}")

    def begin(self, cluster: Cluster, producer: Producer, folder: Path, rows_per_s: float, seed: int) -> None:
        """Start all workers: one reader for each server that follows, the others at the server that writes."""
        mover, corrector = Mover(self, "mover"), Corrector(self, folder, seed)
        for worker in (mover, corrector):
            worker.client = WriterClient(cluster)
        self._workers = [MarkingFeeder(self, producer, rows_per_s, AT_ONCE), mover, corrector]
        for number, server in enumerate(cluster.readers):
            # Notes of its own, and the stop of all.
            own = Load(server.url, self.events, self.oracles, patient=True, stopped=self.stopped)
            self.followers[server.name] = own
            reader = Follower(own, f"reader of {server.name}", seed + number)
            reader.client = PatientClient(server.url, patient=True, secret=server.secret)
            self._workers.append(reader)
        for worker in self._workers:
            worker.start()

    def await_recovery(self, cluster: Cluster, since: float, limit_s: float) -> float:
        """The seconds from `since` until all that was sent after it is committed, and both followers answer with it."""
        deadline = since + limit_s
        while self.newest[0] <= since:
            self._still(deadline, "Kafka acknowledges nothing", cluster)
        wanted = self.newest[1]
        for server in cluster.readers:
            client = PatientClient(server.url, patient=False, secret=server.secret)
            for table in TABLES:
                while not _has(server, client, table, wanted):
                    self._still(deadline, f"{server.name} lacks events of {table}", cluster)
            client.close()
        return time.monotonic() - since

    def _still(self, deadline: float, what: str, cluster: Cluster) -> None:
        assert time.monotonic() < deadline, f"{what}\n{cluster.logged()}"
        self.wait(_POLL_S)


def await_tables(cluster: Cluster) -> None:
    """Wait until the servers that follow know the tables."""
    deadline = time.monotonic() + RUN_S
    for server in cluster.readers:
        while not {*TABLES} <= {*server.ok("GET", "/tables")["tables"]}:
            assert time.monotonic() < deadline, f"{server.name} lacks tables\n{server.logged()}"
            time.sleep(_POLL_S)


def _has(server: ClusterServer, client: Client, table: str, wanted: Positions) -> bool:
    """Whether a server that follows has these positions in its own files, and answers with them."""
    if not _reaches(_committed(server.home / "warehouse" / table / "REALTIME"), wanted):
        return False
    try:
        status, answer = client.call("POST", "/query/sql", {"sql": f"select count(*) from {table}"})
    except Lost:
        return False
    if status != 200 or answer["exceptions"] or answer["warnings"]:
        return False
    return _reaches(Revision.parse(answer["revision"], _all_committed(server, table)).positions, wanted)


def _reaches(found: Positions, wanted: Positions) -> bool:
    return all(place >= least for place, least in zip(found, wanted, strict=True))


def _committed(half: Path) -> Positions:
    """The positions of a half's newest version."""
    entries = sorted((half / "_delta_log").glob("*.json"), reverse=True)
    return next((positions for entry in entries if (positions := _positions(entry))), _NOWHERE)


def _all_committed(server: ClusterServer, table: str) -> list[Positions]:
    """The positions of each version of a half."""
    found: list[Positions] = []
    for entry in sorted((server.home / "warehouse" / table / "REALTIME" / "_delta_log").glob("*.json")):
        found.append(_positions(entry) or (found[-1] if found else _NOWHERE))
    return found


def _positions(entry: Path) -> Positions | None:
    """The positions that a log's entry carries. None where it leaves them, as take-over and OPTIMIZE do."""
    for line in entry.read_text().split("\n"):
        if line.startswith('{"commitInfo"'):
            state = from_user_metadata(json.loads(line)["commitInfo"].get("userMetadata"))
            if not isinstance(state, RealtimeState):
                return None
            offsets = {key.place.partition: offset for key, offset in state.offsets.items()}
            return tuple(offsets.get(p, 0) for p in range(PARTITIONS))
    return None


@dataclass(frozen=True)
class Checked:
    """All answers were right. `shared`: how many were given by both servers at the same revision."""

    answers: int
    warned: int
    shared: int

    def __str__(self) -> str:
        return (
            f"{self.answers} answers, none wrong; {self.shared} at a revision of the other server, all equal; "
            f"{self.warned} said that Kafka did not answer"
        )


def check_answers(load: ClusterLoad, cluster: Cluster, lineage: Mapping[str, list[dict[str, Any]]]) -> Checked:
    """Every answer is that of its revision; of one server none goes back; equal ones at equal revisions."""
    committed = {table: _all_committed(cluster.writer(), table) for table in TABLES}
    wrong: list[str] = []
    by_revision: dict[tuple[str, str, str], list[list[Any]]] = {}
    answers = [(name, answer) for name, own in load.followers.items() for answer in own.answers]
    shared, last = 0, dict[tuple[str, str], Revision]()
    for name, answer in answers:
        revision = Revision.parse(answer.revision, committed[answer.table])
        expected = load.oracles[answer.table].answer(answer.question, revision, lineage[answer.table])
        if [[p, count, int(total), keys] for p, count, total, keys in answer.rows] != expected:
            wrong.append(f"{name}, {answer.table} {answer.question.where}: {answer.rows}, not {expected}")
        key = (answer.table, answer.question.where, answer.revision)
        shared += key in by_revision
        if by_revision.setdefault(key, answer.rows) != answer.rows:
            wrong.append(f"{name}, {key}: {answer.rows}, and {by_revision[key]} at the same revision")
        if not answer.warned:
            wrong += _backwards(name, answer, last.get((name, answer.table)), revision)
            last[(name, answer.table)] = revision
    assert not wrong, f"{len(wrong)} of {len(answers)} answers are wrong:\n" + "\n".join(wrong[:10])
    return Checked(len(answers), sum(answer.warned for _, answer in answers), shared)


def _backwards(name: str, answer: Answer, before: Revision | None, revision: Revision) -> Sequence[str]:
    if before is None:
        return ()
    is_back = revision.offline < before.offline or not _reaches(revision.positions, before.positions)
    return [f"{name}, {answer.table}: {revision} after {before}"] if is_back else ()
