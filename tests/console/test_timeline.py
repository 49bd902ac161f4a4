"""The page of a table: its timeline's model, windows, and what it shows of hostile names."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from hybrid.lake import log
from hybrid.operations.tables import status
from hybrid.operations.timeline import _written_by, timeline_source, timeline_works
from hybrid.replace.lineage import EntryState, ReplacementEntry
from hybrid.table.boundary import Boundary
from hybrid.table.lineage import Lineage
from hybrid.table.state import Consuming
from tests.console.page_requests import HTML, fetched, post, queued, twin
from tests.console.scripts import NEEDS_NODE, call, script
from tests.fake_streams import seen
from tests.query.halves import KEY
from tests.serve.app import CONSUMING, MOVED, SEALED, App, lay_orders, row


def model_of(app: App, query: str = "") -> dict:
    found: dict = twin(app, "/ui/tables/orders", query)
    return found


def test_both_halves_with_their_boundary(orders: App) -> None:
    """Two moved rows offline, a realtime segment whose rows all moved, and one that consumes."""
    model = model_of(orders)
    assert model["boundary"]["limit_ms"] == 2001 and model["frontier"] == {"0": 2}
    (mark,) = model["offline"]
    assert (mark["state"], mark["rows"], mark["names"]) == ("present", 2, [MOVED])
    (row,) = model["realtime"]
    assert row["partitions"] == ["0"] and row["watermark"] == 2
    states = {mark["names"][0]: mark["state"] for mark in row["marks"]}
    assert states == {SEALED: "moved", CONSUMING: "consuming"}
    assert model["reach"][0] <= 1000 and model["reach"][1] > 4000 and model["window"] == model["reach"]


@pytest.mark.slow
def test_late_rows_are_marked_until_a_move_takes_them(app: App) -> None:
    halves = lay_orders(app.home)
    assert not any(segment.is_late for segment in timeline_source(app.home.context.table("orders")).realtime)
    consuming = Consuming(CONSUMING, 1, 2, 3, 100, 1_632_463_351_000)
    halves.commit_realtime([row(5, 500, 4, CONSUMING)], offsets={KEY: 5}, consuming={KEY: consuming})
    late = [segment.name for segment in timeline_source(app.home.context.table("orders")).realtime if segment.is_late]
    assert late == [CONSUMING]
    assert [mark["late_segments"] for mark in model_of(app)["realtime"][0]["marks"]] == [1, 0]
    halves.commit_offline([row(5, 500, 4, "orders_500_500_1")], Boundary(2001, {KEY: 5}))
    assert not any(segment.is_late for segment in timeline_source(app.home.context.table("orders")).realtime)


def test_rows_that_are_read_again_after_a_reset_are_late(app: App) -> None:
    """Offsets of another epoch say nothing about them."""
    halves, again = lay_orders(app.home), "orders__0__2__20210924T0802Z"
    newer = KEY._replace(epoch=KEY.epoch + 1)
    consuming = {newer: Consuming(again, 2, 0, 1, 100, 1_632_463_351_000)}
    rows = [replace(row(1, 1000, 0, again), key=newer)]
    halves.commit_realtime(rows, offsets={newer: 1}, consuming=consuming)
    found = {segment.name: segment for segment in timeline_source(app.home.context.table("orders")).realtime}
    assert (found[again].is_late, found[SEALED].state, found[SEALED].is_late) == (True, "moved", False)
    halves.commit_offline([row(7, 1000, 0, "orders_1000_1000_1")], Boundary(2001, {KEY: 2, newer: 1}))
    found = {segment.name: segment for segment in timeline_source(app.home.context.table("orders")).realtime}
    assert (found[again].is_late, found[SEALED].state) == (False, "moved")


@pytest.mark.slow
def test_a_definition_that_changes_without_a_commit_is_seen(orders: App) -> None:
    before = model_of(orders)["bucket_ms"]
    documents = orders.home.table("orders").export().documents()
    orders.home.apply_table(replace(documents, overrides=("bucketTimePeriod=4h",)))
    assert model_of(orders)["bucket_ms"] == 4 * 3_600_000 != before


@pytest.mark.slow
def test_a_segment_that_a_move_took_in_part_is_not_late(app: App) -> None:
    """Its first time is below the boundary and its last offset above, but no row is both."""
    halves = lay_orders(app.home)
    halves.commit_offline([row(3, 3000, 2, "orders_3000_4000_1")], Boundary(4500, {KEY: 4}))
    for count, (number, time_ms, late) in enumerate(((5, 5000, []), (6, 4000, [CONSUMING]))):
        consuming = Consuming(CONSUMING, 1, 2, 3 + count, 100, 1_632_463_351_000)
        rows = [row(number, time_ms, number - 1, CONSUMING)]
        halves.commit_realtime(rows, offsets={KEY: number}, consuming={KEY: consuming})
        source = timeline_source(app.home.context.table("orders"))
        assert [segment.name for segment in source.realtime if segment.is_late] == late


def test_a_segment_is_corrected_by_the_newest_entry_in_effect() -> None:
    def entry(entry_id: str, kind: str, to: str, state: EntryState = EntryState.ACTIVE) -> ReplacementEntry:
        lineage = Lineage((), (to,), 1, 0, 0, 0, 0, 0, "Replaced.")
        return ReplacementEntry(entry_id, kind, "2026-01-01T00:00:00Z", 2, state, lineage)

    entries = [  # newest first
        entry("r3", "replace", "a"), entry("v1", "revert", "c"), entry("b1", "backfill", "b"),
        entry("m1", "merge", "d"), entry("r2", "replace", "e", EntryState.REVERTED), entry("r1", "replace", "a"),
    ]  # fmt: skip
    assert _written_by(entries) == {"a": "r3", "b": "b1"}


@pytest.mark.slow
def test_work_on_buckets_is_shown(orders: App) -> None:
    """A move that was queued, then one that failed: the bucket after the boundary."""
    table = orders.home.context.table("orders")
    own = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    assert fetched(orders, "POST", "/ui/tables/orders/move", own, "")[0] == 303
    (work,) = timeline_works(orders.home.context, table, timeline_source(table))
    assert (work.start_ms, work.end_ms, work.state.value) == (2001, 7_200_000, "running")
    assert [mark["state"] for mark in model_of(orders)["offline"]] == ["running"]
    orders.home.context.catalog.runs.finish(work.id, "FAILED", "<b>The disk is full.</b>")
    orders.app.state.context.works._values.clear()  # kept for two seconds
    (mark,) = model_of(orders)["offline"]
    assert mark["state"] == "failed" and mark["works"][0]["why"] == "<b>The disk is full.</b>"
    assert b"<b>The disk" not in fetched(orders, "GET", "/ui/tables/orders", HTML)[2]


@pytest.mark.slow
def test_a_preview_of_a_move_is_no_work_on_a_bucket(orders: App) -> None:
    """The form's buttons are a preview, the next bucket, and all closed buckets."""
    table = orders.home.context.table("orders")
    assert post(orders, "/ui/tables/orders/move", dry_run="on")[0] == 200
    assert queued(orders)[0][1] == {"table": "orders", "dry_run": True}
    assert timeline_works(orders.home.context, table, timeline_source(table)) == []
    assert post(orders, "/ui/tables/orders/move", all="on")[0] == 200
    assert queued(orders)[0][1] == {"table": "orders", "max_buckets": None}


