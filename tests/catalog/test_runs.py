"""The queue in the catalog: claimed once, taken up when its process fell, at most one incomplete task of a kind."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hybrid.catalog.catalog import Catalog
from hybrid.catalog.run_record import RunRequest, rests
from hybrid.catalog.runs import ATTEMPTS_MAX

TASK = "RealtimeToOfflineSegmentsTask"


def request(number: int, table: str = "orders", *, only_one: bool = False) -> RunRequest:
    return RunRequest(f"run_{number}", table, TASK, "move", {"table": table}, "http", only_one=only_one)


@pytest.fixture
def catalog(home: Path) -> Catalog:
    return Catalog.of_home(home)


def test_a_run_from_the_queue_to_its_end(catalog: Catalog) -> None:
    queued = catalog.runs.enqueue(request(1))
    assert queued is not None and queued.state == "QUEUED" and queued.arguments == {"table": "orders"}
    claimed = catalog.runs.claim()
    assert claimed is not None and (claimed.state, claimed.attempts) == ("RUNNING", 1)
    assert catalog.runs.claim() is None
    catalog.runs.tell("run_1", "Merging.")
    assert catalog.runs.find("run_1").progress == "Merging."
    catalog.runs.finish("run_1", "DONE", "Moved 7 rows.", {"rows": 7})
    done = catalog.runs.find("run_1")
    assert (done.state, done.result, done.report, done.incomplete) == ("DONE", "Moved 7 rows.", {"rows": 7}, False)
    assert catalog.runs.counts() == {("orders", TASK, "DONE"): 1}


def test_one_incomplete_task_per_table_and_type(catalog: Catalog) -> None:
    assert catalog.runs.enqueue(request(1, only_one=True)) is not None
    assert catalog.runs.enqueue(request(2, only_one=True)) is None
    assert catalog.runs.enqueue(request(3, "other", only_one=True)) is not None
    assert catalog.runs.enqueue(request(4)) is not None, "what a user asks for by hand may stand beside it"
    catalog.runs.claim()
    assert catalog.runs.enqueue(request(5, only_one=True)) is None, "it goes on"
    catalog.runs.finish("run_1", "NOTHING", "Nothing to move.")
    assert catalog.runs.enqueue(request(6, only_one=True)) is not None


def test_many_ask_at_once_and_one_is_queued(catalog: Catalog) -> None:
    gate, found = threading.Barrier(8), []

    def ask(number: int) -> None:
        gate.wait()
        found.append(catalog.runs.enqueue(request(number, only_one=True)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([run for run in found if run is not None]) == 1


@pytest.mark.slow
def test_a_run_is_claimed_by_one_only(home: Path, catalog: Catalog) -> None:
    for number in range(20):
        catalog.runs.enqueue(request(number))
    claimed: list[str] = []

    def claim() -> None:
        own = Catalog.of_home(home)
        misses = 0
        while misses < 20:
            run = own.runs.claim()
            misses += run is None
            claimed.extend([run.id] if run else [])
        own.close()

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == sorted(f"run_{number}" for number in range(20))


def test_a_fallen_run_is_taken_up_and_not_for_ever(catalog: Catalog) -> None:
    catalog.runs.enqueue(request(1, only_one=True))
    for attempt in range(1, ATTEMPTS_MAX + 1):
        run = catalog.runs.claim()
        assert run is not None and run.attempts == attempt
        assert [fallen.id for fallen in catalog.runs.take_up_fallen()] == ["run_1"]
    failed = catalog.runs.find("run_1")
    assert failed.state == "FAILED" and f"died {ATTEMPTS_MAX} times" in failed.result
    assert catalog.runs.enqueue(request(2, only_one=True)) is not None


@pytest.mark.parametrize("attempts", [1, ATTEMPTS_MAX])
def test_a_run_that_has_ended_meanwhile_is_not_taken_up(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    catalog.runs.enqueue(request(1))
    catalog.runs.claim()
    seen = [replace(run, attempts=attempts) for run in catalog.runs.list(states=["RUNNING"])]
    assert catalog.runs.finish("run_1", "DONE", "Moved 7 rows.", {"rows": 7})
    monkeypatch.setattr(catalog.runs, "list", lambda **_: seen)
    assert catalog.runs.take_up_fallen() == []
    catalog.runs.tell("run_1", "Too late.")
    assert not catalog.runs.finish("run_1", "FAILED", "Too late.")
    assert not catalog.runs.finish("run_2", "DONE", "There is none.")
    run = catalog.runs.find("run_1")
    assert run is not None and (run.state, run.result, run.report) == ("DONE", "Moved 7 rows.", {"rows": 7})
    assert run.progress is None and catalog.runs.ended_counts() == {("orders", TASK, "DONE"): 1}


def test_a_run_of_a_command_is_not_taken_up(catalog: Catalog) -> None:
    with catalog.runs.recorded("run_1", "orders", TASK) as outcome:
        assert catalog.runs.take_up_fallen() == []
        outcome.ended("Moved.", did_something=True)
    assert catalog.runs.find("run_1").state == "DONE"


def test_a_catalog_of_an_earlier_version_is_brought_up_to_date(home: Path) -> None:
    home.mkdir()
    with sqlite3.connect(home / "catalog.db") as old:
        old.execute(
            "CREATE TABLE runs (id VARCHAR PRIMARY KEY, table_name VARCHAR NOT NULL, type VARCHAR NOT NULL,"
            " state VARCHAR NOT NULL, created_at VARCHAR NOT NULL, finished_at VARCHAR, result VARCHAR, pid INTEGER)"
        )
        old.execute("INSERT INTO runs VALUES ('old', 'orders', 'ingest', 'DONE', '2026-01-01', NULL, 'x', 1)")
    old.close()
    catalog = Catalog.of_home(home)
    assert [run.id for run in catalog.runs.list()] == ["old"]
    assert catalog.runs.enqueue(request(1, only_one=True)) is not None
    assert catalog.runs.enqueue(request(2, only_one=True)) is None
    Catalog.of_home(home).close()


@pytest.mark.slow
def test_processes_that_make_the_catalog_at_once(home: Path) -> None:
    failures: list[Exception] = []

    def make() -> None:
        try:
            Catalog.of_home(home).close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_signs_of_life_pauses_and_ingestion(catalog: Catalog) -> None:
    serving = catalog.serving
    assert serving.role("pipeline") is None
    for state in ("starting", "ready"):
        serving.beat("pipeline", state)
    role = serving.role("pipeline")
    assert role is not None and role.state == "ready" and role.age_s < 5
    serving.pause("orders", "maintenance")
    assert serving.pauses()["orders"].comment == "maintenance"
    assert serving.resume("orders") and not serving.resume("orders")
    serving.note_ingestion("orders", "INGESTING", None, 3)
    serving.note_ingestion("orders", "STOPPED", "Kafka does not answer.", None)
    assert serving.ingestions()["orders"].detail == "Kafka does not answer."
    serving.forget("orders")
    assert serving.ingestions() == {}


def test_a_run_whose_process_fell_rests_before_it_is_tried_again(catalog: Catalog) -> None:
    assert ATTEMPTS_MAX == 3
    catalog.runs.enqueue(request(1))
    run = catalog.runs.claim()
    assert run is not None and rests(run)
    for age, attempts, is_resting in ((2, 1, False), (2, 2, True), (11, 2, False), (-3600, 2, False)):
        started = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
        assert rests(replace(run, started_at=started, attempts=attempts)) is is_resting, (age, attempts)
    assert not rests(replace(run, attempts=0, started_at=None))


@pytest.mark.slow
def test_a_run_that_falls_too_often_says_so_as_an_error(catalog: Catalog) -> None:
    catalog.runs.enqueue(request(1))
    for _ in range(ATTEMPTS_MAX):
        catalog.runs.claim()
        catalog.runs.take_up_fallen()
    failed = catalog.runs.find("run_1")
    assert failed.error is not None and failed.error["kind"] == "machine" and "not tried again" in failed.error["error"]


def test_a_claim_looks_at_no_arguments_of_those_that_wait(catalog: Catalog) -> None:
    for number in range(3):
        catalog.runs.enqueue(request(number))
    looked = []
    found = catalog.runs.claim(lambda run: looked.append(run.arguments) or run.id == "run_2")
    assert looked == [{}, {}, {}] and found is not None and found.arguments == {"table": "orders"}


def test_old_runs_are_removed_and_the_newest_stays(catalog: Catalog) -> None:
    for number in range(12):
        catalog.runs.enqueue(request(number, table="a" if number < 6 else "b"))
        if number != 3:
            catalog.runs.finish(f"run_{number}", "DONE", "Done.")
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    assert catalog.runs.remove_old(now_ms) == 0
    assert catalog.runs.remove_old(now_ms, per_table=4) == 4
    assert catalog.runs.remove_old(now_ms + 31 * 86_400_000) == 5
    left = {run.table_name: run.state for run in catalog.runs.list()}
    assert len(catalog.runs.list()) == 3 and left["b"] == "DONE" and "run_3" in {run.id for run in catalog.runs.list()}


def test_a_fallen_run_of_some_alone_is_taken_up(catalog: Catalog) -> None:
    for number in (1, 2):
        catalog.runs.enqueue(request(number))
        catalog.runs.claim()
    assert [run.id for run in catalog.runs.take_up_fallen(["run_2"])] == ["run_2"]
    assert catalog.runs.find("run_1").state == "RUNNING"
