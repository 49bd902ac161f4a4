"""The page of tasks: history by table, type and state, why runs wait, schedules, hostile text. No JVM."""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import urlencode

import pytest

from hybrid.api.hybrid import TableDocuments
from hybrid.catalog.run_record import RunRecord, RunRequest
from hybrid.clock import wall_clock_ms
from hybrid.errors import DataError, NotFoundError, error_document
from hybrid.home.accounts import Right
from hybrid.operations.run_list import RunFilter, list_runs, tables_and_types
from hybrid.runtime.json_values import stamp
from hybrid.serve import run_lanes
from hybrid.serve.console.durations import duration_words
from hybrid.serve.console.tasks import duration_of, run_row
from hybrid.serve.run_lanes import may_start, why_waits
from tests.console.page_requests import EVIL, fetched, key, page, twin
from tests.console.test_ingestion import lay
from tests.serve.app import MOVE, OFFLINE, REALTIME, SCHEMA, App

PATH = "/ui/tasks"


def run(run_id: str, kind: str = "move", **more: Any) -> RunRecord:
    values = {"state": "QUEUED", "created_at": "2026-01-01T00:00:00.000Z", "verb": "move", "attempts": 0}
    return RunRecord(run_id, **{"table_name": "orders", "type": kind, **values, **more})


def test_durations_have_two_units() -> None:
    assert [duration_words(value) for value in (0, 400, 12_345, 60_000, 250_000, 7_500_000, 90_000_000)] == [
        "0.0 s", "0.4 s", "12 s", "1 min", "4 min 10 s", "2 h 5 min", "1 d 1 h",
    ]  # fmt: skip
    assert duration_of(run("a")) is None
    times = {"started_at": "2026-01-01T00:00:01.000Z", "finished_at": "2026-01-01T00:00:00.000Z"}
    assert duration_of(run("a", **times)) == "0.0 s"  # a clock that was set back


def test_a_run_waits_for_one_reason_that_the_pipeline_has() -> None:
    """What is said to wait may not start, and what starts next may."""

    def wait(one: RunRecord, running: list[RunRecord], queued: list[RunRecord]) -> tuple[str, str | None]:
        found = why_waits(one, running, queued)
        busy = {run_lanes.lane_of(other) for other in running if other.verb is not None}
        starts = may_start(one, busy) and not queued and len(running) < run_lanes.WORKERS_MAX
        assert starts == (found.sentence == "It starts next.")
        return found.sentence.split()[2], found.run

    going = {"state": "RUNNING"}
    assert wait(run("a"), [], []) == ("next.", None)
    assert wait(run("a"), [run("b", **going)], []) == ("when", "b")
    assert wait(run("a"), [run("b", "seal", **going)], []) == ("next.", None)  # another half
    assert wait(run("a"), [run("b", verb=None, **going)], []) == ("next.", None)  # a command's own process
    assert wait(run("a"), [], [run("b"), run("c")]) == ("after", "b")
    backfills = [run(f"b{n}", "backfill", table_name=f"t{n}", **going) for n in range(3)]
    assert why_waits(run("a", "backfill"), backfills, []).sentence.startswith("3 backfills run")
    assert not may_start(run("a", "backfill"), {run_lanes.lane_of(one) for one in backfills})
    moves = [run(f"m{n}", table_name=f"t{n}", **going) for n in range(4)]
    assert why_waits(run("a"), moves, []).sentence == "All 4 workers are busy."
    crashed = run("a", attempts=2, started_at=stamp(wall_clock_ms()))
    assert "process ended" in why_waits(crashed, [], []).sentence and not may_start(crashed, set())
    late = run("a", attempts=2, started_at="9999-01-01T00:00:00.000Z")
    assert wait(late, [], [])[0] == "next."  # a clock that was set back delays nothing


def test_a_row_says_what_to_do_about_a_failure() -> None:
    error = {"error": "The disk is full.", "hint": "hybrid doctor"}
    row = run_row(run("a", state="FAILED", result="It failed.", error=error), ["orders"])
    assert (row["reason"], row["hint"], row["has_table"]) == ("The disk is full.", "hybrid doctor", True)
    same = run_row(run("a", state="FAILED", result="x", error={"error": "x", "hint": None}), ["orders"])
    assert same["reason"] is None and same["hint"] == "hybrid doctor orders"
    gone = run_row(run("a", table_name="*", state="FAILED", result="x"), ["orders"])
    assert gone["hint"] == "hybrid doctor" and not gone["has_table"]
    done = run_row(run("a", state="DONE", result="Moved."), ["orders"])
    assert done["hint"] is None and done["reason"] is None


