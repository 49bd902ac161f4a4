"""One live server for all modules here: a cold one takes most of the time of their tests. Each test has its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.console.browser import LiveConsole
from tests.console.conftest import chromium
from tests.serve.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["chromium"]


@pytest.fixture(scope="package")
def server(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the broker of the tests; mark tests that use it `kafka` and `spark`. It compiles plans.

    It ends with the package: an idle one takes a twentieth of a processor from all later tests.
    """
    with Server(tmp_path_factory.mktemp("live") / ".hybrid", broker) as running:
        yield running


@pytest.fixture(scope="module")
def console(server: Server, broker: str, chromium: Browser) -> LiveConsole:
    """The server in Chromium; mark tests that use it also `browser`."""
    return LiveConsole(server, broker, chromium)
