"""What ends the rest of an idle stream, one by one, and what makes it uncertain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from hybrid.errors import StreamError
from hybrid.kafka.broker_watch import PartitionEnds, WatchedStream
from hybrid.serve.idle_stream import IdleStream
from hybrid.table.boundary import TopicPartition
from tests.query.halves import KEY, Halves, orders_spec


class FakeBroker:
    """A broker's clients and their watch. `answer` is what a test lets Kafka say about ends."""

    def __init__(self) -> None:
        self.watch, self.users, self.now = self, 0, 0.0
        self.numbers, self.ids = {"orders": [0]}, {"orders": "a"}
        self.watched: list[WatchedStream] = []
        self.is_silent = False

    def acquire(self, brokers: str, security: object) -> FakeBroker:
        if self.is_silent:
            raise StreamError("Kafka does not answer.")
        self.users += 1
        return self

    def release(self, brokers: str, security: object, client: object) -> None:
        self.users -= 1

    def partitions(self, topic: str) -> Sequence[int]:
        return self.numbers[topic]

    def topic_id(self, topic: str) -> str | None:
        return self.ids.get(topic)

    def unwatch(self, watched: WatchedStream) -> None:
        self.watched.remove(watched)

    def answer(self, *ends: int) -> None:
        places = [TopicPartition("orders", number) for number in range(len(ends))]
        self.watched[0].offer(PartitionEnds(self.now, dict(zip(places, ends, strict=True))))


class Stand:
    """An idle stream whose last batch found nothing; `pause` is what the catalog answers."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broker, self.halves = FakeBroker(), Halves.create(folder, orders_spec())
        self.broker.watch = SimpleNamespace(  # type: ignore[assignment]
            watch=self._watch,
            **{name: getattr(self.broker, name) for name in ("partitions", "topic_id", "unwatch")},
        )
        monkeypatch.setattr("hybrid.serve.idle_stream.time", SimpleNamespace(monotonic=lambda: self.broker.now))
        self.pause: Callable[[], Any] = lambda: None
        self.table: Any = SimpleNamespace(
            spec=self.halves.spec,
            layout=self.halves.layout,
            connectors=SimpleNamespace(pause_offsets=lambda: self.pause()),
        )
        self.idle = IdleStream(self.broker, 0.5, 10.0)  # type: ignore[arg-type]

    def _watch(self, topics: Sequence[str], pause_s: float) -> WatchedStream:
        self.broker.watched.append(WatchedStream(topics, pause_s))
        return self.broker.watched[-1]

    def round(self, *, found_nothing: bool = True) -> bool:
        """Whether a batch was planned."""
        self.broker.now += 1
        if self.broker.watched and self.broker.watched[0].places:
            self.broker.answer(*self.ends)
        if self.idle.is_unchanged(self.table):
            return False
        self.idle.planned(self.table, found_nothing=found_nothing)
        return True

    ends: Sequence[int] = (5,)

    def rest(self) -> Stand:
        assert [self.round() for _ in range(4)] == [True, True, True, False]
        return self


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    return Stand(tmp_path, monkeypatch)


def _more_partitions(stand: Stand) -> None:
    stand.broker.numbers["orders"] = [0, 1]
    stand.ends = (5, 0)


CHANGES: dict[str, Callable[[Stand], object]] = {
    "messages": lambda stand: setattr(stand, "ends", (6,)),
    "a truncated log": lambda stand: setattr(stand, "ends", (4,)),
    "a topic of the same name": lambda stand: stand.broker.ids.update(orders="b"),
    "no topic": lambda stand: stand.broker.ids.clear(),
    "more partitions": _more_partitions,
    "a commit, such as a reset": lambda stand: stand.halves.commit_realtime([], "reset", offsets={KEY: 0}),
    "another definition": lambda stand: setattr(stand.table, "spec", replace(stand.table.spec, time_column=None)),
    "a table of the same definition": lambda stand: setattr(stand.table, "spec", replace(stand.table.spec)),
    "a pause that ends elsewhere": lambda stand: setattr(stand, "pause", lambda: {TopicPartition("orders", 0): 7}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_ends_the_rest(stand: Stand, change: str) -> None:
    stand.rest()
    CHANGES[change](stand)
    assert stand.round()
    assert [stand.round() for _ in range(4)][-1] is False, "then it rests again"


def test_rows_end_the_rest_until_a_batch_finds_nothing(stand: Stand) -> None:
    stand.rest().ends = (6,)
    assert all(stand.round(found_nothing=False) for _ in range(5))
    assert [stand.round(), stand.round()] == [True, False]


def test_a_message_between_the_sight_and_the_plan_is_not_missed(stand: Stand) -> None:
    """The plan saw it and found nothing to read, for whatever reason: the next sight differs from the one before."""
    stand.rest().ends = (6,)
    stand.broker.now += 1
    assert stand.round()
    stand.ends = (7,)
    assert stand.round()


def test_other_things_are_looked_at_every_ten_seconds(stand: Stand) -> None:
    stand.rest()
    planned = [stand.round() for _ in range(30)]
    assert sum(planned) == 3


def test_the_age_of_a_segment_is_looked_at_as_often_as_it_says(stand: Stand) -> None:
    assert stand.halves.spec.stream is not None
    stand.table.spec = replace(stand.halves.spec, stream=replace(stand.halves.spec.stream, flush_ms=2000))
    stand.rest()
    assert sum(stand.round() for _ in range(20)) == 10


def test_a_silent_broker_is_no_quiet_one(stand: Stand) -> None:
    stand.rest()
    stand.broker.watched[0].failures = 1
    stand.broker.now += 1
    assert not stand.idle.is_unchanged(stand.table)
    stand.broker.watched[0].failures = 0
    stand.broker.now += 5
    assert not stand.idle.is_unchanged(stand.table), "the last answer is old"


def test_an_unreadable_catalog_lets_the_batch_say_so(stand: Stand) -> None:
    stand.rest()

    def fail() -> None:
        raise sa.exc.OperationalError("SELECT 1", {}, Exception("database is locked"))

    stand.pause = fail
    assert stand.round()


def test_the_watch_ends_with_its_stream(stand: Stand) -> None:
    stand.broker.is_silent = True
    assert stand.round() and stand.round() and not stand.broker.users
    stand.broker.is_silent = False
    stand.rest()
    assert stand.halves.spec.stream is not None
    stand.table.spec = replace(stand.halves.spec, stream=replace(stand.halves.spec.stream, topics=("other",)))
    stand.broker.numbers["other"] = [0]
    assert stand.round() and stand.broker.users == 1 and len(stand.broker.watched) == 1
    stand.idle.close()
    stand.idle.close()
    assert not stand.broker.users and not stand.broker.watched
