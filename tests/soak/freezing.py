"""Two homes of one warehouse, each with a process that can be frozen at a failpoint; they take turns in writing."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.settings import load_settings
from hybrid.home.home import Home
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.failpoints import POSITIONS
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.progress import Silent
from hybrid.table.state import Act, from_user_metadata
from tests.mirrors import new_url
from tests.s3_server import s3_server
from tests.shared_jvm import start_serving

# The verb of `frozen_worker` that commits each kind, by the test that freezes it: of tables with a stream, of what
# corrects their rows, of tables that files fill, and of what removes their rows for good.
STREAM_VERBS = {"ingest": "ingest", "seal": "seal", "move": "move", "boundary": "boundary", "evolve": "evolve",
                "start": "ingest", "reset": "reset", "create": "create"}  # fmt: skip
CORRECTION_VERBS = {"replace": "correct", "revert": "revert", "replay": "replay", "claim": "claim",
                    "release": "release"}  # fmt: skip
FILE_VERBS = {"history": "ingest", "retention": "retention", "merge": "merge", "backfill": "backfill", "flow": "flow",
              "refresh": "refresh"}  # fmt: skip
PURGE_VERBS = {"purge": "purge"}
ANSWER_S = 120.0


class FrozenWorker:
    """`frozen_worker.py` on a home. `ask` waits for the answer, `freeze` for the stop, `thaw` for what comes then."""

    def __init__(self, home: Path, files: Path, workbench: CommitContext) -> None:
        self.home, self._log = home, home.with_suffix(".log")
        arguments = (str(home), str(files))
        self._process, self._requests = start_serving("tests.soak.frozen_worker", arguments, workbench, self._log)

    def ask(self, verb: str, table: str = "") -> dict[str, Any]:
        self._send(verb, table, "")
        return self._answer()

    def do(self, verb: str, table: str = "") -> None:
        """`ask`, for what must succeed."""
        answer = self.ask(verb, table)
        assert answer["error"] is None, (verb, table, answer)

    def freeze(self, verb: str, table: str, failpoint: str) -> None:
        self._send(verb, table, failpoint)
        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            if self._requests.poll(0.01):
                raise AssertionError(f"{failpoint} was not reached: {self._answer()}\n{self._logged()}")
            if self._is_stopped():
                return
        raise AssertionError(f"{failpoint} was not reached in {ANSWER_S} s")

    def thaw(self) -> dict[str, Any]:
        assert self._process.pid
        os.kill(self._process.pid, signal.SIGCONT)
        return self._answer()

    def _is_stopped(self) -> bool:
        stat = Path("/proc", str(self._process.pid), "stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def _send(self, verb: str, table: str, failpoint: str) -> None:
        self._requests.send({"verb": verb, "table": table, "failpoint": failpoint})

    def _answer(self) -> dict[str, Any]:
        assert self._requests.poll(ANSWER_S), "no answer"
        try:
            return self._requests.recv()
        except EOFError:
            raise AssertionError(f"the worker ended:\n{self._logged()}") from None

    def _logged(self) -> str:
        return self._log.read_text()[-3000:]

    def end(self) -> None:
        self._process.kill()
        self._process.join(30)
        self._requests.close()


class Homes:
    """The two homes: `writer` writes the warehouse, `other` has not taken it over yet, or was refused last."""

    def __init__(self, first: FrozenWorker, second: FrozenWorker) -> None:
        self.writer, self.other = first, second
        self.frozen_at: list[str] = []

    def freeze(
        self,
        table: str,
        failpoint: str,
        verb: str | None = None,
        taken_over: Callable[[FrozenWorker], None] = lambda _: None,
    ) -> None:
        """Freeze the writer at a failpoint; the other one takes over and does the same verb; the first one goes on.

        Without `verb` it is the one that commits the failpoint's kind. `taken_over` is called with the new writer
        before it does the verb. The first one is refused, with what to do, unless its commit was done before the
        take-over: then that it learns of it is all that may come.
        """
        verb = verb or {**STREAM_VERBS, **CORRECTION_VERBS, **FILE_VERBS, **PURGE_VERBS}[failpoint.partition(".")[0]]
        frozen, self.writer = self.writer, self.other
        self.other = frozen
        frozen.freeze(verb, table, failpoint)
        self.writer.do("take-over")
        taken_over(self.writer)
        answer = self.writer.ask(verb, table)
        assert not answer["refused"], (failpoint, answer)
        late = frozen.thaw()
        if late["error"] is None:
            assert is_done_at(failpoint), failpoint
        else:
            assert late["refused"] and late["hint"], (failpoint, late)
        self.frozen_at.append(failpoint)
        print(f"{failpoint}: {late['error']}; the other: {answer['error']}")

    def check_logs(self) -> None:
        """Both have the same commits once the former writer has followed, each operation once and in its order."""
        pull_warehouse(Home(load_settings(home=self.other.home), Silent()))
        for half in sorted(self.writer.home.glob("warehouse/[!.]*/*/_delta_log")):
            there = self.other.home / half.relative_to(self.writer.home)
            assert {path.name: path.read_text() for path in there.glob("*.json")} == {
                path.name: path.read_text() for path in half.glob("*.json")
            }
            acts = acts_of(half)
            assert [act.number for act in acts] == list(range(len(acts))), half
            assert len({act.id for act in acts}) == len(acts), half

    def count_acts(self, table: str) -> Counter[str]:
        """The number of operations in the logs of a table's halves, by kind."""
        logs = self.writer.home.glob(f"warehouse/{table}/*/_delta_log")
        return Counter(act.kind for log in logs for act in acts_of(log))


def is_done_at(failpoint: str) -> bool:
    """Whether the store has the commit at this point."""
    return failpoint.endswith("after") or failpoint.startswith(
        ("store.put", "store.linked", "plan.removed", "purge.announced")
    )


def failpoints_of(kinds: Iterable[str]) -> list[str]:
    """The failpoints of some kinds of commits."""
    return [f"{kind}.commit.{position}" for kind in kinds for position in POSITIONS]


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


@contextmanager
def homes_on_a_store(folder: Path, monkeypatch: pytest.MonkeyPatch, workbench: CommitContext) -> Iterator[Homes]:
    """Two homes of a new warehouse on an S3 server of their own. The tables' documents are in `folder`."""
    with s3_server(folder / "s3" / "store") as store:
        store.create_bucket("bucket")
        for name, value in {**store.environment, "HYBRID_WAREHOUSE": new_url()}.items():
            monkeypatch.setenv(name, value)
        workers = [FrozenWorker(folder / name, folder, workbench) for name in ("first", "second")]
        try:
            yield Homes(*workers)
        finally:
            for worker in workers:
                worker.end()
