"""Schedules by a clock of the test's own: due once, not twice, and once for all that came due meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.cron import Cron
from hybrid.config.retention_json import RETENTION_TASK
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.config.task_schedules import OPTIMIZE_TASK, VACUUM_TASK
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.progress import Silent
from hybrid.serve.pipeline import Pipeline
from hybrid.serve.scheduler import Scheduler

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
MINUTE_MS = 60_000
EMPTY = {"name": "aaa", "schema_doc": {}, "created_at": ""}
SCHEDULE = "/task/taskTypeConfigsMap/RealtimeToOfflineSegmentsTask/schedule=0 0/10 * * * ?"

pytestmark = pytest.mark.kafka


class Clock:
    """Starts today, as runs bear the real date, at a minute that no schedule of the table names for 25 minutes."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        # VacuumTask comes at 17 minutes past every sixth hour.
        start = now.replace(hour=now.hour + (now.hour % 6 == 0), minute=5, second=0, microsecond=0)
        self.ms = int(start.timestamp() * 1000)

    def __call__(self) -> int:
        return self.ms

    def pass_minutes(self, count: float) -> None:
        self.ms += int(count * MINUTE_MS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hy(home: Path, broker: str, topic: str, clock: Clock) -> Iterator[Hybrid]:
    found = Hybrid(load_settings(home=home), Silent(), clock)
    configs = [DATA / "orders_table.json", DATA / "orders_offline_table.json"]
    changes = [f"stream.kafka.topic.name={topic}", SCHEDULE]
    found.create_table(TableDocuments.read(DATA / "orders_schema.json", configs, broker, changes))
    yield found
    found.close()


def test_due_once_and_alone(hy: Hybrid, clock: Clock) -> None:
    scheduler = Scheduler(hy)
    scheduler.look([hy.spec("orders")])
    assert hy.runs() == [], "it was not due when the server first saw it"
    clock.pass_minutes(5)
    for _ in range(3):
        scheduler.look([hy.spec("orders")])
    (run,) = hy.runs("orders")
    assert (run.source, run.verb, run.state) == ("schedule", "task_run", "QUEUED")

    clock.pass_minutes(10)
    scheduler.look([hy.spec("orders")])
    assert len(hy.runs("orders")) == 1, "the first one is incomplete"
    (waiting,) = (one for one in hy.schedules("orders") if one.type == MOVE_TASK)
    assert waiting.state == "QUEUED" and "is running" in waiting.result

    hy.context.catalog.runs.finish(run.id, "NOTHING", "Nothing to move.")
    clock.pass_minutes(10)
    scheduler.look([hy.spec("orders")])
    assert [one.state for one in hy.runs("orders")] == ["QUEUED", "NOTHING"]
    (found,) = (one for one in hy.schedules() if one.type == MOVE_TASK)
    assert found.next_ms == clock.ms + 10 * MINUTE_MS


def test_what_came_due_while_no_server_ran_is_run_once(hy: Hybrid, clock: Clock) -> None:
    scheduler = Scheduler(hy)
    scheduler.look([hy.spec("orders")])
    clock.pass_minutes(5)
    scheduler.look([hy.spec("orders")])
    hy.context.catalog.runs.finish(hy.runs()[0].id, "DONE", "Moved.")
    clock.pass_minutes(24 * 60)
    later = Scheduler(hy)
    for _ in range(3):
        later.look([hy.spec("orders")])
    assert [run.state for run in hy.runs() if run.type == MOVE_TASK] == ["QUEUED", "DONE"]


def test_a_table_that_cannot_be_read_stops_no_others_and_stays_paused(hy: Hybrid, clock: Clock) -> None:
    broken = hy.settings.warehouse / "aaa" / "definition.json"
    broken.parent.mkdir()
    broken.write_text(json.dumps(dict.fromkeys(("realtime_doc", "offline_doc", "brokers"), None) | EMPTY))
    locked = hy.settings.warehouse / "bbb" / "definition.json"
    locked.mkdir(parents=True)  # to read a folder fails, as a disk that does not answer does
    serving, pipeline = hy.context.catalog.serving, Pipeline(hy, threading.Event())
    thread = partial(SimpleNamespace, is_alive=lambda: True)
    threads = {name: thread(stop=threading.Event()) for name in ("aaa", "bbb", "gone", "orders")}
    pipeline._ingesters, pipeline._loaders = dict(threads), dict(threads)  # type: ignore[arg-type]
    for name in threads:
        serving.pause(name)
    pipeline._look()
    clock.pass_minutes(5)
    pipeline._look()
    assert [run.table_name for run in hy.context.catalog.runs.list()] == ["orders"]
    assert sorted(pipeline._ingesters) == ["aaa", "bbb", "orders"]
    assert sorted(serving.pauses()) == sorted(threads), "one that is dropped may come back"
    assert sorted(pipeline._loaders) == ["aaa", "bbb"], "orders has no connectors"
    assert not threads["aaa"].stop.is_set() and threads["gone"].stop.is_set()


def test_a_table_that_is_dropped_while_it_is_looked_at_does_not_stop_the_others(hy: Hybrid, clock: Clock) -> None:
    scheduler, orders = Scheduler(hy), hy.spec("orders")
    both = [replace(orders, name="dropped"), orders]
    scheduler.look(both)
    clock.pass_minutes(5)
    scheduler.look(both)
    assert [run.table_name for run in hy.context.catalog.runs.list()] == ["orders"]


def test_each_task_of_a_table_has_its_own_schedule(hy: Hybrid, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    cron = Cron.parse("0 0/20 * * * ?", "test", "schedule")
    spec = replace(hy.spec("orders"), retention={Half.OFFLINE: 1}, retention_schedule=cron)
    monkeypatch.setattr(hy, "spec", lambda name: spec)
    monkeypatch.setattr(hy.context, "spec", lambda name: spec)
    scheduler = Scheduler(hy)
    scheduler.look([hy.spec("orders")])
    clock.pass_minutes(5)
    scheduler.look([hy.spec("orders")])
    assert [run.type for run in hy.runs()] == [MOVE_TASK]
    clock.pass_minutes(10)
    scheduler.look([hy.spec("orders")])
    assert sorted(run.type for run in hy.runs()) == sorted([MOVE_TASK, RETENTION_TASK])
    states = {one.type: one.state for one in hy.schedules("orders")}
    assert states == {MOVE_TASK: "QUEUED", RETENTION_TASK: "QUEUED", OPTIMIZE_TASK: "WAITING", VACUUM_TASK: "WAITING"}
