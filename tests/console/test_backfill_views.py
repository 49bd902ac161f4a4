"""View models of backfills: progress of buckets, pages, samples, history, actions, and what fills in the form."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.catalog.run_record import RunRecord
from hybrid.operations import backfill_status as states
from hybrid.serve.console import backfill_views as views
from hybrid.serve.console.backfill_page import statements
from hybrid.serve.console.bucket_chart import HEIGHT, WIDTH, bucket_chart
from hybrid.serve.uploads import _plain_name

T0, T1, T2 = "1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"


def bucket(start: str | None, end: str | None, swap: int | None = 0, **numbers: Any) -> dict[str, Any]:
    counts = {"rows_before": 2, "rows_after": 2, "added": 0, "removed": 0, "changed": 0, "changed_columns": {}}
    return {"start": start, "end": end, "state": "present", "swap": swap, "samples": [], **counts, **numbers}


def entry(entry_id: str, state: str = "ACTIVE", **more: Any) -> dict[str, Any]:
    fields = {"id": entry_id, "kind": "backfill", "created_at": "2026-01-01T00:00:05Z", "state": state, "version": 1}
    return {**fields, "result": entry_id, "reason": None, "user": None, "buckets": [], "backfill": "b", **more}


def run(run_id: str, **more: Any) -> RunRecord:
    times = {"started_at": "2026-01-01T00:00:04.500Z", "finished_at": "2026-01-01T00:00:06.000Z"}
    values = {"table_name": "t", "type": "backfill", "state": "DONE", "created_at": "2026-01-01T00:00:04.000Z", **times}
    return RunRecord(run_id, **{**values, **more})


def test_a_bucket_tells_how_far_it_is_and_which_run_did_it() -> None:
    buckets = [bucket(T0, T1), bucket(T1, T2), bucket(T2, None, swap=None)]
    entries = [entry("e", buckets=[[0, 1000]])]
    own = run("run-1", verb="backfill_run", arguments={"backfill": "b"})
    other = run("run-2", verb="backfill_run", arguments={"backfill": "other"})
    done, waiting, unchanged = views.bucket_views(buckets, "RUNNING", entries, [other, own])
    assert (done["progress"], done["run"], done["entry"]) == ("corrected", "run-1", "e")
    assert (waiting["progress"], waiting["run"]) == ("waiting", None) and unchanged["progress"] is None
    assert views.run_of(entries[0], [other]) is None
    assert views.run_of(entries[0], [other, run("of a command")]) == "of a command"
    assert views.run_of(entries[0], [run("later", started_at="2026-01-01T00:01:00.000Z")]) is None
    reverted = views.bucket_views(buckets, "REVERTED", [entry("e", "REVERTED", buckets=[[0, 1000]])], [])
    assert [found["progress"] for found in reverted] == ["reverted", "reverted", None]
    assert views.bucket_views(buckets, "DONE", [], [])[1]["progress"] == "corrected"
    assert views.bucket_views(buckets, "CANCELLED", entries, [])[1]["progress"] == "not run"
    assert (
        views.bucket_views([bucket(None, None)], "RUNNING", [entry("e", buckets=[[None, None]])], [])[0]["entry"] == "e"
    )


def test_the_runs_of_a_backfill() -> None:
    planned = run("plan", verb="backfill_plan", report={"id": "b"})
    ran = run("run", verb="backfill_run", arguments={"backfill": "b"})
    others = [run("x", verb="job_run", report={"id": "b"}), run("y", arguments={"backfill": "c"}), run("z", report="b")]
    assert views.runs_of("b", [ran, *others, planned]) == [ran, planned]


def test_pages_of_buckets() -> None:
    buckets = [{"progress": "waiting" if number % 2 else None} for number in range(240)]
    first = views.page_of(buckets, "", False)
    assert (len(first["rows"]), first["page"], first["pages"], first["changed"]) == (25, 1, 5, 120)
    assert views.page_of(buckets, "5", False)["rows"] == [{"progress": "waiting"}] * 20
    for hostile in ("99999999999", "-1", "x", "²", "0"):
        assert views.page_of(buckets, hostile, False)["page"] == 1
    assert views.page_of(buckets, "99", True)["page"] == 10
    assert len(views.page_of([{"progress": None}], "1", False)["rows"]) == 1  # nothing changes: all are shown


def test_samples_show_keys_and_what_differs() -> None:
    change = {"change": "changed", "before": {"k": 1, "a": 1.0, "b": "x"}, "after": {"k": 1, "a": 1.5, "b": "x"}}
    found = views.sample_views([bucket(T0, T1, samples=[change])], ["k"], ["a", "b", "k"])
    assert found["columns"] == ["k", "a", "b"]
    (row,) = found["rows"]
    assert row["cells"][1] == {"before": "1.0", "after": "1.5", "differs": True, "delta": "+0.5 (+50.0%)"}
    removed = {"change": "removed", "before": {"k": 1, "a": None}, "after": None}
    found = views.sample_views([bucket(T0, T1, samples=[removed])], ["k"], ["a", "k"])
    assert found["columns"] == ["k", "a"] and found["rows"][0]["cells"][1]["before"] is None
    assert views.sample_views([bucket(T0, T1)], [], []) == {"columns": [], "rows": []}


def test_values_and_deltas() -> None:
    assert views.cell(0, 5)["delta"] == "+5" and views.cell(True, False)["delta"] is None
    assert views.cell("a", "b")["delta"] is None and views.cell(None, 1)["delta"] is None
    assert views.value_text("x" * 1000) == "x" * 300 + "…" and views.value_text([1, "ä"]) == '[1, "ä"]'


def test_the_history_has_one_item_for_a_backfill() -> None:
    merged = entry("m", kind="merge", backfill=None)
    replaced = entry("r", kind="replace", backfill=None, reason="first load", user="ada")
    found = views.history([entry("e2", "REVERTED", changed=3), merged, entry("e1", changed=4, user="bob"), replaced])
    assert [(item["id"], item["commits"], item["changed"]) for item in found] == [("e2", 2, 7), ("r", 1, 0)]
    assert (found[0]["state"], found[0]["user"], found[0]["result"]) == ("ACTIVE", "bob", None)
    assert found[1]["result"] == "r" and found[1]["reason"] == "first load"


@pytest.mark.parametrize(
    ("state", "more", "expected"),
    [
        (states.PLANNED, {}, ["run", "cancel"]),
        (states.PLANNED, {"refused": True}, ["cancel"]),
        (states.PLANNED, {"buckets_total": 0}, ["cancel"]),
        (states.PLANNED, {"busy": True}, ["pause", "cancel"]),
        (states.REFUSED, {}, ["cancel"]),
        (states.RUNNING, {"active": True}, ["pause", "cancel"]),
        (states.PAUSED, {}, ["resume", "cancel"]),
        (states.PAUSED, {"active": True}, ["resume", "cancel", "revert"]),
        (states.INTERRUPTED, {}, ["resume", "cancel"]),
        (states.FAILED, {}, ["resume", "cancel"]),
        (states.DONE, {"active": True}, ["revert"]),
        (states.DONE, {}, []),
        (states.CANCELLED, {"taken": 2}, ["release"]),
        (states.REVERTED, {}, []),
    ],
)
def test_what_can_be_done(state: str, more: dict[str, Any], expected: list[str]) -> None:
    status = {"state": state, "buckets_total": more.get("buckets_total", 1), "taken": more.get("taken", 0)}
    flags = {name: bool(more.get(name)) for name in ("busy", "active", "refused")}
    assert views.actions_of(status, **flags) == expected


def test_a_statement_that_shows_the_change() -> None:
    columns = {"amount": "FLOAT", "customer": "STRING", "n": "INT"}
    changed = [bucket(T0, T1, changed_columns={"n": 2, "customer": 1})]
    assert views.default_statement("t", columns, changed) == "SELECT COUNT(*) AS row_count, SUM(n) AS sum_n\nFROM t"
    assert "SUM(amount)" in views.default_statement("t", columns, [bucket(T0, T1)])
    assert views.default_statement('a"b', {}, []) == 'SELECT COUNT(*) AS row_count\nFROM "a""b"'


def test_a_plan_is_made_again() -> None:
    asked = {
        "start": "1",
        "end": None,
        "delete": True,
        "where": "a = 'x y'",
        "reason": "r",
        "user": "u",
        "expect": ["a > 0"],
    }
    assert views.planning_query(asked) == "start=1&reason=r&delete=a+%3D+%27x+y%27&expect=a+%3E+0"
    again = views.planning_query({"from_rejected": True, "from_kafka": False, "expect": ["a > 0", "b < 1"]})
    assert again == "expect=a+%3E+0%0Ab+%3C+1&from_rejected=on"
    assert views.planning_query({"update": "a = 1", "where": "b"}) == "update=a+%3D+1&where=b"
    words = views.plan_words("t", asked)
    assert words[:5] == ["backfill", "plan", "t", "--from", "1"] and words[-3:] == ["--delete", "--expect", "a > 0"]


def test_a_statement_before_and_after() -> None:
    plan = {"state": states.PLANNED, "id": "it's", "plan": {"base_revision": "t[OFFLINE=1]"}}
    before, after = statements("SELECT 1 -- one", plan)
    assert before["sql"] == "SELECT 1 -- one" and after["sql"] == "SELECT 1 -- one\n;\nSET plan = 'it''s'"
    before, after = statements("SELECT 1", {**plan, "state": states.DONE})
    assert before["as_of"] == "t[OFFLINE=1]" and "as_of" not in after and after["sql"] == "SELECT 1"


def test_a_chart_stays_in_its_box() -> None:
    assert bucket_chart([]) == bucket_chart([bucket(T0, T1, rows_before=0, rows_after=0)]) == []
    marks = bucket_chart(
        [bucket(T0, T1, rows_after=number % 7, removed=number % 3, added=number % 2) for number in range(901)]
    )
    assert len(marks) <= 200 and sum(mark["added"] for mark in marks) == 450
    for mark in marks:
        assert mark["x"] >= 0 and mark["x"] + mark["width"] <= WIDTH and 0 <= mark["stay"] <= 80 >= mark["come"]
        assert 80 + mark["go"] <= HEIGHT


def test_names_of_uploaded_files_are_plain() -> None:
    names = {
        "orders.JSON": "orders.JSON",
        "../../etc/passwd": "passwd",
        "C:\\x\\a b.csv": "a-b.csv",
        "._.csv": "csv",
        "..": "file",
    }
    assert {name: _plain_name(name) for name in names} == names
    assert _plain_name("_hidden.json") == "hidden.json" and len(_plain_name("x" * 500 + ".parquet")) == 100
