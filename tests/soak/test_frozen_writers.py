"""A home that writes a warehouse on a store is frozen at each point of a commit; another home takes over and works.

When the first one goes on it commits nothing, and every event is there once. The two homes take turns, so each of them
also comes back after it was refused.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.settings import load_settings
from hybrid.home.home import Home
from hybrid.kafka.topics import create_topic
from hybrid.lake.failpoints import POSITIONS, STORE_STEPS
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.progress import Silent
from hybrid.table.state import Act, from_user_metadata
from tests.mirrors import new_url
from tests.s3_server import needs_s3, s3_server
from tests.soak.events import SCHEMA, Event, live_rows, make_events, offline_config, realtime_config, rejected
from tests.soak.harness import JVM_OPTIONS, Producer, check_all_once

pytestmark = [needs_s3, pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

TABLE = "frozen"
# The verbs that commit, with the kind of their commit; `create` has a table for each position.
VERBS = {"create": "create", "ingest": "ingest", "seal": "seal", "move": "move", "correct": "replace",
         "revert": "revert", "boundary": "boundary", "evolve": "evolve"}  # fmt: skip
CASES = [(verb, f"{kind}.commit.{position}") for verb, kind in VERBS.items() for position in POSITIONS]
# The second time that a process passes such a step armed.
CASES += [("ingest", step) for step in STORE_STEPS] + [("move", f"{step}@2") for step in STORE_STEPS]
# What has to be done before a verb has something to commit; later ones find what earlier ones left.
BEFORE = {"seal": ["ingest"], "move": ["ingest"], "revert": ["correct"]}
COUNT = 6000
ANSWER_S = 120.0


class FrozenWorker:
    """`frozen_worker.py` on a home. `ask` waits for the answer, `freeze` for the stop, `thaw` for what comes then."""

    def __init__(self, home: Path, files: Path) -> None:
        self.home, self.log = home, home.with_suffix(".log")
        command = [sys.executable, "-m", "tests.soak.frozen_worker", str(home), str(files)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env={**os.environ, **JVM_OPTIONS}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                text=True, start_new_session=True,
            )  # fmt: skip

    def ask(self, verb: str, table: str = TABLE) -> dict[str, Any]:
        self._send(verb, table, "")
        return self._answer()

    def freeze(self, verb: str, table: str, failpoint: str) -> None:
        self._send(verb, table, failpoint)
        assert self._process.stdout
        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            if os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG) is not None:
                return
            if select.select([self._process.stdout], [], [], 0.01)[0]:
                raise AssertionError(f"{failpoint} was not reached: {self._answer()}\n{self.log.read_text()[-3000:]}")
        raise AssertionError(f"{failpoint} was not reached in {ANSWER_S} s")

    def thaw(self) -> dict[str, Any]:
        os.kill(self._process.pid, signal.SIGCONT)
        return self._answer()

    def _send(self, verb: str, table: str, failpoint: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"verb": verb, "table": table, "failpoint": failpoint}) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        assert select.select([self._process.stdout], [], [], ANSWER_S)[0], "no answer"
        line = self._process.stdout.readline()
        assert line, f"the worker ended:\n{self.log.read_text()[-3000:]}"
        return json.loads(line)

    def end(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            pipe.close()


@contextmanager
def two_workers(folder: Path) -> Iterator[list[FrozenWorker]]:
    workers = [FrozenWorker(folder / name, folder) for name in ("first", "second")]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.end()


def test_a_writer_that_is_frozen_anywhere_commits_nothing_after_a_take_over(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [TABLE, *(f"created_{position}" for position in POSITIONS)]
    create_topic(broker, TABLE, 3)
    write_files(tmp_path, broker, tables)
    events = make_events(COUNT, seed=11)
    producer, sent = Producer(broker, TABLE), []

    def send_more() -> None:
        more = events[len(sent) : len(sent) + COUNT // len(CASES)]
        producer.send(more)
        sent.extend(more)

    with s3_server(tmp_path / "s3" / "store") as store:
        store.create_bucket("bucket")
        for name, value in {**store.environment, "HYBRID_WAREHOUSE": new_url()}.items():
            monkeypatch.setenv(name, value)
        with two_workers(tmp_path) as workers:
            go_through(workers, send_more, sent)
    producer.close()


def go_through(workers: Sequence[FrozenWorker], send_more: Callable[[], None], sent: Sequence[Event]) -> None:
    """Freeze the writer at each failpoint, the two homes in turn."""
    assert workers[0].ask("create")["error"] is None
    for number, (verb, failpoint) in enumerate(CASES):
        writer, other = workers[number % 2], workers[1 - number % 2]
        table = f"created_{failpoint.rpartition('.')[2]}" if verb == "create" else TABLE
        send_more()
        for earlier in BEFORE.get(verb, ()):
            assert writer.ask(earlier)["error"] is None
        writer.freeze(verb, table, failpoint)
        assert other.ask("take-over")["error"] is None
        check(other, sent)
        answer = other.ask(verb, table)
        assert not answer["refused"], (failpoint, answer)
        late = writer.thaw()
        # What was committed before the take-over stays; that the home knows of it is all that may come after.
        is_done = failpoint.endswith("after") or failpoint.startswith(("store.put", "store.linked"))
        assert is_done or late["refused"], (failpoint, late)
        check(other, sent)
        print(f"{failpoint}: {late['error']}; the other: {answer['error']}")
    check_logs(other.home, writer.home)


def check(worker: FrozenWorker, sent: Sequence[Event]) -> None:
    check_all_once(worker.home, TABLE, live_rows(sent, upsert=False), rejected(sent))


def check_logs(home: Path, former: Path) -> None:
    """Both homes have the same commits once the former writer has followed, each operation once and in its order."""
    pull_warehouse(Home(load_settings(home=former), Silent()))
    for half in sorted(home.glob("warehouse/[!.]*/*/_delta_log")):
        there = former / half.relative_to(home)
        assert {path.name: path.read_text() for path in there.glob("*.json")} == {
            path.name: path.read_text() for path in half.glob("*.json")
        }
        acts = acts_of(half)
        assert [act.number for act in acts] == list(range(len(acts))), half
        assert len({act.id for act in acts}) == len(acts), half


def acts_of(log: Path) -> list[Act]:
    """The operations in a log, by version; the fences of take-overs are none."""
    infos = [
        json.loads(line)["commitInfo"]
        for entry in sorted(log.glob("*.json"))
        for line in entry.read_text().split("\n")
        if line.startswith('{"commitInfo"')
    ]
    states = [from_user_metadata(info["userMetadata"]) for info in infos]
    return [state.act for state in states if state is not None]


def write_files(folder: Path, broker: str, tables: Sequence[str]) -> None:
    for table in tables:
        realtime = realtime_config(table, TABLE, broker, upsert=False)
        documents = {"schema": {"schemaName": table, **SCHEMA}, "realtime": realtime, "offline": offline_config(table)}
        for name, document in documents.items():
            (folder / f"{table}_{name}.json").write_text(json.dumps(document))