@pytest.fixture
def tables(app: App) -> App:
    """Over the table orders with a schedule, a failed run of hostile words, runs that wait, and one of a table gone."""
    move = {MOVE: {"bucketTimePeriod": "2h", "schedule": "0 0/5 * * * ?"}}
    scheduled = {**REALTIME, "task": {"taskTypeConfigsMap": move}}
    lay(app.home, TableDocuments((SCHEMA, "schema"), [(scheduled, "realtime"), (OFFLINE, "offline")]))
    runs = app.home.context.catalog.runs
    error = error_document(DataError(f"{EVIL} is no row.", hint=f"hybrid move {EVIL}"))
    with runs.recorded("m1", "orders", "move"):
        runs.finish("m1", "FAILED", f"{EVIL} failed.", error=error)
    with runs.recorded("j1", "gone", "job"):
        pass
    runs.enqueue(RunRequest("q1", "orders", "merge", "task_run", {"table": "orders"}, f"cli:{EVIL}"))
    runs.enqueue(RunRequest("q2", "orders", "merge", "task_run", {"table": "orders"}, "schedule"))
    return app


@pytest.mark.slow
def test_the_history_is_chosen_in_the_address(tables: App) -> None:
    model = twin(tables, PATH)
    assert {row["id"] for row in model["runs"]} == {"m1", "j1", "q1", "q2"}
    assert model["choices"]["table"] == ["gone", "orders"] and model["choices"]["type"] == ["job", "merge", "move"]
    for query, ids in (
        ("table=orders", {"m1", "q1", "q2"}), ("type=job", {"j1"}), ("state=FAILED", {"m1"}), ("state=RUNNING", set()),
        ("table=orders&type=merge&state=QUEUED", {"q1", "q2"}), ("state=INTERRUPTED", set()), ("table=&type=", None),
        (urlencode({"table": EVIL, "type": EVIL}), set()),
    ):  # fmt: skip
        _, found = tables.call("GET", f"{PATH}.json?{query}")
        assert {row["id"] for row in found["runs"]} == ({"m1", "j1", "q1", "q2"} if ids is None else ids), query
        assert len(found["queued"]) == 2  # what waits is shown whatever is chosen
    status, found = tables.call("GET", f"{PATH}.json?state=DOME")
    assert status == 404 and "DONE" in str(found)
    home = tables.home.context
    with pytest.raises(NotFoundError):
        list_runs(home, RunFilter(state="REJECTED"))
    assert tables_and_types(home)[0] == ["gone", "orders"]


@pytest.mark.slow
def test_a_page_tells_what_waits_failed_and_comes_next(tables: App) -> None:
    model = twin(tables, PATH)
    first, second = model["queued"]
    assert (first["id"], first["wait"]["sentence"]) == ("q1", "It starts next.") and second["wait"]["run"] == "q1"
    assert model["problem"] == "The pipeline, which carries out what is queued: has not started yet."
    schedule = next(found for found in model["schedules"] if found["type"] == MOVE)
    assert schedule["table"] == "orders" and schedule["next_run"] and schedule["schedule"] == "0 0/5 * * * ?"
    assert model["schedules"] == sorted(model["schedules"], key=lambda found: found["next_run"])
    failed = next(row for row in model["runs"] if row["id"] == "m1")
    assert failed["duration"].endswith(" s") and failed["hint"] == f"hybrid move {EVIL}"
    text = page(tables, f"{PATH}?{urlencode({'table': EVIL})}")
    assert "No run is like that" in text and escape(EVIL) in text and "No task has a schedule" in text
    text = page(tables, PATH)
    assert escape(f"{EVIL} is no row.") in text and "/ui/runs/m1" in text and "/ui/tables/orders" in text
    assert "/ui/tables/gone" not in text and 'aria-current="page">Tasks' in text
    part = fetched(tables, "GET", PATH, {"HX-Request": "true", "HX-Target": "div#live"})[2]
    assert part.lstrip().startswith(b'<div id="live"') and b"<form" not in part

    text = page(tables, PATH, key(tables, Right.READ))
    assert "is no row" not in text and 'method="post" action="/ui/t' not in text


@pytest.mark.slow
def test_an_empty_home_says_what_comes_here(app: App) -> None:
    text = page(app, PATH)
    assert "Nothing has run yet" in text and "/ui/new-table" in text and "Nothing runs or waits" in text
