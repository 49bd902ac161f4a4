"""Resets a table's stream: ingestion continues from the offsets that a person chose, under a new epoch (R2, R3).

Ingestion never does this by itself: it stops when offsets have expired or the topic was recreated, and stays stopped.
The reset is one commit to REALTIME. It seals the consuming segments of the affected partitions and gives these a new
epoch, whose frontier is 0. So rows that were read before keep their coordinates, and no row of the new epoch counts as
moved before a move has taken it. What may happen in between, and the effect:

    killed before the commit      nothing has changed; ingestion stays stopped as before
    killed after it               done; repeating it finds the stream at that offset: nothing to do
    a batch is in progress        it holds the half's lock: the reset is planned on what it has committed
    a move planned before it      its frontier names the old epochs only; the new ones stay 0
    a move after it               takes the old epochs as far as they are committed, and the new ones as far as these
    rows in the tail              lie beyond the old epoch's offsets and are never committed: a server drops them when
                                  it follows the commit; a direct query starts at the new offsets
    a revision of the old tail    is refused if a part of it was never committed
    a place that was read before  the messages are read again. Their rows appear twice if no key identifies them. They
                                  are combined once more in a partial upsert. In a full upsert the newest row of a key
                                  wins over corrections of the rows that were read before
    a topic that was truncated    can continue anywhere: no row behind the truncation was read from the new log
    a partition that is gone      keeps its rows; a new one with its number is read from 0 in the new epoch
    a reset of a paused stream    the pause holds at the new start; until the commit at most at the old one, so that a
                                  crash in between lets nothing through
    a topic recreated once more   its id differs from the commit's: ingestion stops again; before the commit it differs
                                  from the accepted one
    changes after acceptance      the reset uses the accepted offsets or is refused, namely if it would cost more
    a replay of rejected rows     has its own epochs; those of its origin do not change
    another topic of the table    keeps its offsets, its epochs and its pause
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hybrid.config.connectors import KafkaStart, StartKind
from hybrid.config.table_config import Half, StreamConfig, TableSpec
from hybrid.errors import ConflictError, SpecError, StreamError, UsageError
from hybrid.ingest.batch import stream_of
from hybrid.ingest.plan import is_recreated, leader_epochs_at, reset_target, valid_positions
from hybrid.kafka.streams import StreamView, offsets_at, require_topics
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.runtime.json_values import capitalized
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.table.boundary import PartitionKey, TopicPartition, current_keys
from hybrid.table.state import RESET, RealtimeState, next_act


@dataclass(frozen=True)
class ResetPartition:
    """The reset of one partition, from next offset `position` to `to`. Counts are of offsets, which may be holes.

    `lost`: Kafka no longer holds them and they were not read. `skipped`: Kafka holds them and they are not read.
    `again`: they were read of this topic before, and are read once more.
    """

    partition: int
    epoch: int
    position: int
    to: int
    lost: int
    skipped: int
    again: int


@shown_as_sentence
@dataclass(frozen=True)
class ResetReport:
    """What a reset of one topic did or would do. `version` None: nothing was committed.

    `recreated`: the topic is a different one than was read before, so nothing is read again.
    """

    table: str
    topic: str
    topic_id: str
    recreated: bool
    partitions: tuple[ResetPartition, ...]
    lost: int
    skipped: int
    again: int
    version: int | None
    sentence: str
    dry_run: bool = False

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.version is not None

    def to_json(self) -> dict[str, object]:
        """The report as a JSON value."""
        return {**vars(self), "partitions": [vars(partition) for partition in self.partitions]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ResetReport:
        """The inverse of `to_json`. UsageError for any other value."""
        try:
            partitions = tuple(ResetPartition(**partition) for partition in value["partitions"])
            if any(type(number) is not int for partition in partitions for number in vars(partition).values()):
                raise TypeError
            return cls(**{**value, "partitions": partitions})
        except (KeyError, TypeError) as error:
            raise UsageError("'accepted' is not what a dry run of a reset has told.") from error


def resolve_reset(spec: TableSpec, layout: TableLayout, topic: str, place: KafkaStart) -> ResetReport:
    """The effect of resetting a topic to `place` now, for a person to accept. Needs no JVM.

    Raises StreamError when the topic does not hold the place, and NotFoundError when it is missing. Raises SpecError
    without a stream, and ConflictError before its connector has started.
    """
    stream = stream_of(spec)
    state = _started(spec, stream, open_half(layout.half(Half.REALTIME)).realtime)
    view = require_topics(stream, asked=state.known_leader_epochs(stream), needed=[topic])
    return _report(spec, state, view, topic, _offsets(stream, view, topic, place), dry_run=True)


def reset_stream(
    table: TableContext,
    accepted: ResetReport,
    *,
    act_id: str | None = None,
    holding: Callable[[ResetReport], None] = lambda _: None,
) -> ResetReport:
    """Continue a topic from the offsets of `accepted`. Calls `holding` with the final report before the commit.

    Raises ConflictError when changes since would make it cost more than was accepted. Other errors as `resolve_reset`.
    """
    stream = stream_of(table.spec)
    with table.lock(Half.REALTIME, with_spark=False) as half:
        snapshot = table.half(Half.REALTIME)
        state = _started(table.spec, stream, snapshot.realtime)
        view = require_topics(stream, asked=state.known_leader_epochs(stream), needed=[accepted.topic])
        report = plan_accepted(table.spec, state, view, accepted)
        if not report.partitions:
            return report
        holding(report)  # pause first, so that no rows pass: a hold that is too low only delays them
        after = _after(state, stream, view, report, act_id or new_act_id(RESET), table.bench.now_iso())
        version = half.commit_state(after, planned=snapshot.version)
    return replace(report, version=version)


def _started(spec: TableSpec, stream: StreamConfig, state: RealtimeState) -> RealtimeState:
    if not state.reads(stream):
        raise ConflictError(
            f"Connector '{stream.connector}' of '{spec.name}' has not started: there is nothing to reset.",
            hint=f"hybrid connector list {spec.name}",
        )
    return state


def plan_reset(
    stream: StreamConfig, state: RealtimeState, view: StreamView, topic: str, to: Mapping[int, int]
) -> tuple[ResetPartition, ...]:
    """The effect of resetting a topic to the offsets `to`, by partition, for each affected partition. Pure."""
    recreated = is_recreated(stream, state, view, topic)
    there = {place for place in view.ends if place.topic == topic}
    # Of a recreated topic also the partitions that no longer exist: their numbers may be created again.
    old = {key.place for key in state.offsets if (key.connector, key.topic) == (stream.connector, topic)}
    keys = current_keys(stream, there | (old if recreated else set()), state.offsets)
    still, partitions = valid_positions(stream, state, view), []
    for place, key in sorted(keys.items()):
        position, first = state.offsets.get(key, 0), view.starts.get(place, 0)
        same = still.get(place, position)  # behind a truncation the offsets belong to another log
        target = to.get(place.partition, first if recreated else position)
        if not recreated and target == position and (same == position or place.partition not in to):
            continue
        begin = 0 if recreated else same
        lost = max(0, min(first, target) - begin)
        skipped = max(0, target - max(begin, first))
        again = 0 if recreated else max(0, min(same, view.ends.get(place, 0)) - target)
        partitions.append(ResetPartition(place.partition, key.epoch + 1, position, target, lost, skipped, again))
    return tuple(partitions)


def plan_accepted(spec: TableSpec, state: RealtimeState, view: StreamView, accepted: ResetReport) -> ResetReport:
    """The effect of a reset to the accepted offsets now. Pure.

    Raises ConflictError when the topic or an epoch has changed, or when it would lose, skip or read again more than was
    accepted. Raises StreamError when Kafka no longer holds an offset.
    """
    topic = accepted.topic
    accepted_partitions = {partition.partition: partition for partition in accepted.partitions}
    offsets = {number: partition.to for number, partition in accepted_partitions.items()}
    report = _report(spec, state, view, topic, offsets)
    is_same = (accepted.table, accepted.topic_id) == (spec.name, view.topic_ids[topic])
    if not is_same or not all(
        _is_within(partition, accepted_partitions.get(partition.partition)) for partition in report.partitions
    ):
        now = _sentence(spec, replace(report, dry_run=True))
        raise ConflictError(
            f"The stream of '{spec.name}' is not as it was when its reset was accepted. Now: {now} Nothing was "
            "changed.",
            hint=f"hybrid connector reset {reset_target(spec.name, stream_of(spec), topic)} --to PLACE once more; "
            "a running stream is paused first.",
        )
    _check_held(
        view, topic, {number: to for number, to in offsets.items() if TopicPartition(topic, number) in view.ends}
    )
    return report


def _is_within(one: ResetPartition, told: ResetPartition | None) -> bool:
    """Whether the effect on a partition is the accepted one and costs no more."""
    if told is None or one.epoch != told.epoch:
        return False
    return one.lost <= told.lost and one.skipped <= told.skipped and one.again <= told.again


def _report(
    spec: TableSpec,
    state: RealtimeState,
    view: StreamView,
    topic: str,
    offsets: Mapping[int, int],
    *,
    dry_run: bool = False,
) -> ResetReport:
    stream = stream_of(spec)
    partitions = plan_reset(stream, state, view, topic, offsets)
    lost, skipped, again = (
        sum(getattr(partition, name) for partition in partitions) for name in ("lost", "skipped", "again")
    )
    recreated = is_recreated(stream, state, view, topic)
    report = ResetReport(
        spec.name, topic, view.topic_ids[topic], recreated, partitions, lost, skipped, again, None, "", dry_run
    )
    return replace(report, sentence=_sentence(spec, report))


def _offsets(stream: StreamConfig, view: StreamView, topic: str, place: KafkaStart) -> dict[int, int]:
    """The offset of each partition that `place` names. StreamError for an offset that the topic does not hold."""
    starts, ends = _of_topic(view.starts, topic), _of_topic(view.ends, topic)
    if place.kind is StartKind.EARLIEST:
        return starts
    if place.kind is StartKind.LATEST:
        return ends
    if place.kind is StartKind.TIMESTAMP and place.timestamp_ms is not None:
        places = [TopicPartition(topic, number) for number in ends]
        return {**ends, **_of_topic(offsets_at(stream, places, place.timestamp_ms), topic)}
    if place.kind is not StartKind.OFFSETS:
        raise SpecError(f"'{place.kind}' is no place to reset a stream to.")
    offsets = {partition: offset for (_, partition), offset in place.offsets.items()}
    unread = sorted(offsets.keys() - set(stream.partitions)) if stream.partitions else []
    if unread:
        raise StreamError(
            f"The table does not read partition {unread[0]} of topic '{topic}': 'partitions' of connector "
            f"'{stream.connector}' names {', '.join(map(str, sorted(stream.partitions)))}. Nothing was changed."
        )
    _check_held(view, topic, offsets)
    return offsets


def _of_topic(offsets: Mapping[TopicPartition, int], topic: str) -> dict[int, int]:
    """The offsets of one topic, by partition."""
    return {place.partition: offset for place, offset in offsets.items() if place.topic == topic}


def _check_held(view: StreamView, topic: str, offsets: Mapping[int, int]) -> None:
    """StreamError for an offset, by partition, that the topic does not hold."""
    for number, offset in sorted(offsets.items()):
        place = TopicPartition(topic, number)
        first, end = view.starts.get(place), view.ends.get(place)
        if first is None or end is None:
            there = ", ".join(map(str, sorted(_of_topic(view.ends, topic))))
            raise StreamError(f"Topic '{topic}' has no partition {number}: {there}. Nothing was changed.")
        if not first <= offset <= end:
            raise StreamError(
                f"Kafka holds offsets {first} to {end} of partition {number} of topic '{topic}', and not "
                f"{offset}. Nothing was changed."
            )


def _after(
    state: RealtimeState, stream: StreamConfig, view: StreamView, report: ResetReport, act_id: str, at: str
) -> RealtimeState:
    partitions = {TopicPartition(report.topic, partition.partition): partition for partition in report.partitions}
    before = current_keys(stream, partitions, state.offsets)
    keys: dict[PartitionKey, ResetPartition] = {
        before[place]._replace(epoch=partition.epoch): partition for place, partition in partitions.items()
    }
    detail = {
        "connector": stream.connector,
        "topic": report.topic,
        "topic_id": report.topic_id,
        "recreated": report.recreated,
        "result": report.sentence,
        "partitions": {str(key): vars(partition) for key, partition in keys.items()},
        **{name: getattr(report, name) for name in ("lost", "skipped", "again")},
    }
    closed, offsets = set(before.values()), {key: partition.to for key, partition in keys.items()}
    return replace(
        state,
        act=next_act(state, act_id, "reset", at, detail),
        offsets={**state.offsets, **offsets},
        complete_ms=None,
        leader_epochs={**state.leader_epochs, **leader_epochs_at(view, offsets)},
        topic_ids=state.with_ids(stream, {report.topic: report.topic_id}),
        consuming={key: segment for key, segment in state.consuming.items() if key not in closed},
        # Sequences continue, because segment names do not contain the epoch.
        sequences={
            **state.sequences,
            **{key: state.sequences.get(before[key.place], 0) for key in keys},
        },
    )


def _sentence(spec: TableSpec, report: ResetReport) -> str:
    topic = f"topic '{report.topic}'"
    if not report.partitions:
        return f"Nothing to reset: '{spec.name}' continues in {topic} from there already."
    verb = "would be read" if report.dry_run else "is read"
    offsets = ", ".join(f"{partition.partition}: {partition.to}" for partition in report.partitions)
    parts = [f"{capitalized(topic)} {verb} into '{spec.name}' from offset (by partition) {offsets}"]
    if report.recreated:
        parts.append("it is another topic than was read before: what it holds of that one's messages comes again")
    parts.append(f"{_offsets_are(report.lost)} gone from Kafka unread" if report.lost else "")
    parts.append(f"{_offsets_are(report.skipped)} skipped that Kafka holds" if report.skipped else "")
    if report.again:
        parts.append(f"{_offsets_are(report.again)} read again{_twice(spec)}")
    if not (report.lost or report.skipped or report.again):
        parts.append("nothing is skipped and nothing read again")
    return "; ".join(part for part in parts if part) + "."


def _twice(spec: TableSpec) -> str:
    """How reading rows again shows in the table, in words."""
    if spec.upsert is not None and spec.picks_winners:
        # A row that a backfill updated, or its delete marker, has the coordinates of the original row. A row with the
        # same comparison value that arrives in a later epoch wins over it. In dedup the first row stays.
        corrected = not spec.upsert.first_wins and Half.OFFLINE in spec.halves
        return ", and what backfills have updated or deleted of their rows is as it was" if corrected else ""
    return f", and their rows {'are folded once more: sums and lists grow' if spec.folds else 'are there twice then'}"


def _offsets_are(count: int) -> str:
    return f"{counted(count, 'offset')} {'is' if count == 1 else 'are'}"
