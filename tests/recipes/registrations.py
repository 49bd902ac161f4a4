"""The files of the registrations recipe: `<root>/year=YYYY/month=MM/day=DD/*.json`, one object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

EVENTS = ("conference", "workshop", "webinar")


def registration(number: int, day: datetime, **more: object) -> dict[str, object]:
    at = day.replace(hour=number % 24, minute=number % 60)
    event = {"registration_id": number, "user_id": number % 7, "event": EVENTS[number % 3]}
    return {**event, "timestamp": at.isoformat().replace("+00:00", "Z"), **more}


def write_day(root: Path, day: datetime, rows: Iterable[Mapping[str, object] | str], name: str = "part-0.json") -> Path:
    """One file of a day; a text is a line as it is. The file is as old as its day."""
    path = root / f"year={day:%Y}" / f"month={day:%m}" / f"day={day:%d}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    made = day.timestamp() + 86_000
    os.utime(path, (made, made))
    return path


def write_year(root: Path, year: int, days: int = 4, rows: int = 5, **more: object) -> int:
    """Some days of a year; how many rows."""
    for month in range(1, days + 1):
        day = datetime(year, month, 2 * month, tzinfo=UTC)
        first = year * 1000 + month * 100
        write_day(root, day, [registration(first + place, day, **more) for place in range(rows)])
    return days * rows