@pytest.mark.slow
def test_a_window_is_given_by_times_or_milliseconds(orders: App) -> None:
    window = model_of(orders, "?start=1970-01-01T00:00:01Z&end=3500")
    assert window["window"] == [1000, 3500] and window["reach"] == model_of(orders)["reach"]
    assert model_of(orders, "?start=90000000&end=90000001")["offline"] == []
    for query, words in (
        ("?start=tomorrow", "ISO 8601"),
        ("?start=5&end=5", "not before"),
        ("?start=1970-01-01T00:00:01", "ISO 8601"),
        (f"?end={10**30}", "out of range"),
        ("?start=--5", "ISO 8601"),
    ):
        status, error = orders.refused("GET", f"/ui/tables/orders.json{query}")
        assert status == 400 and words in error, error


@pytest.mark.parametrize("name", ["none", "orders%27%3B", "%3Cscript%3E"])
def test_an_unknown_table_is_an_error_in_place(orders: App, name: str) -> None:
    status, _, body = fetched(orders, "GET", f"/ui/tables/{name}", HTML)
    assert status == 404 and b'data-testid="error"' in body and b"<script>" not in body


@pytest.mark.slow
def test_the_page_carries_its_model(orders: App) -> None:
    body = fetched(orders, "GET", "/ui/tables/orders", HTML)[2].decode()
    assert 'data-testid="timeline"' in body and 'type="application/json"' in body
    carried = body.split('type="application/json" data-part="model">')[1].split("</script>")[0]
    assert json.loads(carried)["offline"] == model_of(orders)["offline"]
    assert "Move next bucket" in body
    sent = {"HX-Request": "true", "HX-Target": "div#facts"}
    facts = fetched(orders, "GET", "/ui/tables/orders", sent)[2].decode()
    assert facts.lstrip().startswith('<div id="facts"') and "Boundary" in facts
    assert 'data-testid="timeline"' not in facts


