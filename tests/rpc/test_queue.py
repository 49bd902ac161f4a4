"""The queue of heavy work without a JVM: ids of one millisecond, a JVM that outlives its process, and a lost one."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.catalog.run_record import RunRecord
from hybrid.config.table_config import Half
from hybrid.errors import AccessError, BusyError, ConflictError, DataError, MachineError, UsageError
from hybrid.home.home import Home, is_act_of, run_act_id
from hybrid.lake.log import open_half
from hybrid.progress import Silent
from hybrid.rpc import queue as workqueue
from hybrid.rpc.client import Client, _report
from hybrid.rpc.queue import PipelineLost, carry_out, enqueue
from hybrid.rpc.verbs import Verb
from hybrid.table.state import next_act, to_user_metadata
from tests.recorded_progress import Heard

REVERT = {"entry": "replace-1"}


@pytest.fixture
def here(home: Path) -> Iterator[Hybrid]:
    """A home with two offline tables, and a workbench that starts no JVM."""
    found = hybrid.connect(home)
    for table in ("one", "two"):
        schema = {"schemaName": table, "dimensionFieldSpecs": [{"name": "k", "dataType": "INT"}]}
        config = {"tableName": table, "tableType": "OFFLINE", "segmentsConfig": {"schemaName": table}}
        found.create_table(TableDocuments((schema, "schema"), [(config, "config")]))
    yield found
    found.close()


class Bench:
    """A workbench of which only the lock is used; `meanwhile` happens while it is waited for."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._meanwhile = meanwhile

    @contextmanager
    def lock(self, *_: object) -> Iterator[None]:
        self._meanwhile()
        yield


def claimed(here: Hybrid, attempts: int) -> RunRecord:
    """A run that was carried out `attempts` times, this time included."""
    assert enqueue(here, "revert", {"table": "one", **REVERT}, "http") is not None
    for _ in range(attempts):
        here.context.catalog.runs.take_up_fallen()
        run = here.context.catalog.runs.claim()
    assert run is not None and run.attempts == attempts
    return run


def carry(here: Hybrid, run: RunRecord, verb: Callable[..., Any], bench: Bench, *, is_alive: bool = True) -> RunRecord:
    """How the run stands after it was carried out, `verb` standing in for the real one."""
    twin = here.context.for_task
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(here.context, "for_task", lambda *words: _with_bench(twin(*words), bench))
        carry_out(here, run, lambda: is_alive, {"revert": Verb(verb, "revert")})
    return here.run(run.id)


def _with_bench(twin: Home, bench: Bench) -> Home:
    vars(twin)["bench"] = bench
    return twin


def commit(here: Hybrid, table: str, act_id: str) -> None:
    """An act in the OFFLINE half's log, as a JVM writes it."""
    path = here.context.layout(table).half(Half.OFFLINE)
    half = open_half(path)
    act = next_act(half.offline, act_id, "revert", here.context.bench.now_iso(), {"result": "Put it back."})
    line = {"commitInfo": {"userMetadata": to_user_metadata(replace(half.offline, act=act))}}
    entry = path / "_delta_log" / f"{half.version + 1:020d}.json"
    entry.write_text(json.dumps(line, separators=(",", ":")))


