"""A reset of a stream that a pause holds: where the pause holds it meanwhile, whatever dies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hybrid
from hybrid.config.connectors import Connector, FileInput, KafkaInput
from hybrid.config.table_config import StreamConfig
from hybrid.errors import NotFoundError, UsageError
from hybrid.flow.connectors.history import HistoryProgress
from hybrid.ingest import reset
from hybrid.ingest.reset import ResetPartition, ResetReport
from hybrid.operations.connectors.progress import pause_offsets
from hybrid.operations.connectors.run import TableConnectors
from hybrid.table.boundary import TopicPartition
from tests.records.test_decode import table

STREAM = StreamConfig(("t",), "b", connector="live")
SPEC = replace(table({"name": "STRING"}), stream=STREAM, connectors=(Connector("live", KafkaInput("b", ("t",))),))
TOLD = ResetReport("t", "t", "id", False, (), 0, 0, 0, None, "As told.", True)


class Died(Exception):
    pass


class Stream:
    """A connector whose resets do not reach Kafka: they say where a pause held it at the commit."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = hybrid.connect(home)
        vars(self.home.context)["bench"] = None
        made: Any = SimpleNamespace(spec=SPEC, layout=None)
        self.connectors, self.at_commit, self.dies = TableConnectors(self.home.context, made), None, False
        monkeypatch.setattr(reset, "reset_stream", self._reset)

    def reset(self, name: str | None = None, /, **positions: tuple[int, int]) -> None:
        """`p0=(position, to)`."""
        found = [ResetPartition(int(name[1:]), 1, *pair, 0, 0, 0) for name, pair in positions.items()]
        self.connectors.reset("earliest", name, accept=replace(TOLD, partitions=tuple(found)))

    def held(self) -> dict[int, int] | None:
        """Where a pause holds it, by partition."""
        found = self.connectors.pause_offsets()
        return None if found is None else {place.partition: offset for place, offset in found.items()}

    def _reset(self, _table: object, told: ResetReport, **how: Any) -> ResetReport:
        report = replace(told, dry_run=False)
        how["holding"](report)
        self.at_commit = self.held()
        if self.dies:
            raise Died
        return replace(report, version=7)


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stream:
    return Stream(tmp_path, monkeypatch)


def test_a_paused_stream_lets_nothing_through_while_it_is_reset(stream: Stream) -> None:
    stream.home.context.catalog.connectors.pause("t", "live", {"0": 4, "1": 6, "2": 8})
    stream.reset(p0=(4, 9), p1=(6, 2), p3=(0, 5))
    assert stream.at_commit == {0: 4, 1: 2, 2: 8, 3: 0}, "neither before the commit nor after it is there a row to read"
    assert stream.held() == {0: 9, 1: 2, 2: 8, 3: 5}


def test_nor_when_the_reset_dies(stream: Stream) -> None:
    stream.home.context.catalog.connectors.pause("t", "live", {"0": 4})
    stream.dies = True
    with pytest.raises(Died):
        stream.reset(p0=(4, 9))
    assert stream.held() == {0: 4}


def test_a_pause_of_before_is_of_the_only_topic_and_several_are_told_by_name(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, live = stream.home.context.catalog.connectors, SPEC.connectors
    known.pause("t", "live", {"0": 4})
    assert pause_offsets(stream.home.context, "t", live) == {TopicPartition("t", 0): 4}
    several = (replace(live[0], transport=KafkaInput("b", ("t", "u"))),)
    spec = replace(SPEC, connectors=several, stream=replace(STREAM, topics=("t", "u")))
    monkeypatch.setattr(stream.connectors, "_spec", spec)
    known.pause("t", "live", {"t/0": 4, "u/0": 6})
    stream.reset("t", p0=(4, 9))
    held = {TopicPartition("t", 0): 9, TopicPartition("u", 0): 6}
    assert pause_offsets(stream.home.context, "t", several) == held, "the other topic is held where it was"
    with pytest.raises(UsageError, match="reads topics 't' and 'u': say which one is reset"):
        stream.reset("live", p0=(9, 9))
    with pytest.raises(UsageError, match="What was accepted is of topic 't', and not of 'u'"):
        stream.reset("u", p0=(9, 9))
    with pytest.raises(NotFoundError):
        stream.reset("v", p0=(9, 9))


def test_a_history_without_offsets_beside_one_with_them_does_not_tell_all(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Connector("live", KafkaInput("b", ("t", "u")), start_after=("h",))
    loads = [Connector(name, FileInput(f"/{name}"), labels=("h",)) for name in ("one", "two")]
    spec = replace(SPEC, connectors=(live, *loads), stream=replace(STREAM, topics=("t", "u")))
    connectors = TableConnectors(stream.home.context, SimpleNamespace(spec=spec, layout=None))  # type: ignore[arg-type]
    progress = {"one": HistoryProgress({}, rows=5, offsets={"t/0": 4}), "two": HistoryProgress({}, rows=0, offsets={})}
    monkeypatch.setattr(connectors, "_view", lambda: SimpleNamespace(progress=progress.get))
    assert connectors._tells_all(live), "one that has brought nothing holds no rows of any"
    progress["two"] = replace(progress["two"], rows=1)
    assert not connectors._tells_all(live)
    progress["two"] = replace(progress["two"], offsets={"v/0": 4})
    assert not connectors._tells_all(live)


@pytest.mark.slow
def test_a_stream_that_goes_on_is_not_held(stream: Stream) -> None:
    stream.reset(p0=(4, 9))
    assert stream.at_commit is None and stream.held() is None
