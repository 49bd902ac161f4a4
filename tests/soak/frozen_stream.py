"""The stream of the tests of frozen writers, and the documents of tables that read it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hybrid.kafka.topics import create_topic
from hybrid.lake.failpoints import POSITIONS
from tests.soak.events import (
    PARTITIONS,
    SCHEMA,
    Event,
    live_rows,
    make_events,
    offline_config,
    realtime_config,
    rejected,
)
from tests.soak.freezing import FrozenWorker
from tests.soak.harness import Producer, check_all_once

COUNT, EVENTS = 3000, 60
# A message with such a number in a column is rejected until that column is wide enough.
BIG = 2**40
WIDENED = (*POSITIONS, "claim")


class Stream:
    """The events of the topic. One has a big number in the column `n_NAME`, for each name of `WIDENED`."""

    def __init__(self, broker: str, topic: str) -> None:
        create_topic(broker, topic, PARTITIONS)
        self._events = make_events(COUNT, seed=11)
        self.sent: list[Event] = []
        self._producer = Producer(broker, topic)
        good = [number for number, event in enumerate(self._events) if event.row is not None]
        self._big = dict(zip(WIDENED, good, strict=False))
        for name, number in self._big.items():
            event = self._events[number]
            row = {**(event.row or {}), f"n_{name}": BIG}
            self._events[number] = replace(event, payload=json.dumps(row).encode(), row=None)

    def send_more(self) -> None:
        more = self._events[len(self.sent) : len(self.sent) + EVENTS]
        assert more, "too few events"
        self._producer.send(more)
        self.sent += more

    def fits_now(self, name: str) -> None:
        """The message with a big number in that column is a row from now on."""
        event = self.sent[self._big[name]]
        self.sent[self._big[name]] = replace(event, row=json.loads(event.payload))

    def is_rejected_again(self, name: str) -> None:
        """That row is a rejected message again."""
        self.sent[self._big[name]] = replace(self.sent[self._big[name]], row=None)

    def check(self, worker: FrozenWorker, table: str, sent: int | None = None) -> None:
        """Each row of the first `sent` events, or of all, is visible once."""
        events = self.sent[:sent]
        check_all_once(worker.home, table, live_rows(events, upsert=False), rejected(events))

    def close(self) -> None:
        self._producer.close()


def write_files(folder: Path, broker: str, topic: str, table: str, wide: Sequence[str] = ()) -> None:
    """The documents of a table with the stream. The columns of the names `wide` are wide enough."""
    realtime = realtime_config(table, topic, broker, upsert=False)
    write(folder, table, schema_of(table, wide), realtime=realtime, offline=offline_config(table))


def write_started(folder: Path, broker: str, topic: str, table: str) -> None:
    """The documents of a table whose stream is a connector, with the half REALTIME only."""
    transport = {"name": "kafka_input",
                 "config": {"bootstrap.servers": broker, "topic": topic, "start_from": "earliest"}}  # fmt: skip
    form = {"name": "json", "config": {"update_format": "raw"}}
    realtime = {
        "tableName": table,
        "tableType": "REALTIME",
        "segmentsConfig": {"timeColumnName": "ts", "schemaName": table},
        "connectors": [{"name": "live", "transport": transport, "format": form}],
    }
    write(folder, table, schema_of(table, ()), realtime=realtime)


def schema_of(table: str, wide: Sequence[str]) -> dict:
    numbers = [{"name": f"n_{name}", "dataType": "LONG" if name in wide else "INT"} for name in WIDENED]
    return {"schemaName": table, **SCHEMA, "dimensionFieldSpecs": [*SCHEMA["dimensionFieldSpecs"], *numbers]}


def write(folder: Path, table: str, schema: dict, **configs: dict) -> None:
    for name, document in {"schema": schema, **configs}.items():
        (folder / f"{table}_{name}.json").write_text(json.dumps(document))