@pytest.mark.slow
def test_runs_of_one_millisecond_have_ids_of_their_own(here: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    now, gate, runs = time.time_ns(), threading.Barrier(8), []
    monkeypatch.setattr(time, "time_ns", lambda: now)

    def ask(table: str) -> None:
        gate.wait()
        runs.append(enqueue(here, "revert", {"table": table, **REVERT}, "http"))

    threads = [threading.Thread(target=ask, args=(table,)) for table in 4 * ["one", "two"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({run.id for run in runs if run is not None}) == 8


@pytest.mark.slow
def test_what_a_surviving_jvm_commits_is_not_done_again(here: Hybrid) -> None:
    run = claimed(here, attempts=2)
    done: list[Mapping[str, Any]] = []
    bench = Bench(lambda: commit(here, "one", f"revert-{run.id}"))
    ended = carry(here, run, lambda home, **arguments: done.append(arguments), bench)
    assert not done
    assert ended.state == "DONE" and ended.result.startswith("Put it back. (Version 1 of OFFLINE;")


def test_what_nobody_committed_is_done(here: Hybrid) -> None:
    run = claimed(here, attempts=2)
    commit(here, "one", "revert-of_another_run")
    ended = carry(here, run, lambda home, **arguments: {"sentence": "Done now."}, Bench())
    assert (ended.state, ended.result) == ("DONE", "Done now.")


def test_an_error_of_the_work_fails_the_run_and_one_of_a_lost_jvm_does_not(here: Hybrid) -> None:
    def refuse(home: Hybrid, **arguments: object) -> None:
        raise ConflictError("It has been taken back already.")

    ended = carry(here, claimed(here, attempts=1), refuse, Bench())
    assert (ended.state, ended.result) == ("FAILED", "It has been taken back already.")
    run = claimed(here, attempts=1)
    with pytest.raises(PipelineLost):
        carry(here, run, refuse, Bench(), is_alive=False)
    assert here.run(run.id).state == "RUNNING", "its successor takes it up"


def test_a_committed_run_is_not_done_again_after_the_clock_was_set_back(here: Hybrid) -> None:
    run = claimed(here, attempts=2)
    commit(here, "one", f"revert-{run.id}")
    here.context.bench.now_iso = lambda: "2001-01-01T00:00:00.000Z"  # type: ignore[method-assign]
    commit(here, "one", "merge-later")
    done: list[Mapping[str, Any]] = []
    ended = carry(here, run, lambda home, **arguments: done.append(arguments), Bench())
    assert not done and ended.state == "DONE" and "Version 1 of OFFLINE" in ended.result


@pytest.mark.parametrize("earlier", [True, False])
def test_the_operation_of_a_run_has_its_kind_once(here: Hybrid, earlier: bool) -> None:
    """Commits of earlier versions, which have it twice, are found too: a run is not done again after an upgrade."""
    run = claimed(here, attempts=2)
    number = run.id.removeprefix("revert_")
    assert run_act_id("revert", run.id) == f"revert-{number}" and run_act_id("move", "Task_x_7") == "move-Task_x_7"
    assert not is_act_of(f"revert-1{number}", run.id) and not is_act_of(f"replay-{number}", run.id)
    commit(here, "one", f"revert-{run.id}" if earlier else f"revert-{number}")
    done: list[Mapping[str, Any]] = []
    assert carry(here, run, lambda home, **arguments: done.append(arguments), Bench()).state == "DONE" and not done


def test_commits_from_before_the_queueing_are_not_looked_at(here: Hybrid) -> None:
    commit(here, "one", "revert-revert_1")
    run = replace(claimed(here, attempts=1), id="revert_1")
    assert run.queued_version is None or run.queued_version == 1
    assert workqueue.committed(here, replace(run, queued_version=1)) is None
    assert workqueue.committed(here, replace(run, queued_version=None)) is not None


@pytest.mark.slow
def test_the_queue_is_bounded(here: Hybrid) -> None:
    for _ in range(2):
        assert enqueue(here, "revert", {"table": "one", **REVERT}, "http:ada", 2) is not None
    with pytest.raises(BusyError, match="2 runs of 'http:ada' wait already"):
        enqueue(here, "revert", {"table": "one", **REVERT}, "http:ada", 2)
    assert enqueue(here, "revert", {"table": "one", **REVERT}, "http:bob") is not None
    with pytest.raises(UsageError, match="at most 4194304"):
        enqueue(here, "revert", {"table": "one", "entry": "x" * 5_000_000}, "http:bob")


def test_progress_is_recorded_seldom_and_the_end_of_a_stage_always(
    here: Hybrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, now_s = claimed(here, 1), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    progress, told = workqueue.RunProgress(here.context.catalog.runs, run.id), list[str | None]()
    for passed_s, done in ((0.0, 0), (0.1, 1), (1.0, 2), (0.0, 3)):
        now_s[0] += passed_s
        progress.step("reading files", done, 3)
        told.append(here.run(run.id).progress)
    assert told == [f"reading files: {done} of 3" for done in (0, 0, 2, 3)]


def test_a_run_that_starts_again_says_why(here: Hybrid) -> None:
    run = claimed(here, 1)
    here.context.catalog.runs.take_up_fallen()
    assert here.run(run.id).progress == "The server's process ended during this run. It starts again."


def test_a_client_shows_a_stage_as_its_own_work() -> None:
    heard = Heard()
    for message in ("reading files: 3 of 22", "Removed 3 of 22 files.", "Reading: some of 22"):
        _report(heard, message)
    assert heard.steps == [("reading files", 3, 22)]
    assert heard.said == ["Removed 3 of 22 files.", "Reading: some of 22"]


def test_a_run_keeps_every_error_of_a_file(here: Hybrid) -> None:
    """In the sentence that lists show, and one by one in its error; so does a run of a command's own process."""

    def wrong(*_: object, **__: object) -> Any:
        raise DataError("x.csv, line 2: no number.").carry([DataError("line 5: no date."), DataError("line 9: cut.")])

    run = carry(here, claimed(here, 1), wrong, Bench())
    assert (run.state, run.result) == ("FAILED", "x.csv, line 2: no number. line 5: no date. line 9: cut.")
    assert run.error is not None and len(run.error["errors"]) == 3
    with pytest.raises(DataError), here.context.recorded("one", "replace"):
        wrong()
    assert here.runs("one", limit=1)[0].result == run.result


class Answers:
    """A server's answers to a client, in their order; the last one again and again. The time is that of its waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
        self.asked, self._answers, self.now_s = list[str](), list(answers), 0.0
        monkeypatch.setattr(Client, "_request", self._answer)
        monkeypatch.setattr("hybrid.rpc.client.time", self)

    def _answer(self, method: str, path: str, *_: Any, **__: Any) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return (202, answer) if method == "POST" else (200, answer)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


QUEUED = {"run": "move_1"}
ENDED = {"state": "DONE", "progress": None, "error": None, "report": {"rows": 3}}
LOST = MachineError("The server at http://h:1 does not answer (ConnectionRefusedError).", hint="hybrid serve")


def test_a_client_waits_for_a_server_that_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch, QUEUED, *[LOST] * 9, ENDED)
    assert Client("http://h:1", Silent()).call("move", {"table": "one"}) == {"rows": 3}
    assert answers.asked[0] == "POST /verbs/move" and set(answers.asked[1:]) == {"GET /runs/move_1"}


def test_a_client_that_gives_up_names_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch, QUEUED, LOST)
    with pytest.raises(MachineError, match=r"does not answer .* It may continue run move_1 and commit it") as raised:
        Client("http://h:1", Silent()).call("move", {"table": "one"})
    assert str(raised.value.hint).startswith("hybrid task show move_1") and 15 < answers.now_s < 60


def test_what_a_server_refuses_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch, QUEUED, AccessError("No account has this secret."))
    with pytest.raises(AccessError):
        Client("http://h:1", Silent()).call("move", {"table": "one"})
    assert len(answers.asked) == 2
