"""Pausing and starting a table whose stream stands in a table config: what `hybrid connector` says is so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.cli.main import run
from hybrid.errors import NotFoundError, SpecError
from hybrid.kafka.streams import StreamView
from hybrid.operations.tables import create as creation
from hybrid.rpc.verbs import VERBS
from tests.serve.app import OFFLINE, REALTIME, SCHEMA


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Hybrid:
    monkeypatch.setattr(creation, "view_stream", lambda stream: StreamView({}, {}, {}))
    found = hybrid.connect(home)
    found.create_table(TableDocuments((SCHEMA, "schema"), [(REALTIME, "config"), (OFFLINE, "config")]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [(), ("kafka",), ("orders",)])
def test_pause_and_start(here: Hybrid, name: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--home", str(here.home)]
    assert run([*at, "connector", "list", "orders", "--json"]) == 0
    (before,) = json.loads(capsys.readouterr().out)
    assert (before["name"], before["state"], before["transport"]) == ("kafka", "RUNNING", "kafka_input")
    assert run([*at, "connector", "pause", "orders", *name]) == 0
    assert capsys.readouterr().err == "Connector 'kafka' is PAUSED: by a user, with its table.\n"
    assert here.table("orders").pause_status().paused
    assert run([*at, "ingest", "orders", "--until-caught-up"]) == 0
    assert "Nothing to ingest: table 'orders' is paused. `hybrid connector start orders`" in capsys.readouterr().err
    assert run([*at, "ingest", "orders"]) == 0
    assert "is paused" in capsys.readouterr().err
    assert run([*at, "connector", "start", "orders", *name]) == 0
    assert "Connector 'kafka' is RUNNING" in capsys.readouterr().err
    assert not here.table("orders").pause_status().paused


def test_a_pause_ends_with_its_table(here: Hybrid) -> None:
    """It comes back with the table, and does not hold another one of its name."""
    here.table("orders").connectors.pause(None)
    here.drop_table("orders")
    here.undrop_table("orders")
    assert here.table("orders").pause_status().paused
    here.drop_table("orders")
    here.create_table(TableDocuments((SCHEMA, "schema"), [(REALTIME, "config"), (OFFLINE, "config")]))
    assert not here.table("orders").pause_status().paused


def test_what_cannot_be_paused_is_an_error(here: Hybrid) -> None:
    connectors = here.table("orders").connectors
    for act in (connectors.pause, connectors.start):
        with pytest.raises(NotFoundError, match=r"Connector 'kafak' does not exist. Did you mean 'kafka'"):
            act("kafak")
    assert connectors.status("orders").name == "kafka"
    here.create_table(TableDocuments((SCHEMA, "schema"), [({**OFFLINE, "tableName": "archive"}, "config")]))
    for act in (here.table("archive").connectors.pause, here.table("archive").connectors.start):
        with pytest.raises(SpecError, match="Table 'archive' has no connector and no stream"):
            act(None)


def test_an_unknown_task_type_is_refused_at_once(here: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotFoundError, match="Task type 'MoveTask' does not exist") as no:
        VERBS["task_run"].is_heavy(here, {"table": "orders", "type": "MoveTask"})
    assert "Types are: RealtimeToOfflineSegmentsTask, " in str(no.value.hint)
    with pytest.raises(NotFoundError, match="Table 'ordres' does not exist"):
        VERBS["task_run"].is_heavy(here, {"table": "ordres", "type": "VacuumTask"})
    with pytest.raises(SpecError, match="has no MergeRollupTask"):
        VERBS["task_run"].is_heavy(here, {"table": "orders", "type": "MergeRollupTask"})
    assert VERBS["task_run"].is_heavy(here, {"table": "orders", "type": "VacuumTask"})
    assert run(["--home", str(here.home), "task", "run", "orders", "MoveTask"]) == 1
    assert "Types are: RealtimeToOfflineSegmentsTask" in capsys.readouterr().err
    assert here.runs() == []
