"""A look at a thousand tables costs what has changed: definitions and schedules are read once."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.definitions import Definition, Definitions
from hybrid.config.cron import Cron
from hybrid.config.settings import load_settings
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import DataError, NotFoundError
from hybrid.kafka.streams import StreamView
from hybrid.operations.tables import create as creation
from hybrid.operations.tables.create import _definition
from hybrid.progress import Silent
from hybrid.serve import pipeline

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"


class Idle:
    """A table's thread that does nothing."""

    def __init__(self, *_: object) -> None:
        self.stop = threading.Event()

    def start(self) -> None:
        pass

    def is_alive(self) -> bool:
        return True


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hybrid:
    monkeypatch.setattr(creation, "view_stream", lambda *_: StreamView({}, {}, {}))
    found = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    configs = [DATA / "orders_table.json", DATA / "orders_offline_table.json"]
    found.create_table(TableDocuments.read(DATA / "orders_schema.json", configs))
    return found


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[object]:
    calls: list[object] = []
    real = getattr(owner, name)

    def noted(*args: Any) -> Any:
        calls.append(args[-1])
        return real(*args)

    monkeypatch.setattr(owner, name, noted)
    return calls


def test_a_definition_is_read_once_and_again_when_it_changes(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """25: each look parsed every definition three times, 0.46 ms each."""
    read = counted(monkeypatch, Definitions, "find")
    first = home.spec("orders")
    for _ in range(100):
        assert home.spec("orders") is first
    assert len(read) <= 1
    home.context.definitions.replace(replace(_definition(first), brokers="other:1"))
    changed = home.spec("orders")
    assert changed.stream is not None and changed.stream.brokers == "other:1"
    path = home.settings.warehouse / "orders" / "definition.json"
    whole = path.read_bytes()
    path.write_text("{")
    with pytest.raises(DataError):
        home.spec("orders")
    path.write_bytes(whole)
    assert home.spec("orders").stream == changed.stream
    path.unlink()
    for name in ("orders", "../orders", "nosuch"):
        with pytest.raises(NotFoundError):
            home.spec(name)


@pytest.mark.slow
def test_a_look_at_tables_that_have_not_changed_computes_nothing(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """25: the loop of the pipeline, which took four times as long as it may at a thousand tables."""
    text = json.dumps(asdict(_definition(home.spec("orders"))))
    for number in range(40):
        home.context.definitions.add(Definition(**json.loads(text.replace('"orders"', f'"t{number}"'))))
    monkeypatch.setattr(pipeline, "Ingester", Idle)
    monkeypatch.setattr(pipeline, "Loader", Idle)
    found = pipeline.Pipeline(home, threading.Event())
    found._look()
    assert found._state == "ready" and len(found._ingesters) == 41
    read, due = counted(monkeypatch, Definitions, "find"), counted(monkeypatch, Cron, "next_after")
    started = time.process_time()
    for _ in range(10):
        found._look()
    assert not read and not due
    assert time.process_time() - started < 2


def test_a_run_of_a_server_shares_what_is_known(home: Hybrid) -> None:
    from hybrid.catalog.run_record import RunOutcome
    from hybrid.home.home import ServerTask
    from hybrid.home.input_access import rules_of

    twin = home.context.for_task(ServerTask("run", RunOutcome(), rules_of(home.settings, "http")), Silent())
    assert twin.spec("orders") is home.spec("orders")
