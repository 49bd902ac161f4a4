"""Health checks: liveness from the event loop, details of readiness for accounts only."""

import asyncio
import inspect
import time

import pytest

from hybrid.home.accounts import Accounts, Right
from hybrid.serve import health
from tests.serve.app import App


def test_liveness_takes_no_thread() -> None:
    assert inspect.iscoroutinefunction(health.livez) and inspect.iscoroutinefunction(health.health)
    assert asyncio.run(health.livez()) == "OK"


@pytest.mark.slow
def test_details_of_readiness_are_for_accounts(orders: App) -> None:
    place = str(orders.home.settings.warehouse)
    assert place in str(orders.call("GET", "/readyz")[1])
    _, secret = Accounts(orders.home.home).add("ada", Right.READ)
    time.sleep(1.1)
    names = {"catalog", "warehouse", "pipeline", "connectors"}
    for header in ({}, {"Authorization": "Bearer wrong"}):
        status, found = orders.call("GET", "/readyz", headers=header)
        assert status == 503 and {one["name"] for one in found["checks"]} == names
        assert {one["detail"] for one in found["checks"]} == {"told to accounts"}
    assert place in str(orders.call("GET", "/readyz", headers={"Authorization": f"Bearer {secret}"})[1])
