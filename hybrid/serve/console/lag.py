"""The lag of a table in the last hour: its charts on the page of ingestion, and its twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter

from hybrid.runtime.json_values import instant
from hybrid.serve.console.durations import about, duration_words
from hybrid.serve.console.page import Json, PageRequest, page
from hybrid.serve.console.sparkline import sparkline, time_line
from hybrid.serve.lag_history import INTERVAL_MS, KEPT_MS, STALE_MS, LagSample, catch_up_s

router = APIRouter(include_in_schema=False)
_MINUTE_MS = 60_000
_SPAN_MS, _ROW_MS = 10 * _MINUTE_MS, 5 * _MINUTE_MS  # of the charts at least; of a row of their table


@page(router, "/ui/tables/{table}/lag", template="table_lag.html", title="Lag")
def lag_page(ask: PageRequest, table: str) -> Json:
    """How far a table was behind Kafka, by samples that the server keeps for an hour."""
    home = ask.context.home.context
    name, now_ms = home.table(table).name, home.now_ms()
    samples = ask.context.lag.samples(name, now_ms)
    return {"table": name, "catch_up": about(catch_up_s(samples, now_ms)), **lag_view(samples, now_ms)}


def lag_view(samples: Sequence[LagSample], now_ms: int) -> Json:
    """The samples until now, oldest first, with what charts and readers need of them."""
    stretch = stretch_of(samples, now_ms)
    waits = [(sample.at_ms, sample.waited_ms) for sample in samples if sample.waited_ms is not None]
    return {
        "interval_ms": INTERVAL_MS,
        "start": instant(stretch[0]) if samples else None,
        "end": instant(stretch[1]) if samples else None,
        "samples": [sample._asdict() for sample in samples],
        "charts": [
            _chart("Rows behind", [(sample.at_ms, sample.behind) for sample in samples], stretch, _rows),
            _chart("The oldest message waited", waits, stretch, duration_words),
        ],
        "rows": rows_of(samples),
    }


def stretch_of(samples: Sequence[LagSample], now_ms: int) -> tuple[int, int]:
    """The stretch of the charts: whole ten minutes up to an hour, which end with the present interval."""
    if not samples:
        return 0, _SPAN_MS
    end_ms = (now_ms // INTERVAL_MS + 1) * INTERVAL_MS
    spans = -(-(end_ms - samples[0].at_ms) // _SPAN_MS)
    return end_ms - min(spans * _SPAN_MS, KEPT_MS), end_ms


def _chart(
    title: str, points: Sequence[tuple[int, int]], stretch: tuple[int, int], words: Callable[[int], str]
) -> Json:
    """A line through moments with values. The newest value is left out where it says nothing about now."""
    highest = max(points, key=lambda point: (point[1], point[0]), default=None)
    is_current = bool(points) and stretch[1] - points[-1][0] <= STALE_MS + INTERVAL_MS
    return {
        "title": title,
        "newest": words(points[-1][1]) if is_current else None,
        "highest": words(highest[1]) if highest is not None else None,
        "highest_at": instant(highest[0]) if highest is not None else None,
        "line": time_line(points, stretch, STALE_MS),
    }


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def lag_trend(samples: Sequence[LagSample], now_ms: int) -> Json:
    """What a card shows of the last hour: the highest lag of each minute as a line, which is empty without any lag."""
    minutes: dict[int, int] = {}
    for sample in samples:
        if sample.behind:
            minute = sample.at_ms // _MINUTE_MS
            minutes[minute] = max(minutes.get(minute, 0), sample.behind)
    if not minutes:
        return {"highest": 0, "line": ""}
    last = now_ms // _MINUTE_MS
    shown = range(last + 1 - KEPT_MS // _MINUTE_MS, last + 1)
    return {"highest": max(minutes.values()), "line": sparkline([minutes.get(minute, 0) for minute in shown])}


def rows_of(samples: Sequence[LagSample]) -> Json:
    """The highest values in each five minutes, newest first: the charts as a table."""
    groups: dict[int, list[LagSample]] = {}
    for sample in samples:
        groups.setdefault(sample.at_ms // _ROW_MS, []).append(sample)
    rows = []
    for number, group in reversed(groups.items()):
        waits = [sample.waited_ms for sample in group if sample.waited_ms is not None]
        rows.append(
            {
                "start": instant(number * _ROW_MS),
                "behind": max(sample.behind for sample in group),
                "waited": duration_words(max(waits)) if waits else None,
            }
        )
    return rows
