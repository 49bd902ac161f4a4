"""An ingester asks Kafka about its stream only when something has changed, and misses nothing that does change."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.table_config import Half
from hybrid.ingest import batch
from hybrid.kafka.broker_clients import BrokerClients
from hybrid.kafka.topics import TopicRecord, create_topic, produce
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.progress import Silent
from hybrid.serve.idle_stream import IdleStream
from hybrid.serve.ingester import Ingester, SharedLooks

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

HOUR = 3_600_000
SCHEMA = {
    "schemaName": "t",
    "dimensionFieldSpecs": [{"name": "id", "dataType": "LONG"}],
    "dateTimeFieldSpecs": [{"name": "ts", "dataType": "LONG", "format": "EPOCH", "granularity": "1:MILLISECONDS"}],
}


class Watched:
    """A table, and its ingester, whose rounds a test makes; `plans` counts how often it asked about the topic."""

    def __init__(self, here: Hybrid, broker: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here, self.broker, self.topic, self.plans = here, broker, topic, 0
        stream = {
            "streamType": "kafka",
            "stream.kafka.topic.name": topic,
            "stream.kafka.broker.list": broker,
            "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
        }
        table = {"tableName": "t", "segmentsConfig": {"schemaName": "t", "timeColumnName": "ts"}}
        self.config = {**table, "tableType": "REALTIME", "tableIndexConfig": {"streamConfigs": stream}}
        here.create_table(TableDocuments((SCHEMA, "schema"), [(self.config, "config")]))
        asked = batch.require_topics

        def require_topics(*args: Any, **named: Any) -> Any:
            self.plans += 1
            return asked(*args, **named)

        monkeypatch.setattr(batch, "require_topics", require_topics)
        self.ingester = Ingester(here, "t", SharedLooks(here.context.catalog.serving), lambda: False)

    def send(self, *numbers: int) -> None:
        rows = [json.dumps({"id": number, "ts": 9 * HOUR}).encode() for number in numbers]
        produce(self.broker, self.topic, [TopicRecord(row) for row in rows])

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < deadline, self.state
            self.ingester._round()
            time.sleep(0.05)

    def until_idle(self) -> None:
        """Until rounds for half a second have asked nothing about the topic."""
        since, plans = time.monotonic(), self.plans

        def is_idle() -> bool:
            nonlocal since, plans
            if self.plans != plans:
                since, plans = time.monotonic(), self.plans
            return time.monotonic() - since > 0.5

        self.until(is_idle)

    def until_planned(self) -> None:
        plans = self.plans
        self.until(lambda: self.plans > plans)

    @property
    def rows(self) -> int:
        """How many are committed."""
        half = open_half(self.here.context.layout("t").half(Half.REALTIME))
        return sum(file.rows for file in half.files)

    @property
    def state(self) -> tuple[str, str | None]:
        found = self.here.context.catalog.serving.ingestions()["t"]
        return found.state, found.detail


@pytest.fixture
def watched(
    home: Path, workbench: CommitContext, broker: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    here = hybrid.connect(home)
    here.context.now_ms = lambda: 10 * HOUR  # type: ignore[method-assign]
    vars(here.context)["bench"] = CommitContext(lambda: workbench.spark, here.context.now_ms, Silent())
    made = Watched(here, broker, topic, monkeypatch)
    yield made
    made.ingester._idle.close()
    here.close()


def test_rows_partitions_resets_and_changes_end_the_rest(watched: Watched) -> None:
    watched.until_idle()
    watched.send(1, 2)
    watched.until(lambda: watched.rows == 2)
    watched.until_idle()

    admin = KafkaAdminClient(bootstrap_servers=watched.broker)
    admin.create_partitions({watched.topic: 2})
    watched.until_planned()
    watched.until_idle()

    watched.here.table("t").connectors.reset("earliest", accept=True)  # by another process, as far as this one knows
    watched.until(lambda: watched.rows == 4)
    watched.until_idle()

    watched.config["tableIndexConfig"]["streamConfigs"]["realtime.segment.flush.threshold.rows"] = "1000"  # type: ignore[index]
    watched.here.apply_table(TableDocuments((SCHEMA, "schema"), [(watched.config, "config")]))
    watched.until_planned()
    watched.until_idle()

    watched.here.table("t").pause()
    watched.until(lambda: watched.state[0] == "PAUSED")
    watched.send(3)
    watched.here.table("t").resume()
    watched.until(lambda: watched.rows == 5)
    watched.until_idle()

    admin.delete_topics([watched.topic])
    watched.until(lambda: watched.state[0] == "STOPPED")
    assert "not exist any more" in str(watched.state[1])
    create_topic(watched.broker, watched.topic, 2)
    watched.send(4, 5, 6)
    watched.until(lambda: watched.state[0] == "STOPPED" and "recreated" in str(watched.state[1]))
    admin.close()


def test_what_no_watch_shows_is_looked_at_now_and_then(watched: Watched) -> None:
    watched.ingester._idle = IdleStream(BrokerClients(), 0.5, look_s=0.7)
    watched.until_idle()
    watched.until_planned()
    watched.ingester._idle.close()
