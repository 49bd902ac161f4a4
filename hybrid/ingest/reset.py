"""Resets a table's stream: from which offsets it is read on, as a person decided, under a new epoch (R2, R3).

Ingestion never does this by itself: it stops where offsets have expired or the topic is another one, and stays stopped.
The decision is one act on REALTIME. It closes the consuming segments of the partitions concerned and gives these a new
epoch, whose frontier is 0. So what was read before keeps its coordinates, and nothing of the new epoch is covered
before a move has taken it. What could come between, and what holds then:

    killed before the commit      nothing has changed; ingestion stands still as before
    killed after it               done; once more finds that the stream stands there: nothing to do
    a batch is under way          it holds the half's lock: the reset is planned on what it has committed
    a move planned before it      its frontier names the old epochs only; the new ones stay 0
    a move after it               takes the old epochs as far as they are committed, and the new ones as far as these
    rows in the tail              lie beyond the old epoch's offsets, which no commit ever brings: a server drops them
                                  when it follows the act, a query of its own begins at the new ones
    a revision of the old tail    is refused where a part of it was never committed
    a place that was read before  the messages are read again: their rows stand twice where no key tells them apart, and
                                  are folded once more where rows of a key are folded; where the newest row of a key is
                                  seen they win over corrections in the place of what was read
    a topic that was truncated    goes on anywhere: what lies behind the cut is another log's, and no row of it was read
    a partition that is gone      keeps its rows; should one of its number come, it is read from 0 in the new epoch
    a reset of a paused stream    the pause holds it where it begins; until the commit no later than before, so that
                                  a death in between lets nothing through
    a topic recreated once more   its id is another one than the act names: ingestion stops again; before the commit it
                                  is not what was accepted
    anything after the answer     the offsets that were accepted are taken, or nothing: refused where it would cost more
    a replay of rejected rows     has epochs of its own; those of its origin stay what they were
    another topic of the table    keeps its offsets, its epochs and a pause's hold on it
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
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.progress import counted
from hybrid.runtime.json_values import capitalized
from hybrid.table.boundary import PartitionKey, TopicPartition, current_keys
from hybrid.table.state import RESET, RealtimeState, next_act


@dataclass(frozen=True)
class ResetPartition:
    """One partition: `position` was the next offset to read, `to` is. Counts are of offsets, which may be holes.

    `lost`: Kafka no longer holds them and they were not read; `skipped`: it does, and they are not read; `again`: they
    lie below what was read of this topic, and are read once more.
    """

    partition: int
    epoch: int
    position: int
    to: int
    lost: int
    skipped: int
    again: int


@dataclass(frozen=True)
class ResetReport:
    """What a reset of one topic did or would do. `version` None: nothing was committed.

    `recreated`: the topic is another one than was read, of which nothing can be read again.
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

    def to_json(self) -> dict[str, object]:
        """As a JSON value."""
        return {**vars(self), "partitions": [vars(one) for one in self.partitions]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ResetReport:
        """What `to_json` gave. UsageError for anything else."""
        try:
            partitions = tuple(ResetPartition(**one) for one in value["partitions"])
            if any(type(number) is not int for one in partitions for number in vars(one).values()):
                raise TypeError
            return cls(**{**value, "partitions": partitions})
        except (KeyError, TypeError) as error:
            raise UsageError("'accepted' is not what a dry run of a reset has told.") from error


def resolve_reset(spec: TableSpec, layout: TableLayout, topic: str, place: KafkaStart) -> ResetReport:
    """What a reset of a topic to `place` would do at this moment, for a person to accept. No JVM.

    StreamError when the topic does not hold the place, NotFoundError when it is missing, SpecError without a stream,
    ConflictError before its connector has started.
    """
    stream = stream_of(spec)
    state = _started(spec, stream, open_half(layout.half(Half.REALTIME)).realtime)
    view = require_topics(stream, asked=state.known_leader_epochs(stream), needed=[topic])
    return _report(spec, state, view, topic, _offsets(stream, view, topic, place), dry_run=True)


def reset_stream(
    bench: CommitContext,
    spec: TableSpec,
    layout: TableLayout,
    accepted: ResetReport,
    *,
    act_id: str | None = None,
    holding: Callable[[ResetReport], None] = lambda _: None,
) -> ResetReport:
    """Has a topic read on from the offsets of `accepted`; `holding` is told before the commit what it will be.

    ConflictError when it would cost more than was accepted, for what came between. Else as `resolve_reset`.
    """
    stream, path = stream_of(spec), layout.half(Half.REALTIME)
    with bench.lock(layout, Half.REALTIME):
        snapshot = open_half(path)
        state = _started(spec, stream, snapshot.realtime)
        view = require_topics(stream, asked=state.known_leader_epochs(stream), needed=[accepted.topic])
        report = plan_accepted(spec, state, view, accepted)
        if not report.partitions:
            return report
        holding(report)  # first, for a pause must never let rows through: held lower than need be they come later
        after = _after(state, stream, view, report, act_id or new_act_id(RESET), bench.now_iso())
        nothing = bench.spark.read.format("delta").load(str(path)).limit(0)
        version = commit_act(nothing, path, after, planned=snapshot.version)
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
    """What a reset of a topic to the offsets `to`, by partition, does to each partition that it concerns. Pure."""
    recreated = is_recreated(stream, state, view, topic)
    there = {place for place in view.ends if place.topic == topic}
    # Of a topic that is another one also those that it no longer has: their numbers may come back.
    old = {key.place for key in state.offsets if (key.connector, key.topic) == (stream.connector, topic)}
    keys = current_keys(stream, there | (old if recreated else set()), state.offsets)
    still, found = valid_positions(stream, state, view), []
    for place, key in sorted(keys.items()):
        position, first = state.offsets.get(key, 0), view.starts.get(place, 0)
        same = still.get(place, position)  # of a truncated partition what lies behind it is another log's
        target = to.get(place.partition, first if recreated else position)
        if not recreated and target == position and (same == position or place.partition not in to):
            continue
        begin = 0 if recreated else same
        lost = max(0, min(first, target) - begin)
        skipped = max(0, target - max(begin, first))
        again = 0 if recreated else max(0, min(same, view.ends.get(place, 0)) - target)
        found.append(ResetPartition(place.partition, key.epoch + 1, position, target, lost, skipped, again))
    return tuple(found)


def plan_accepted(spec: TableSpec, state: RealtimeState, view: StreamView, accepted: ResetReport) -> ResetReport:
    """What a reset to the offsets that were accepted does now. Pure.

    ConflictError when the topic or an epoch is another one since, or it would lose, skip or read again more;
    StreamError when Kafka no longer holds an offset.
    """
    topic = accepted.topic
    told = {one.partition: one for one in accepted.partitions}
    offsets = {number: one.to for number, one in told.items()}
    report = _report(spec, state, view, topic, offsets)
    is_same = (accepted.table, accepted.topic_id) == (spec.name, view.topic_ids[topic])
    if not is_same or not all(_is_within(one, told.get(one.partition)) for one in report.partitions):
        now = _sentence(spec, replace(report, dry_run=True))
        raise ConflictError(
            f"The stream of '{spec.name}' is not as it was when its reset was accepted. Now: {now} Nothing was "
            "changed.",
            hint=f"hybrid connector reset {reset_target(spec.name, stream_of(spec), topic)} --to PLACE once more; "
            "a stream that goes on is paused first.",
        )
    _check_held(
        view, topic, {number: to for number, to in offsets.items() if TopicPartition(topic, number) in view.ends}
    )
    return report


def _is_within(one: ResetPartition, told: ResetPartition | None) -> bool:
    """Whether what would be done to a partition is what was told of it, and costs no more."""
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
    found = plan_reset(stream, state, view, topic, offsets)
    lost, skipped, again = (sum(getattr(one, name) for one in found) for name in ("lost", "skipped", "again"))
    recreated = is_recreated(stream, state, view, topic)
    report = ResetReport(
        spec.name, topic, view.topic_ids[topic], recreated, found, lost, skipped, again, None, "", dry_run
    )
    return replace(report, sentence=_sentence(spec, report))


def _offsets(stream: StreamConfig, view: StreamView, topic: str, place: KafkaStart) -> dict[int, int]:
    """The offset of each partition that `place` names. StreamError for one that the topic does not hold."""
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
    found = {partition: offset for (_, partition), offset in place.offsets.items()}
    unread = sorted(found.keys() - set(stream.partitions)) if stream.partitions else []
    if unread:
        raise StreamError(
            f"The table does not read partition {unread[0]} of topic '{topic}': 'partitions' of connector "
            f"'{stream.connector}' names {', '.join(map(str, sorted(stream.partitions)))}. Nothing was changed."
        )
    _check_held(view, topic, found)
    return found


def _of_topic(offsets: Mapping[TopicPartition, int], topic: str) -> dict[int, int]:
    """The offsets of one topic, by partition."""
    return {place.partition: offset for place, offset in offsets.items() if place.topic == topic}


def _check_held(view: StreamView, topic: str, offsets: Mapping[int, int]) -> None:
    """StreamError for an offset by partition that the topic does not hold."""
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
    told = {TopicPartition(report.topic, one.partition): one for one in report.partitions}
    before = current_keys(stream, told, state.offsets)
    keys: dict[PartitionKey, ResetPartition] = {
        before[place]._replace(epoch=one.epoch): one for place, one in told.items()
    }
    detail = {
        "connector": stream.connector,
        "topic": report.topic,
        "topic_id": report.topic_id,
        "recreated": report.recreated,
        "result": report.sentence,
        "partitions": {str(key): vars(one) for key, one in keys.items()},
        **{name: getattr(report, name) for name in ("lost", "skipped", "again")},
    }
    closed, offsets = set(before.values()), {key: one.to for key, one in keys.items()}
    return replace(
        state,
        act=next_act(state, act_id, "reset", at, detail),
        offsets={**state.offsets, **offsets},
        leader_epochs={**state.leader_epochs, **leader_epochs_at(view, offsets)},
        topic_ids=state.with_ids(stream, {report.topic: report.topic_id}),
        consuming={key: segment for key, segment in state.consuming.items() if key not in closed},
        # Names of segments go on: they do not tell the epoch.
        sequences={
            **state.sequences,
            **{key: state.sequences.get(before[key.place], 0) for key in keys},
        },
    )


def _sentence(spec: TableSpec, report: ResetReport) -> str:
    topic = f"topic '{report.topic}'"
    if not report.partitions:
        return f"Nothing to reset: '{spec.name}' goes on in {topic} from there already."
    verb = "would be read" if report.dry_run else "is read"
    offsets = ", ".join(f"{one.partition}: {one.to}" for one in report.partitions)
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
    """What becomes of rows that are read again, where it shows."""
    if spec.upsert is not None and spec.picks_winners:
        # A row that a backfill changed, or a marker in its place, has the coordinates of the row that was: one of the
        # same comparison value that arrives in a later epoch wins over it. In dedup the first one stays.
        corrected = not spec.upsert.first_wins and Half.OFFLINE in spec.halves
        return ", and what backfills have updated or deleted of their rows is as it was" if corrected else ""
    return f", and their rows {'are folded once more: sums and lists grow' if spec.folds else 'stand twice then'}"


def _offsets_are(count: int) -> str:
    return f"{counted(count, 'offset')} {'is' if count == 1 else 'are'}"
