"""Homes that tests restore backups into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.progress import Silent

SQL = "select order_id, customer, amount, ts from orders order by order_id limit 100"


def opened(home: Path) -> Hybrid:
    return Hybrid(load_settings(home=home), Silent())


def restored(here: Hybrid, store: Path, target: Path, backup: str | None = None, **options: Any) -> Hybrid:
    new = opened(target)
    new.backups.restore(store, backup, **options)
    return new
