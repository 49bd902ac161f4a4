from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.store.store_proxy import StoreProxy, store_proxy
from tests.store_servers import KINDS, StoreServer, clear_environment, store_server


@pytest.fixture(scope="package", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    """A real server of each protocol with an empty bucket `bucket`."""
    with store_server(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without variables of stores."""
    clear_environment(monkeypatch, list(os.environ))
    return monkeypatch


@pytest.fixture
def proxy(server: StoreServer, environment: pytest.MonkeyPatch) -> Iterator[StoreProxy]:
    """A proxy before the server, which the environment names."""
    with store_proxy(server) as found:
        for name, value in found.environment.items():
            environment.setenv(name, value)
        yield found
