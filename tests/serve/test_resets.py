"""A reset over HTTP: what is queued is what was accepted, and not what stands when the run's turn has come."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.catalog.run_record import RunRecord
from hybrid.ingest import reset
from tests.fake_streams import seen
from tests.serve.app import App, Worker, fail_at_once

PATH = "/tables/orders/connectors/kafka/reset"


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Where Kafka ends, by partition; 4 offsets of it were read."""
    found = {0: 9}
    monkeypatch.setattr(reset, "require_topics", lambda *_, **__: seen("orders", "id-1", {0: 0}, dict(found)))
    return found


def queued(orders: App, body: dict[str, Any]) -> RunRecord:
    """The run that waits."""
    runs = orders.home.context.catalog.runs
    arguments = {"table": "orders", "name": "kafka", **body}
    assert orders.call("POST", "/verbs/connector_reset", arguments)[0] == 202
    run = runs.claim()
    assert run is not None
    return run


def offsets(report: Any) -> list[tuple[int, int]]:
    return [(one["position"], one["to"]) for one in report["partitions"]]


@pytest.mark.slow
def test_what_was_told_goes_with_the_run(orders: App, ends: dict[int, int]) -> None:
    told = orders.ok("POST", PATH, {"to": "latest", "dryRun": True})
    assert told["dry_run"] and told["skipped"] == 5 and offsets(told) == [(4, 9)]
    status, sentence = orders.refused("POST", PATH, {"to": "latest"})
    assert status == 409 and "5 offsets are skipped that Kafka holds. That has to be accepted" in sentence
    assert orders.home.context.catalog.runs.claim() is None, "no run is queued for it"
    run = queued(orders, {"to": "latest", "accepted": told})
    assert run.arguments["accepted"]["topic_id"] == "id-1" and offsets(run.arguments["accepted"]) == [(4, 9)]


@pytest.mark.slow
def test_who_says_yes_accepts_what_stands_then(orders: App, ends: dict[int, int]) -> None:
    told = orders.ok("POST", PATH, {"to": "latest", "dryRun": True})
    ends[0] = 12
    assert accepted(orders, {"to": "latest", "yes": True}) == [(4, 12)]
    assert accepted(orders, {"to": "latest", "yes": True, "accepted": told}) == [(4, 9)]


def accepted(orders: App, body: dict[str, Any]) -> list[tuple[int, int]]:
    """The offsets that the run of a reset is given."""
    seen: list[RunRecord] = []

    def carry(home: Any, run: RunRecord) -> None:
        seen.append(run)
        fail_at_once(home, run)

    with Worker(orders.home, carry):
        assert "There is no Spark" in orders.refused("POST", PATH, body)[1]
    return offsets(seen[0].arguments["accepted"])


@pytest.mark.slow
def test_what_is_no_report_is_refused(orders: App, ends: dict[int, int]) -> None:
    with Worker(orders.home):
        status, sentence = orders.refused("POST", PATH, {"to": "latest", "yes": True, "accepted": {"topic_id": 1}})
    assert status == 400 and "'accepted' is not what a dry run of a reset has told" in sentence