@pytest.mark.slow
def test_the_timeline_does_not_wait_for_the_status(orders: App) -> None:
    """The overview of all tables may take long; the page loads its own card of it afterwards, in two fragments."""

    class Stuck:
        def get(self) -> None:
            raise AssertionError("the timeline waits for the overview")

    context = orders.app.state.context
    overview = context.overview
    vars(context)["overview"] = Stuck()
    body = fetched(orders, "GET", "/ui/tables/orders", HTML)[2].decode()
    assert body.count('hx-get="/ui/tables/orders/status" hx-trigger="load, poll"') == 2
    assert "status" not in model_of(orders)
    vars(context)["overview"] = overview

    status = json.loads(fetched(orders, "GET", "/ui/tables/orders/status.json")[2])["status"]
    (card,) = json.loads(fetched(orders, "GET", "/.json")[2])["tables"]
    assert status == card and status["offline_rows"] == 2
    for block, there, absent in (("freshness", "newest row", "Offline rows"), ("stored", "Offline rows", "newest row")):
        asked = {**HTML, "HX-Request": "true", "HX-Target": f"div#{block}"}
        code, _, part = fetched(orders, "GET", "/ui/tables/orders/status", asked)
        assert code == 200 and there in part.decode() and absent not in part.decode(), block
        assert b"<html" not in part
    assert fetched(orders, "GET", "/ui/tables/none/status", HTML)[0] == 404


