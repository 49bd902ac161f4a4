"""A home with the orders table, a directory for its backups, and restored homes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.progress import Silent
from tests.query.halves import Halves
from tests.serve.app import lay_orders


@pytest.fixture
def here(home: Path) -> Iterator[Hybrid]:
    home.mkdir()
    opened = Hybrid(load_settings(home=home), Silent())
    lay_orders(opened)
    yield opened
    opened.close()


@pytest.fixture
def halves(here: Hybrid) -> Halves:
    """The table orders, for further commits."""
    table = here.table("orders")
    built = Halves(here.spec("orders"), here.context.layout("orders"))
    built.realtime, built.offline = table.half(Half.REALTIME).realtime, table.half(Half.OFFLINE).offline
    return built


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "backups"
