"""A home that writes a warehouse on a store is frozen at each point of a commit; another home takes over and works.

When the first one goes on it commits nothing, and every event is there once. The two homes take turns, so each of them
also comes back after it was refused. Here are the commits to tables with a stream; `test_frozen_loads.py` has those to
tables that files fill.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.kafka.topics import create_topic
from hybrid.lake.failpoints import ACT_KINDS, POSITIONS, STORE_STEPS
from tests.s3_server import needs_s3
from tests.soak.events import SCHEMA, Event, live_rows, make_events, offline_config, realtime_config, rejected
from tests.soak.freezing import (
    FILE_VERBS,
    REFUSED_VERBS,
    STREAM_VERBS,
    FrozenWorker,
    Homes,
    failpoints_of,
    homes_on_a_store,
)
from tests.soak.harness import Producer, check_all_once

TABLE = "frozen"
# What has to be done before a verb has something to commit; later ones find what earlier ones left.
BEFORE = {"seal": ["ingest"], "move": ["ingest"], "revert": ["correct"]}
# Kinds that need more than a verb on the table.
OTHERS = ("replay", "start", "reset", "create")
COUNT, EVENTS = 3000, 60
# A message with such a number in a column is rejected until that column is wide enough.
BIG = 2**40
WIDENED = (*POSITIONS, "claim")


class Stream:
    """The events of the topic. One has a big number in the column `n_NAME`, for each name of `WIDENED`."""

    def __init__(self, broker: str) -> None:
        self._events = make_events(COUNT, seed=11)
        self.sent: list[Event] = []
        self._producer = Producer(broker, TABLE)
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

    def check(self, worker: FrozenWorker, table: str = TABLE, sent: int | None = None) -> None:
        """Each row of the first `sent` events, or of all, is visible once."""
        events = self.sent[:sent]
        check_all_once(worker.home, table, live_rows(events, upsert=False), rejected(events))

    def close(self) -> None:
        self._producer.close()


def test_every_kind_of_commit_is_frozen_or_refused() -> None:
    assert {*STREAM_VERBS, *FILE_VERBS, *REFUSED_VERBS} == set(ACT_KINDS)


@needs_s3
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_writer_that_is_frozen_anywhere_commits_nothing_after_a_take_over(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(broker, TABLE, 3)
    for position in POSITIONS:
        write_files(tmp_path, broker, f"created_{position}", POSITIONS)
        write_started(tmp_path, broker, f"started_{position}")
    write_files(tmp_path, broker, TABLE)
    stream = Stream(broker)
    with homes_on_a_store(tmp_path, monkeypatch) as homes:
        homes.writer.do("create", TABLE)
        freeze_one_table(homes, stream)
        freeze_replays(homes, stream, tmp_path, broker)
        freeze_starts_and_resets(homes, stream)
        for position in POSITIONS:
            homes.freeze(f"created_{position}", f"create.commit.{position}")
            stream.check(homes.writer, f"created_{position}")
        refuse_others(homes, stream, tmp_path, broker)
        homes.check_logs()
    assert set(failpoints_of(STREAM_VERBS)) <= set(homes.frozen_at)
    stream.close()


def freeze_one_table(homes: Homes, stream: Stream) -> None:
    """What commits to the same table again and again, and each step at the store."""
    kinds = [kind for kind in STREAM_VERBS if kind not in OTHERS]
    cases = [(STREAM_VERBS[kind], point) for kind in kinds for point in failpoints_of([kind])]
    # The second time that a process passes such a step armed.
    cases += [("ingest", step) for step in STORE_STEPS] + [("move", f"{step}@2") for step in STORE_STEPS]
    for verb, failpoint in cases:
        stream.send_more()
        for earlier in BEFORE.get(verb, ()):
            homes.writer.do(earlier, TABLE)
        homes.freeze(TABLE, failpoint, verb, taken_over=stream.check)
        stream.check(homes.writer)


def freeze_replays(homes: Homes, stream: Stream, files: Path, broker: str) -> None:
    """Each brings the message that was rejected for a column that became wider."""
    for number, position in enumerate(POSITIONS, start=1):
        write_files(files, broker, TABLE, WIDENED[:number])
        homes.writer.do("evolve", TABLE)
        stream.fits_now(position)
        homes.freeze(TABLE, f"replay.commit.{position}")
        stream.check(homes.writer)
    assert homes.count_acts(TABLE)["replay"] == len(POSITIONS)


def freeze_starts_and_resets(homes: Homes, stream: Stream) -> None:
    """A connector starts its stream; then the stream is reset past events that were not read."""
    for position in POSITIONS:
        table = f"started_{position}"
        homes.writer.do("create", table)
        homes.freeze(table, f"start.commit.{position}")
        stream.check(homes.writer, table)
        read = len(stream.sent)
        stream.send_more()
        homes.freeze(table, f"reset.commit.{position}")
        stream.check(homes.writer, table, read)
        acts = homes.count_acts(table)
        assert (acts["start"], acts["reset"]) == (1, 1), acts


def refuse_others(homes: Homes, stream: Stream, files: Path, broker: str) -> None:
    """What a store does not have is refused with what helps, and commits nothing."""
    write_files(files, broker, TABLE, WIDENED)
    for verb in ("ingest", "evolve"):
        homes.writer.do(verb, TABLE)
    for verb in dict.fromkeys(REFUSED_VERBS.values()):
        answer = homes.writer.ask(verb, TABLE)
        assert "on an object store" in answer["error"] and answer["hint"], answer
    assert not homes.count_acts(TABLE).keys() & REFUSED_VERBS.keys()
    stream.check(homes.writer)


def write_files(folder: Path, broker: str, table: str, wide: tuple[str, ...] = ()) -> None:
    """The documents of a table with the stream. The columns of the names `wide` are wide enough."""
    realtime = realtime_config(table, TABLE, broker, upsert=False)
    write(folder, table, schema_of(table, wide), realtime=realtime, offline=offline_config(table))


def write_started(folder: Path, broker: str, table: str) -> None:
    """The documents of a table whose stream is a connector, with the half REALTIME only."""
    transport = {"name": "kafka_input",
                 "config": {"bootstrap.servers": broker, "topic": TABLE, "start_from": "earliest"}}  # fmt: skip
    form = {"name": "json", "config": {"update_format": "raw"}}
    realtime = {
        "tableName": table,
        "tableType": "REALTIME",
        "segmentsConfig": {"timeColumnName": "ts", "schemaName": table},
        "connectors": [{"name": "live", "transport": transport, "format": form}],
    }
    write(folder, table, schema_of(table, POSITIONS), realtime=realtime)


def schema_of(table: str, wide: tuple[str, ...]) -> dict:
    numbers = [{"name": f"n_{name}", "dataType": "LONG" if name in wide else "INT"} for name in WIDENED]
    return {"schemaName": table, **SCHEMA, "dimensionFieldSpecs": [*SCHEMA["dimensionFieldSpecs"], *numbers]}


def write(folder: Path, table: str, schema: dict, **configs: dict) -> None:
    for name, document in {"schema": schema, **configs}.items():
        (folder / f"{table}_{name}.json").write_text(json.dumps(document))
