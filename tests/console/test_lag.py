"""The lag of the last hour: samples, their bounds, charts, and what the pages show of them. No JVM."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from hybrid.catalog import serving
from hybrid.operations.ingestion_lag import TableLag, ingestion_lags
from hybrid.serve import lag_sampler
from hybrid.serve.console.lag import lag_trend, lag_view, stretch_of
from hybrid.serve.console.sparkline import HEIGHT, WIDTH, time_line
from hybrid.serve.lag_history import INTERVAL_MS, KEPT_MS, LagHistory, LagSample
from hybrid.serve.lag_sampler import lags_sampled, sample_lags
from tests.console.page_requests import HTML, fetched, page, twin
from tests.serve.app import App

PLACE = "/ui/tables/orders/lag"
START_MS = 1_700_000_000_000 // KEPT_MS * KEPT_MS


def at(number: float) -> int:
    """A moment, by the number of its interval."""
    return START_MS + int(number * INTERVAL_MS)


def test_an_interval_has_one_sample_and_an_hour_is_kept() -> None:
    history = LagHistory()
    for number in range(1000):
        history.add([TableLag("a", number), TableLag("b", None)], at(number / 2))
    samples = history.samples("a", at(500))
    assert len(samples) == KEPT_MS // INTERVAL_MS and samples[-1].behind == 999 and history.samples("b", at(500)) == []
    assert all(after.at_ms - before.at_ms == INTERVAL_MS for before, after in pairwise(samples))
    history.add([TableLag("a", 5)], at(499.9), renews=False)
    assert history.samples("a", at(500))[-1].behind == 999, "somebody who looked knows more"
    history.add([TableLag("a", None)], at(520))
    assert history.samples("a", at(500)) == samples, "what is not known is a gap"
    assert len(history.samples("a", at(520))) == len(samples) - 20, "an hour before now is shown"
    history.add([TableLag("a", 7)], at(600))
    kept = history.samples("a", at(600))
    assert len(kept) == 261 and kept[0].at_ms > at(600) - KEPT_MS


def test_a_clock_that_was_set_back_begins_again_and_tables_that_are_gone_are_forgotten() -> None:
    history = LagHistory()
    history.add([TableLag("a", 1), TableLag("b", 2)], at(5))
    history.add([TableLag("a", 3)], at(1))
    assert history.samples("a", at(1)) == [LagSample(at(1), 3, None)] and history.samples("b", at(1)) == []
    history.add([TableLag("a", 4)], at(2.0004))
    history.add([TableLag("a", 5)], at(2.0003))  # who has looked before adds after
    assert [sample.behind for sample in history.samples("a", at(3))] == [3, 5]
    history.add([], at(2))
    assert history._tables == {}


def test_a_message_waited_since_all_was_committed() -> None:
    """By the newest commit that had all, or by the last look that found nothing waiting."""
    history = LagHistory()
    found = []
    for number, behind, complete in ((0, 4, None), (1, 4, at(0.5)), (2, 0, at(0.5)), (4, 9, at(0.5)), (5, 9, at(4.8))):
        history.add([TableLag("a", behind, complete)], at(number))
        found.append(history.samples("a", at(number))[-1].waited_ms)
    assert found == [None, 5000, 0, 20_000, 2000]


def test_a_chart_has_gaps_and_stays_in_its_box() -> None:
    assert time_line([], (0, 100), 10) == time_line([(5, 0)], (0, 100), 10) == ""
    line = time_line([(0, 0), (10, 10), (90, 5), (100, 10), (110, 99)], (0, 100), 10)
    assert line == "M0.0 28L0.0 28.0L12.0 2.0L12.0 28ZM108.0 28L108.0 15.0L120.0 2.0L120.0 28Z"
    assert (WIDTH, HEIGHT) == (120, 28)


def test_a_chart_covers_what_is_known() -> None:
    samples = [LagSample(at(number), number, 1000 * number) for number in range(30)]
    now_ms = at(29)
    assert stretch_of(samples[:1], at(0)) == (at(1) - 600_000, at(1))
    assert stretch_of(samples, now_ms) == (at(30) - 600_000, at(30))
    assert stretch_of([LagSample(at(-400), 1, 0), samples[0]], at(0)) == (at(1) - KEPT_MS, at(1))
    view = lag_view(samples, now_ms)
    assert [(chart["newest"], chart["highest"]) for chart in view["charts"]] == [
        ("29 rows", "29 rows"),
        ("29 s", "29 s"),
    ]
    assert [(row["behind"], row["waited"]) for row in view["rows"]] == [(29, "29 s")]
    assert view["samples"][3] == {"at_ms": at(3), "behind": 3, "waited_ms": 3000}
    old = lag_view(samples, at(35))
    assert [chart["newest"] for chart in old["charts"]] == [None, None], "nobody knows how it is now"
    unknown = lag_view([LagSample(at(0), 1, 5), LagSample(at(9), 1, None)], at(9))
    assert unknown["charts"][1]["newest"] is None and unknown["charts"][0]["newest"] == "1 row"
    assert lag_trend([], now_ms) == lag_trend([LagSample(at(0), 0, 0)], now_ms) == {"highest": 0, "line": ""}
    assert lag_trend(samples, now_ms)["highest"] == 29 and lag_trend(samples, now_ms)["line"]


@pytest.mark.slow
def test_pages_show_the_samples(orders: App) -> None:
    assert twin(orders, PLACE)["samples"] == [] and "No lag is known yet" in page(orders, PLACE)
    history, now_ms = orders.app.state.context.lag, orders.home.context.now_ms()
    history.add([TableLag("orders", 5)], now_ms)
    assert 'aria-label="The oldest message waited: not known"' in page(orders, PLACE)
    for back in range(20, -1, -1):
        history.add([TableLag("orders", 100 * back, now_ms - INTERVAL_MS * 30)], now_ms - INTERVAL_MS * back)
    model = twin(orders, PLACE)
    assert len(model["samples"]) == 21 and model["charts"][0]["highest"] == "2,000 rows"
    assert model["rows"][-1]["behind"] == 2000 and model["rows"][0]["waited"] is not None
    text = page(orders, PLACE)
    assert text.count('data-testid="lag-chart"') == 2 and "Rows behind: 0 rows now, 2,000 rows at most" in text
    part = fetched(orders, "GET", PLACE, {**HTML, "HX-Request": "true", "HX-Target": "div#lag"})[2].decode()
    assert "lag-chart" in part and "<html" not in part and 'id="lag"' not in part
    assert f'hx-get="{PLACE}"' in page(orders, "/ui/tables/orders/ingestion")
    orders.app.state.context.overview.get()  # the broker does not answer here: what was known stays
    (card,) = twin(orders, "/")["tables"]
    assert card["lag"]["highest"] == 2000 and "Lag in the last hour: at most 2,000 rows" in page(orders, "/")
    assert fetched(orders, "GET", "/ui/tables/none/lag", HTML)[0] == 404


def test_what_ingestion_has_noted_is_sampled(orders: App) -> None:
    """Without anybody who looks; an old note is none, for the pipeline may be dead."""
    context, noted = orders.app.state.context, orders.home.context.catalog.serving
    sample_lags(context)
    assert context.lag.samples("orders", context.home.context.now_ms()) == []
    noted.note_ingestion("orders", "INGESTING", None, 42)
    with lags_sampled(context, every_s=0.01):
        deadline = time.monotonic() + 10
        while not context.lag.samples("orders", context.home.context.now_ms()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert context.lag.samples("orders", context.home.context.now_ms())[0].behind == 42
    noted.note_ingestion("orders", "PAUSED", "why", None)
    assert ingestion_lags(orders.home.context) == [TableLag("orders", None)]
    noted.note_ingestion("orders", "INGESTING", None, 0)
    assert ingestion_lags(orders.home.context) == [TableLag("orders", 0)]


def test_a_note_that_is_old_says_nothing(orders: App, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ms = orders.home.context.now_ms()
    monkeypatch.setattr(serving, "wall_clock_ms", lambda: now_ms - 60_000)
    orders.home.context.catalog.serving.note_ingestion("orders", "INGESTING", None, 42)
    assert ingestion_lags(orders.home.context) == [TableLag("orders", None)]


def test_a_catalog_that_cannot_be_read_is_a_gap(orders: App, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def fail(context: object) -> None:
        calls.append(1)
        raise OSError("disk")

    monkeypatch.setattr(lag_sampler, "sample_lags", fail)
    with lags_sampled(orders.app.state.context, every_s=0.005):
        deadline = time.monotonic() + 10
        while len(calls) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.005)
