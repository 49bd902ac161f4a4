"""A catalog that cannot be used stops neither ingestion nor the pipeline, and readiness says so."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.progress import Silent
from hybrid.rpc.queue import RunProgress
from hybrid.serve import health, supervisor
from hybrid.serve.ingester import Ingester, SharedLooks
from hybrid.serve.pipeline import Pipeline

LOCKED = sa.exc.OperationalError("SELECT 1", {}, Exception("database is locked"))


@pytest.fixture
def here(home: Path) -> Iterator[Hybrid]:
    found = hybrid.connect(home)
    yield found
    found.close()


def fail(*_: Any, **__: Any) -> Any:
    raise LOCKED


def test_the_pipeline_goes_on_and_says_why_it_is_not_ready(
    here: Hybrid, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = Pipeline(here, threading.Event())
    monkeypatch.setattr(here.context.catalog.runs, "claim", fail)
    monkeypatch.setattr(pipeline._scheduler, "look", fail)
    pipeline._look()
    assert pipeline._start_waiting() is False and pipeline._state == "The queue cannot be read: OperationalError"
    pipeline._look()  # which logs nothing: it has said so just now
    assert pipeline._state == "The tables cannot be looked at: OperationalError"
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [error.split(":")[0] for error in errors] == ["The tables cannot be looked at", "The queue cannot be read"]
    monkeypatch.undo()
    pipeline._look()
    assert pipeline._state == "ready" and not pipeline._lost


def test_a_run_whose_end_could_not_be_noted_is_taken_up_again(here: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, taken = Pipeline(here, threading.Event()), []
    monkeypatch.setattr("hybrid.serve.pipeline.carry_out", fail)
    pipeline._carry_out(SimpleNamespace(id="job_1"))  # type: ignore[arg-type]
    assert not pipeline._lost
    monkeypatch.setattr(here.context.catalog.runs, "take_up_fallen", taken.append)
    pipeline._look()
    pipeline._look()
    assert taken == [["job_1"]]


def test_a_table_is_ingested_while_the_catalog_cannot_be_read(here: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    table = SimpleNamespace(
        spec=SimpleNamespace(stream=None),
        connectors=SimpleNamespace(waits=lambda: None),
        ingest_batch=lambda offsets_max: batches.append(1),
    )
    monkeypatch.setattr(here, "table", lambda name: table)
    ingester = Ingester(here, "orders", SharedLooks(here.context.catalog.serving), lambda: False)
    ingester._round()
    serving = here.context.catalog.serving
    monkeypatch.setattr(serving, "pauses", fail)
    monkeypatch.setattr(serving, "note_ingestion", fail)
    ingester._round()
    assert batches == [1, 1]


def test_a_state_that_could_not_be_noted_is_noted_later(here: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that stays is confirmed together with those of other tables, without another record."""
    table = SimpleNamespace(
        spec=SimpleNamespace(stream=None),
        connectors=SimpleNamespace(waits=lambda: None),
        ingest_batch=lambda offsets_max: None,
    )
    monkeypatch.setattr(here, "table", lambda name: table)
    serving, written = here.context.catalog.serving, list[str]()
    note = serving.note_ingestion

    def counted(table: str, *given: Any) -> None:
        written.append(table)
        note(table, *given)

    with monkeypatch.context() as patched:
        patched.setattr(serving, "note_ingestion", fail)
        shared = SharedLooks(serving)
        ingesters = [Ingester(here, name, shared, lambda: False) for name in ("orders", "clicks")]
        for ingester in ingesters:
            ingester._round()
    assert serving.ingestions() == {}
    monkeypatch.setattr(serving, "note_ingestion", counted)
    for ingester in ingesters:
        ingester._round()
    noted = serving.ingestions()
    time.sleep(0.002)  # what holds still is confirmed by the millisecond
    for ingester in ingesters:
        ingester._round()
    assert sorted(written) == sorted(noted) == ["clicks", "orders"]
    shared._confirmed_at -= 60
    time.sleep(0.002)
    ingesters[0]._round()
    confirmed = serving.ingestions()
    assert all(confirmed[name].at_ms > noted[name].at_ms for name in noted) and len(written) == 2
    shared.confirm("orders")
    time.sleep(0.002)
    ingesters[0]._note("INGESTING", None, 7)
    newer = serving.ingestions()["orders"]
    shared._confirmed_at -= 60
    shared.confirm("clicks")
    assert serving.ingestions()["orders"] == newer, "an older confirmation is void"
    serving.forget("clicks")
    shared._confirmed_at -= 60
    ingesters[1]._round()
    assert list(serving.ingestions()) == ["orders"], "a table that was dropped does not come back"


