"""Two topics with equal partitions and offsets: the boundary, a pause, a revision and a cache tell them apart."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half, StreamConfig
from hybrid.doctor.halves import _uncommitted
from hybrid.kafka.topics import create_topic
from hybrid.lake.log import open_half
from hybrid.query.cache.cache import Cache
from hybrid.query.prune import COVERED, choose_realtime
from hybrid.query.tail import KafkaTail
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.effective import EffectiveBoundary
from tests.query.halves import Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache
from tests.query.test_cache_kafka import Source, answer, awaited, shown
from tests.query.test_cached import _Held
from tests.query.test_cases import ALL, ids, message, row
from tests.query.test_tail import SHOW, produce, value

Ask = Callable[..., Any]
A, B = PartitionKey("kafka", "a", 0, 0), PartitionKey("kafka", "b", 0, 0)
IN_A, IN_B = "orders__0__0__20210924T0602Z", "orders__10000__0__20210924T0602Z"
SPEC = replace(orders_spec(), stream=StreamConfig(("a", "b"), "127.0.0.1:1"))


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    """Two rows of each topic, of which the boundary covers the first of `a` and both of `b`."""
    made = Halves.create(tmp_path, SPEC)
    live = [row(n, n * 10, n - 1, key=A, segment=IN_A) for n in (1, 2)]
    other = [row(10 + n, n * 10, n - 1, key=B, segment=IN_B) for n in (1, 2)]
    made.commit_realtime([*live, *other], offsets={A: 2, B: 2}, topic_ids={"kafka/a": "1", "kafka/b": "2"})
    moved = [replace(one, segment="o") for one in (live[0], *other)]
    made.commit_offline(moved, Boundary(100, {A: 1, B: 2}))
    return made


def beyond() -> ListTail:
    """Two messages of each topic, at equal offsets."""
    return ListTail(
        [message(n, n * 10, n - 1)._replace(key=key) for n, key in ((3, A), (4, A))]
        + [message(10 + n, n * 10, n - 1)._replace(key=B) for n in (3, 4)]
    )


@pytest.mark.slow
def test_a_frontier_that_covers_one_topic_further_than_the_other(halves: Halves, ask: Ask) -> None:
    everything = [1, 2, 3, 4, 11, 12, 13, 14]
    assert ids(ask(halves, ALL.format("orders"))) == [1, 2, 11, 12]
    found = ask(halves, ALL.format("orders"), beyond())
    assert ids(found) == everything
    assert found.revision.tables[0].tail == {A: 4, B: 4}
    cached = SteppedCache(halves, 0, beyond()).ask(SHOW)
    assert cached is not None and ids(cached) == everything
    names = ask(halves, 'select distinct "$segmentName" from orders where order_id in (3, 13)', beyond())
    assert sorted(one[0].rsplit("__", 2)[0] for one in names.rows) == ["orders__0", "orders__10000"]
    # The revision's tail is answered later from the commits that brought it: of one topic further than of the other.
    halves.commit_realtime(
        [row(3, 30, 2, key=A, segment=IN_A), *(row(10 + n, n * 10, n - 1, key=B, segment=IN_B) for n in (3, 4, 5))],
        offsets={A: 3, B: 5},
    )
    assert ids(ask(halves, ALL.format("orders"), beyond(), as_of=str(found.revision))) == everything


@pytest.mark.slow
def test_a_pause_holds_each_topic_at_its_own_offset(halves: Halves, ask: Ask) -> None:
    held = _Held(halves, {A.place: 3, B.place: 4})
    assert ids(ask(held, ALL.format("orders"), beyond())) == [1, 2, 3, 11, 12, 13, 14]
    cache = SteppedCache(held, 0, beyond())
    found = cache.ask(SHOW)
    assert found is not None and ids(found) == [1, 2, 3, 11, 12, 13, 14]
    assert cache.followed.follower.rows.shown == {A: 3, B: 4}


def test_a_check_up_tells_the_topics_apart(halves: Halves) -> None:
    state = halves.realtime
    files = open_half(halves.layout.half(Half.REALTIME)).files
    assert list(_uncommitted(SPEC.stream, state, files)) == []  # type: ignore[arg-type]
    [found] = _uncommitted(SPEC.stream, replace(state, offsets={A: 2, B: 1}), files)  # type: ignore[arg-type]
    assert found == f"Segment {IN_B} holds offset 1 of kafka/b/0/0, and 1 is the next one to read."


def test_a_file_is_pruned_by_the_frontier_of_its_own_topic(halves: Halves) -> None:
    snapshot = open_half(halves.layout.half(Half.REALTIME))
    frontier = EffectiveBoundary(100, {A: 1, B: 2})
    found = choose_realtime(SPEC, snapshot.files, frontier, list(snapshot.realtime.offsets), ())
    assert ({one.segment for one in found.read}, found.pruned) == ({IN_A}, {COVERED: 1})
    unnamed = [replace(one, segment="x") for one in snapshot.files]
    assert len(choose_realtime(SPEC, unnamed, frontier, list(snapshot.realtime.offsets), ()).read) == 2


@pytest.mark.kafka
@pytest.mark.parametrize("offset", [0, 9], ids=["expired", "refilled"])
def test_one_topic_that_lacks_offsets_does_not_take_the_tail_of_the_other(
    tmp_path: Path, ask: Ask, broker: str, topic: str, offset: int
) -> None:
    from kafka import KafkaAdminClient, TopicPartition

    other = f"{topic}-other"
    create_topic(broker, other)
    table = Halves.create(tmp_path, replace(SPEC, stream=StreamConfig((other, topic), "127.0.0.1:1")))
    table.brokers = broker
    produce(broker, other, value(1), value(2), value(3))
    produce(broker, topic, value(11), value(12))
    with closing(KafkaAdminClient(bootstrap_servers=broker)) as admin:
        admin.delete_records({TopicPartition(other, 0): 2})
    table.commit_realtime([], offsets={PartitionKey("kafka", other, 0, 0): offset})
    found = ask(table, SHOW, KafkaTail())
    assert ids(found) == [11, 12]
    [warning] = found.warnings
    assert f"artition 0 of topic '{other}'" in warning
    words = "no longer holds offset 0 of" if offset == 0 else "was read up to offset 9 and ends at 3"
    assert words in warning


@pytest.mark.kafka
def test_a_topic_that_kafka_refuses_is_a_warning(tmp_path: Path, ask: Ask, broker: str, topic: str) -> None:
    table = Halves.create(tmp_path, replace(SPEC, stream=StreamConfig((topic, "no/name"), "127.0.0.1:1")))
    table.brokers = broker
    produce(broker, topic, value(1))
    found = ask(table, SHOW, KafkaTail())
    [warning] = found.warnings
    assert ids(found) == [] and warning.startswith("Kafka refuses topic 'no/name': INVALID_TOPIC (error 17). Answered")


@pytest.mark.kafka
def test_both_are_followed_and_one_may_be_missing(tmp_path: Path, ask: Ask, broker: str, topic: str) -> None:
    spec = replace(SPEC, stream=StreamConfig(("not-there", topic), "127.0.0.1:1"))
    table = Source.create(tmp_path, spec)
    table.brokers = broker
    produce(broker, topic, value(1))
    assert ids(ask(table, SHOW, KafkaTail())) == [1]
    cache = Cache(table, tmp_path)
    try:
        awaited(lambda: shown(cache), [1])
        produce(broker, topic, value(2))
        awaited(lambda: shown(cache), [1, 2])
        key = PartitionKey("kafka", topic, 0, 0)
        stored = Row({"order_id": 1, "customer": "k", "amount": 1.5, "ts": 10}, 10, 0, key=key)
        version = table.commit_realtime([stored], offsets={key: 1})
        awaited(lambda: answer(cache, SHOW).revision.tables[0].realtime, version)  # type: ignore[union-attr]
        assert shown(cache) == [1, 2]
    finally:
        cache.close()
