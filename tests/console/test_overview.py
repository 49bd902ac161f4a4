"""The overview: cards, problems with their command, trends, and when a table has caught up."""

from __future__ import annotations

import json

import pytest

from hybrid.catalog.run_record import RunRecord
from hybrid.operations.overview import TREND_BUCKET_MS, TREND_BUCKETS, newest_failures, trend_of
from hybrid.serve.console.durations import about
from hybrid.serve.console.sparkline import sparkline
from hybrid.serve.lag_history import LagSample, catch_up_s
from tests.console.page_requests import HTML, fetched
from tests.serve.app import App


def run(run_id: str, kind: str, state: str) -> RunRecord:
    return RunRecord(run_id, "orders", kind, state, "2026-01-01T00:00:00Z")


def test_a_failure_counts_until_its_type_succeeds() -> None:
    runs = [
        run("6", "move", "QUEUED"), run("5", "move", "FAILED"), run("4", "move", "DONE"), run("3", "merge", "NOTHING"),
        run("2", "merge", "FAILED"), run("1", "job", "INTERRUPTED"),
    ]  # fmt: skip
    assert [failed.id for failed in newest_failures(runs)] == ["5"]


def test_a_trend_changes_with_rows_and_not_with_time() -> None:
    end = 100 * TREND_BUCKET_MS
    arrivals = [(end - 1, 5), (end - 2, 1), (end - TREND_BUCKETS * TREND_BUCKET_MS, 7), (0, 9), (end + 5, 3)]
    trend = trend_of(arrivals, end - 1000)
    assert trend.end_ms == end and trend.rows[-1] == 6 and trend.rows[0] == 7 and sum(trend.rows) == 13
    assert trend == trend_of(arrivals, end - 2000)


def test_catching_up_is_estimated_from_the_last_minute() -> None:
    def falling(*behind: int) -> list[LagSample]:
        return [LagSample(10_000 * number, value, None) for number, value in enumerate(behind)]

    def estimated(samples: list[LagSample], later_ms: int = 0) -> float | None:
        return catch_up_s(samples, (samples[-1].at_ms if samples else 0) + later_ms)

    assert estimated([]) is None and estimated(falling(100)) is None
    assert estimated(falling(300, 200, 100)) == estimated(falling(300, 200, 100), 20_000) == 10.0
    assert estimated(falling(300, 200, 100), 60_000) is None, "nobody knows how it is now"
    assert estimated(falling(100, 200)) is None and estimated(falling(100, 100)) is None
    assert estimated(falling(100, 0)) is None
    assert (
        estimated([LagSample(at_s * 1000, behind, None) for at_s, behind in ((0, 10_000), (100, 1000), (110, 900))])
        == 90.0
    )
    assert estimated([LagSample(0, 200, None), LagSample(1000, 100, None)]) is None  # too short to say
    assert [about(value) for value in (1, 62, 240, 3600 * 5, 86400 * 3)] == ["5 s", "60 s", "4 min", "5 h", "3 d"]


def test_a_sparkline_stays_in_its_box() -> None:
    assert sparkline([]) == sparkline([0, 0]) == ""
    assert sparkline([0, 10]) == "M0 28L0.0 28.0L120.0 2.0L120 28Z"


def test_an_empty_home_says_what_to_do_next(app: App) -> None:
    body = fetched(app, "GET", "/", HTML)[2]
    assert b"No table yet" in body and b"/ui/new-table" in body and b"hybrid demo orders" in body


@pytest.mark.slow
def test_a_card_tells_problems_with_their_command(orders: App) -> None:
    """The broker of the table does not answer, a run has failed, and text of users is shown as text."""
    runs = orders.home.context.catalog.runs
    error = {"error": "x", "hint": "hybrid move orders"}
    with runs.recorded("m1", "orders", "move"):
        runs.finish("m1", "FAILED", "<img src=x onerror=alert(1)> is no row.", error=error)
    card = json.loads(fetched(orders, "GET", "/.json")[2])["tables"][0]
    assert not card["healthy"] and {problem["command"] for problem in card["problems"]} >= {"hybrid move orders"}
    assert card["boundary"] == "1970-01-01T00:00:02.001Z"
    body = fetched(orders, "GET", "/", HTML)[2].decode()
    assert "<img src=x" not in body and "&lt;img src=x" in body and "hybrid move orders" in body


def test_the_server_itself_may_have_a_problem(app: App) -> None:
    found = json.loads(fetched(app, "GET", "/.json")[2])["problems"]
    assert found == [{"sentence": "Pipeline: has not started yet.", "command": "hybrid logs"}]
