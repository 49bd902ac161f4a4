"""Cases of a log that was cut below what was read and has grown since: an unclean election, or data that was lost.

A broker is stopped, the end of its log is cut off as a power failure does, and it is started again: it leads the
partition under a new epoch and goes on at a lower offset.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import StreamError
from hybrid.ingest import batch as batch_module
from hybrid.ingest.refetch import held_rows
from hybrid.kafka.streams import view_stream
from hybrid.kafka.topics import create_topic
from hybrid.lake.commit_context import CommitContext
from hybrid.table.boundary import TopicPartition
from hybrid.table.state import from_user_metadata, to_user_metadata
from tests.cases.tables import LiveTable, layout_in, table_spec
from tests.cases.test_streams import rows
from tests.watchdog import watched_broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class CuttableBroker:
    """A broker of its own, whose logs can be cut while it is stopped."""

    def __init__(self, home: Path) -> None:
        self.local = watched_broker(home)
        self.address = self.local.start(0)

    def restart(self) -> None:
        self.local.stop()
        self.local.start()

    def cut(self, topic: str, end: int) -> None:
        """Cut partition 0 of a topic so that it ends at an offset at which a batch of records begins."""
        self.local.stop()
        data = self.local.folder / "data"
        folder = data / f"{topic}-0"
        log = folder / f"{0:020}.log"
        content, at = log.read_bytes(), 0
        while at < len(content):
            base, length = struct.unpack_from(">qi", content, at)
            if base >= end:
                break
            at += 12 + length
        log.write_bytes(content[:at])
        for name in (*folder.glob("*index"), *folder.glob("*.snapshot")):
            name.unlink()
        (data / ".kafka_cleanshutdown").unlink(missing_ok=True)
        (data / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
        self.local.start()


@pytest.fixture(scope="module")
def cuttable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CuttableBroker]:
    broker = CuttableBroker(tmp_path_factory.mktemp("cuttable"))
    yield broker
    broker.local.stop()


@pytest.fixture
def new_table(cuttable: CuttableBroker, workbench: CommitContext, tmp_path: Path) -> Callable[..., LiveTable]:
    def make(**options: object) -> LiveTable:
        name = f"t-{uuid.uuid4().hex[:12]}"
        create_topic(cuttable.address, name, 1)
        (tmp_path / name).mkdir()
        spec = table_spec(cuttable.address, name, **options)
        return LiveTable(spec, layout_in(tmp_path / name), workbench).create()

    return make


def topic_of(table: LiveTable) -> str:
    return table.spec.stream.topics[0]


def test_truncated_and_grown_past_our_position(cuttable: CuttableBroker, new_table: Callable[..., LiveTable]) -> None:
    """17: offsets 5 to 9 are other messages than were read. Ingestion stops, whatever the log holds beyond them."""
    table = new_table()
    table.produce(*rows(*range(5)))
    table.produce(*rows(*range(5, 10)))
    table.ingest()
    epochs = table.half(Half.REALTIME).realtime.leader_epochs
    assert list(epochs) == list(table.half(Half.REALTIME).realtime.offsets)
    cuttable.restart()  # a new leader epoch with the whole log
    table.produce(*rows(10))
    assert table.ingest().rows == 1, "a leader that has everything stops nothing"
    assert table.half(Half.REALTIME).realtime.leader_epochs.values() != epochs.values()
    cuttable.cut(topic_of(table), 5)
    table.produce(*rows(*range(20, 30)))
    before = table.half(Half.REALTIME).version
    with pytest.raises(StreamError, match=r"up to offset 11, but from offset 5 on Kafka no longer holds") as caught:
        table.ingest()
    assert "--to 0:5" in caught.value.hint
    with pytest.raises(StreamError, match="Log truncated"):
        held_rows(table.bench, table.spec, table.half(Half.REALTIME).realtime)
    assert table.half(Half.REALTIME).version == before

    report = table.reset("0:5", dry_run=True)
    assert (report.lost, report.skipped, report.again) == (0, 0, 0)
    assert table.reset("latest", dry_run=True).skipped == 10
    assert table.reset("earliest", dry_run=True).again == 5
    table.reset("0:5")
    assert table.ingest().rows == 10
    assert table.visible() == table.queried() == [*range(11), *range(20, 30)]
    table.produce(*rows(30))
    assert table.ingest().rows == 1


def test_a_table_that_starts_at_the_end_knows_its_log(
    cuttable: CuttableBroker, new_table: Callable[..., LiveTable]
) -> None:
    """17: the first look. Nothing was read, and yet messages below the start would never be."""
    table = new_table()
    table.produce(*rows(1, 2, 3))
    table.produce(*rows(4, 5, 6))
    late = LiveTable(
        table_spec(cuttable.address, topic_of(table), start="largest"),
        layout_in(table.layout.root.parent / "late"),
        table.shared,
    ).create()
    assert late.offsets == {0: 6}
    cuttable.cut(topic_of(table), 3)
    late.produce(*rows(*range(10, 20)))
    with pytest.raises(StreamError, match="up to offset 6, but from offset 3 on"):
        late.ingest()


def test_truncated_while_a_batch_is_read(
    cuttable: CuttableBroker, new_table: Callable[..., LiveTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """17: between the look and the commit. The batch is dropped, and the next one reads what Kafka holds now."""
    table = new_table()
    table.produce(*rows(1, 2))
    table.ingest()
    table.produce(*rows(3, 4))
    table.produce(*rows(5, 6))
    write = batch_module.write_ranges

    def cut_after(*args: object) -> object:
        found = write(*args)
        cuttable.cut(topic_of(table), 4)
        table.produce(*rows(*range(50, 60)))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(batch_module, "write_ranges", cut_after)
        with pytest.raises(StreamError, match="truncated while a batch"):
            table.ingest()
    assert table.offsets == {0: 2}
    assert table.ingest().rows == 12
    assert table.visible() == [1, 2, 3, 4, *range(50, 60)]


def test_a_half_from_before_leader_epochs_reads_on_and_learns_them(new_table: Callable[..., LiveTable]) -> None:
    """17: an old state has no epochs. It is read as before, and the next commit keeps them."""
    table = new_table()
    table.produce(*rows(1))
    table.ingest()
    state = table.half(Half.REALTIME).realtime
    text = to_user_metadata(state).replace('"leader_epochs"', '"of_another_version"')
    old = from_user_metadata(text)
    assert old.leader_epochs == {} and old.offsets == state.offsets
    view = view_stream(table.spec.stream, 10_000, old.known_leader_epochs(table.spec.stream))
    assert view.divergences == {} and view.leader_epochs == {TopicPartition(topic_of(table), 0): 0}


def test_a_broker_that_does_not_know_the_request_is_read_without_it(
    new_table: Callable[..., LiveTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """17: an old broker. No epoch is kept, so that none is ever missed; and nothing stops."""
    from kafka.errors import IncompatibleBrokerVersion

    from hybrid.kafka import leader_epochs

    def unknown(*_: object) -> object:
        raise IncompatibleBrokerVersion("no OffsetForLeaderEpoch")

    table = new_table()
    with monkeypatch.context() as patch:
        patch.setattr(leader_epochs, "_request", unknown)
        table.produce(*rows(1))
        assert table.ingest().rows == 1
    assert table.half(Half.REALTIME).realtime.leader_epochs == {}, "the start's no longer fits the position"
