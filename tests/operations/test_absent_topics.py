"""Of several topics one is not there yet: everything that says how a table stands names it, and the others are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.config.table_config import Half, StreamConfig, TableSpec
from hybrid.doctor.findings import Checkup, Severity
from hybrid.doctor.streams import StreamChecks
from hybrid.errors import StreamError
from hybrid.ingest import loop
from hybrid.ingest.loop import _absent
from hybrid.kafka import streams as stream
from hybrid.kafka.streams import StreamView
from hybrid.operations.connectors.run import TableConnectors
from hybrid.operations.connectors.status import Standing
from hybrid.operations.lag import lag_of
from hybrid.table.boundary import PartitionKey, TopicPartition
from tests.fake_streams import seen, together
from tests.query.halves import Halves, orders_spec

SPEC = replace(orders_spec(), stream=StreamConfig(("orders", "ordrs"), "b:1"))
HOME: Any = SimpleNamespace(catalog=SimpleNamespace(connectors=None))
A = PartitionKey("kafka", "orders", 0, 0)
THERE = seen("orders", "1", {0: 0}, {0: 9})
BOTH = together(THERE, seen("ordrs", "2", {0: 0}, {0: 3}))


class Kafka:
    """What the cluster shows."""

    def __init__(self) -> None:
        self.view: StreamView | None = THERE
        self.asked = 0

    def __call__(self, *_: object) -> StreamView:
        self.asked += 1
        if self.view is None:
            raise StreamError("Kafka does not answer.")
        return self.view


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    found = Kafka()
    for module in (stream, loop):
        monkeypatch.setattr(module, "view_stream", found)
    return found


@pytest.fixture
def table(tmp_path: Path, kafka: Kafka) -> Any:
    """A table that has read two offsets of the first topic."""
    halves = Halves.create(tmp_path, SPEC)
    halves.commit_realtime([], offsets={A: 2}, topic_ids={"kafka/orders": "1"})
    at = SimpleNamespace(realtime=halves.realtime)
    return SimpleNamespace(name="orders", spec=SPEC, layout=halves.layout, half=lambda _: at)


def doctor(table: Any, *specs: TableSpec) -> list[tuple[Severity, str]]:
    checkup = Checkup(SimpleNamespace(), repair=False)  # type: ignore[arg-type]
    checks = StreamChecks(checkup)
    for spec in specs or (SPEC,):
        checks.check(spec, table.half(Half.REALTIME).realtime)
    return [(one.severity, one.message) for one in checkup.findings]


def lag(table: Any) -> tuple[int | None, str | None]:
    return Standing(SimpleNamespace(), table, SimpleNamespace())._lag()  # type: ignore[arg-type]


def test_it_is_named_wherever_the_table_is_told_of(table: Any, kafka: Kafka) -> None:
    words = "Topic 'ordrs' is not there yet"
    assert lag_of(HOME, table) == (7, f"{words}; the others are read.", None, {"orders/0": 7})
    assert lag(table) == (7, "topic 'ordrs' is not there yet")
    assert doctor(table) == [(Severity.WARNING, f"{words}; the others are read.")]
    assert _absent(SPEC, table.layout) == words
    kafka.view = BOTH
    assert lag_of(HOME, table) == (10, "OK", None, {"orders/0": 7, "ordrs/0": 3})
    assert (lag(table), doctor(table)) == ((10, None), [])
    assert _absent(SPEC, table.layout) is None
    kafka.view = None
    assert _absent(SPEC, table.layout) is None, "what was ingested is told all the same"
    kafka.asked = 0
    alone = replace(SPEC, stream=StreamConfig(("orders",), "b:1"))
    assert _absent(alone, table.layout) is None and kafka.asked == 0


def test_one_that_is_gone_is_an_error_and_its_brokers_are_asked_for_other_tables(table: Any, kafka: Kafka) -> None:
    kafka.view = together(seen("ordrs", "2", {0: 0}, {0: 3}))
    others = replace(SPEC, name="others", stream=StreamConfig(("ordrs",), "b:1"))
    [(severity, message)] = doctor(table, SPEC, others)
    assert (severity, kafka.asked) == (Severity.ERROR, 2)
    assert message.startswith("Topic 'orders' of b:1 was read before and does not exist any more. Ingestion stopped")
    behind, state, hint, _ = lag_of(HOME, table)
    assert (behind, state) == (None, message) and hint is not None and "connector reset" in hint


def test_a_pause_holds_the_others_where_they_end(table: Any, kafka: Kafka) -> None:
    connectors = TableConnectors(HOME, table)
    kafka.view = seen("ordrs", "2", {0: 0}, {0: 3})
    held = {TopicPartition("orders", 0): 2, TopicPartition("ordrs", 0): 3}
    assert connectors._ends() == held, "the one that is gone where it is committed"
    kafka.view = None
    assert connectors._ends() == {TopicPartition("orders", 0): 2}