def test_a_paused_table_stays_paused_while_the_catalog_cannot_be_read(
    here: Hybrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    table = SimpleNamespace(
        spec=SimpleNamespace(stream=None),
        connectors=SimpleNamespace(waits=lambda: None),
        ingest_batch=lambda offsets_max: batches.append(1),
    )
    monkeypatch.setattr(here, "table", lambda name: table)
    here.context.catalog.serving.pause("orders", "for now")
    ingester = Ingester(here, "orders", SharedLooks(here.context.catalog.serving), lambda: False)
    ingester._round()
    monkeypatch.setattr(here.context.catalog.serving, "pauses", fail)
    ingester._round()
    assert not batches and here.context.catalog.serving.ingestions()["orders"].state == "PAUSED"
    other = Ingester(here, "orders", SharedLooks(here.context.catalog.serving), lambda: False)
    other._round()
    assert not batches, "nobody knows yet whether it is paused"


def test_that_nothing_is_left_behind_is_noted_at_once(here: Hybrid) -> None:
    """A state that stays is noted now and then only, but a lag that has gone is no such state."""
    ingester = Ingester(here, "orders", SharedLooks(here.context.catalog.serving), lambda: False)
    for behind in (5, 0):
        ingester._note("INGESTING", None, behind)
        assert here.context.catalog.serving.ingestions()["orders"].behind == behind


def test_a_run_goes_on_while_its_progress_cannot_be_recorded(caplog: pytest.LogCaptureFixture) -> None:
    progress = RunProgress(SimpleNamespace(tell=fail), "move_1")  # type: ignore[arg-type]
    for number in range(3):
        progress.say("Merging.")
        progress.step("files", number, 2)
    assert caplog.text.count("The progress of run move_1 cannot be recorded") == 1, "asked again after a while only"


def test_readiness_says_that_the_catalog_does_not_answer() -> None:
    found = health._checked("catalog", SimpleNamespace(), fail)  # type: ignore[arg-type]
    assert found["ok"] is False and "database is locked" in str(found["detail"])


def test_a_catalog_that_does_not_answer_is_asked_once(here: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(here.context.catalog.runs, "list", fail)
    monkeypatch.setattr(here.context.catalog.serving, "role", asked.append)
    results = health.checks(SimpleNamespace(home=here))  # type: ignore[arg-type]
    assert {check["name"]: check["ok"] for check in results} == {
        "catalog": False, "warehouse": True, "pipeline": False, "connectors": False,
    }  # fmt: skip
    assert not asked and "database is locked" in str(results[-1]["detail"])


@pytest.mark.process
def test_a_pipeline_that_hangs_is_killed(tmp_path: Path) -> None:
    watch = supervisor._Supervisor(tmp_path, [], [], [], Silent(), hung_s=0.3)
    child = next(one for one in watch._children if one.role == supervisor.PIPELINE)
    child.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    child.started_at = time.monotonic()
    beat = tmp_path / supervisor.BEAT_FILE
    for number in range(5):
        beat.touch()
        os.utime(beat, ns=(0, number))  # wall clocks may say what they like
        watch._kill_hung(child, child.process, time.monotonic())
        time.sleep(0.1)
    assert child.process.poll() is None
    time.sleep(0.4)
    watch._kill_hung(child, child.process, time.monotonic())
    assert child.process.wait(5) != 0