@pytest.mark.slow
def test_the_status_divides_the_lag_among_partitions(orders: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the timeline draws tails; without an answer of Kafka there is none."""
    place = "/ui/tables/orders/status"
    assert twin(orders, place)["tails"] == {}
    view = seen("orders", "id-1", {0: 0, 1: 0, 2: 0}, {0: 9, 1: 0, 2: 3})
    monkeypatch.setattr(status.SilentBrokers, "view", lambda *_: view)
    del vars(orders.app.state.context)["overview"]
    model = twin(orders, place)
    assert model["tails"] == {"0": 5, "2": 3} and model["status"]["behind"] == 8
    asked = {**HTML, "HX-Request": "true", "HX-Target": "div#freshness"}
    part = fetched(orders, "GET", place, asked)[2].decode()
    assert json.loads(unescape(part.split('data-tails="')[1].split('"')[0])) == model["tails"]


@pytest.mark.process
@NEEDS_NODE
def test_each_partition_has_its_tail() -> None:
    """At the end of its last segment; neighbours in one row together; none where the end is out of the window."""

    def lane(*rows: tuple[list[str], list[int]]) -> list[dict[str, Any]]:
        return [
            {"partitions": names, "marks": [{"names": [f"s{end}"], "state": "sealed", "end_ms": end} for end in ends]}
            for names, ends in rows
        ]

    rows = lane((["0"], [5, 9]), (["1"], []), (["2", "3"], [7]), (["4"], [8]))
    whole = {"offline": [], "realtime": rows, "window": [0, 10], "reach": [0, 10]}
    tails = {"0": 4, "1": 1, "2": 2, "3": 3, "9": 7}
    found = call(
        script("timeline/marks.js"), ["marksOf", whole, tails], ["marksOf", {**whole, "window": [0, 9]}, tails]
    )
    drawn = [(mark["row"], mark["start_ms"], mark["rows"]) for mark in found[0] if mark["state"] == "tail"]
    assert drawn == [(0, 9, 4), (1, 9, 1), (2, 7, 5)]
    assert [mark["row"] for mark in found[0]] == [0, 0, 0, 1, 2, 2, 3]
    assert not any(mark["state"] == "tail" for mark in found[1])


@pytest.mark.process
@NEEDS_NODE
def test_a_part_of_a_mark_counts_by_its_share() -> None:
    """A mark may join many buckets, of which a selection has some."""
    marks = [{"start_ms": 0, "end_ms": 10, "rows": 50}, {"start_ms": 10, "end_ms": 14, "rows": 7}]
    empty = [{"start_ms": 0, "end_ms": 10, "rows": 0}]
    stretches = [[marks, 0, 14], [marks, 8, 14], [marks, 10, 14], [marks, 20, 30], [empty, 2, 4]]
    found = call(script("timeline/marks.js"), *(["rowsBetween", *stretch] for stretch in stretches))
    assert [(each["rows"], each["isExact"]) for each in found] == [
        (57, True), (17, False), (7, True), (0, True), (0, True),
    ]  # fmt: skip


@pytest.mark.slow
def test_many_who_wait_for_the_overview_do_not_hold_up_a_timeline(orders: App) -> None:
    """Viewers of `/` and of statuses have threads of their own."""
    may_end, context = threading.Event(), orders.app.state.context

    class Slow:
        def get(self) -> list[Any]:
            assert may_end.wait(60)
            return []

    vars(context)["overview"] = Slow()
    with ThreadPoolExecutor(12) as viewers:
        paths = ["/.json", "/ui/tables/orders/status.json"] * 6
        waiting = [viewers.submit(fetched, orders, "GET", path) for path in paths]
        try:
            assert model_of(orders)["offline"]
            assert not any(request.done() for request in waiting)
        finally:
            may_end.set()
        assert {request.result()[0] for request in waiting} == {200}


@pytest.mark.slow
def test_each_log_is_read_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """For marks, boundary and corrections together; then its commits alone."""
    halves, opened = lay_orders(app.home), list[str]()

    def count(path: str, **more: Any) -> DeltaTable:
        opened.append(Path(path).name)
        return DeltaTable(path, **more)

    monkeypatch.setattr(log, "DeltaTable", count)
    first = model_of(app)
    assert len(opened) == 2 == len(set(opened)), opened
    assert model_of(app) == first and len(opened) == 2
    assert first["boundary"] == app.ok("POST", "/verbs/boundary", {"table": "orders"})
    halves.commit_offline([row(6, 1500, 1, "orders_1500_1500_1")], Boundary(2001, {KEY: 2}))
    opened.clear()
    assert model_of(app)["offline"][0]["rows"] == 3 and not opened


def test_an_unchanged_timeline_is_not_sent_again(orders: App) -> None:
    headers = fetched(orders, "GET", "/ui/tables/orders.json")[1]
    assert fetched(orders, "GET", "/ui/tables/orders.json", {"If-None-Match": headers["etag"]})[0] == 304
