"""The console over an application in this process, and in Chromium over a live server with real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.app import App, lay_orders


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Over an empty home."""
    made = App(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture
def orders(app: App) -> App:
    """Over a home with the table orders."""
    lay_orders(app.home)
    return app
