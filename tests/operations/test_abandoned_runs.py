"""Replacements that nobody ends are taken back after the age in the settings, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.operations.abandoned_runs import take_back_abandoned
from tests.serve.app import MOVED, App, lay_orders

_DAY_MS = 86_400_000


@pytest.mark.parametrize(("days", "age", "gone"), [("", 400, 0), ("2", 1, 0), ("2", 3, 1)])
def test_an_old_replacement_in_progress_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: str, age: int, gone: int
) -> None:
    monkeypatch.setenv("HYBRID_REPLACEMENT_DAYS_MAX", days)
    app = App(tmp_path / "home")
    try:
        lay_orders(app.home)
        replacing = app.home.table("orders").replacing
        replacing.start([MOVED], ["orders_new"])
        now_ms = app.home.context.now_ms()
        app.home.context.now_ms = lambda: now_ms + age * _DAY_MS
        assert len(take_back_abandoned(app.home.context)) == gone
        assert len(replacing.in_progress()) == 1 - gone
    finally:
        app.close()
