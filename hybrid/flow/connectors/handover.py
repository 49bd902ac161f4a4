"""The start of a live connector: the offset of each partition, and errors in it. Pure.

A start is checked against the topic and against the history loaded before it. Offsets between both would be missing (a
gap); offsets in both would be in the table twice (an overlap).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hybrid.config.connectors import KafkaStart, StartKind
from hybrid.errors import SpecError, StreamError
from hybrid.table.boundary import TopicPartition


@dataclass(frozen=True)
class TopicOffsets:
    """Offsets that Kafka holds of a connector's topics: first and last stable offset (exclusive) by partition."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]

    @property
    def topics(self) -> set[str]:
        """Topics with a partition that is read."""
        return {place.topic for place in self.ends}


def start_offsets(
    connector: str,
    start: KafkaStart,
    held: TopicOffsets,
    loaded: Mapping[str, int] | None,
    at_time: Mapping[TopicPartition, int] | None = None,
    is_whole: bool = True,
    tells_all: bool = True,
) -> dict[TopicPartition, int]:
    """The offset to read first, by partition.

    `loaded` are the highest offsets in the history, by `topic/partition`; None: it has none. `at_time` is the first
    offset at the start's timestamp. `is_whole` says that no more history will be loaded. `tells_all` says that all its
    rows are known to be of these topics, each with its offset (see `tells_all_of`).

    SpecError when the start does not name every partition. StreamError when a topic does not hold, or no longer holds,
    an offset, or when there is a gap or an overlap.
    """
    before = _of_topics(held, loaded)
    offsets = _wanted(connector, start, held, before, at_time, tells_all=tells_all)
    for place, offset in sorted(offsets.items()):
        _check_held(connector, held, place, offset)
    if start.kind is StartKind.OFFSETS and before is not None:
        _check_seam(connector, offsets, before, is_whole)
    return offsets


def tells_all_of(topics: Collection[str], offsets: Mapping[str, int] | None) -> bool:
    """Whether all rows of a history are known to be of `topics`; `offsets` are its highest, by `topic/partition`.

    Without offsets they may be of any topic. A topic may also have had another name in the history.
    """
    return bool(offsets) and all(key.rpartition("/")[0] in topics for key in offsets or {})


def _of_topics(held: TopicOffsets, loaded: Mapping[str, int] | None) -> dict[TopicPartition, int] | None:
    """The highest offsets of the topics by partition; None when the history has none of them."""
    offsets = {key: offset for key, offset in (loaded or {}).items() if key.rpartition("/")[0] in held.topics}
    return {TopicPartition.parse(key): offset for key, offset in offsets.items()} or None


def _wanted(
    connector: str,
    start: KafkaStart,
    held: TopicOffsets,
    loaded: Mapping[TopicPartition, int] | None,
    at_time: Mapping[TopicPartition, int] | None,
    *,
    tells_all: bool,
) -> dict[TopicPartition, int]:
    if start.kind is StartKind.EARLIEST:
        return dict(held.starts)
    if start.kind is StartKind.LATEST:
        return dict(held.ends)
    if start.kind is StartKind.TIMESTAMP:
        return {place: (at_time or {}).get(place, end) for place, end in held.ends.items()}
    if start.kind is StartKind.AFTER_HISTORY:
        if loaded is None:
            raise _untold(connector, "topic, partition and offset of its rows")
        of_none = sorted(held.topics - {place.topic for place in loaded})
        if of_none and not tells_all:  # rows without coordinates may be of this topic
            raise _untold(connector, f"for all of its rows that they are none of topic '{of_none[0]}'")
        # A partition, or one of several topics, that the history has no rows of is read from its beginning.
        return {place: loaded[place] + 1 if place in loaded else first for place, first in held.starts.items()}
    configured = {TopicPartition(*place): offset for place, offset in start.offsets.items()}
    for topic in sorted(held.topics | {place.topic for place in configured}):
        _check_every(connector, topic, held, configured)
    return configured


def _untold(connector: str, what: str) -> SpecError:
    return SpecError(
        f"Connector '{connector}' starts after the history, and the history that was loaded does not tell {what}. "
        "Nothing was read.",
        hint='Give the offsets: "start_from": {"offsets": [...]}',
    )


def _check_every(connector: str, topic: str, held: TopicOffsets, given: Mapping[TopicPartition, int]) -> None:
    there, named = ({place.partition for place in places if place.topic == topic} for places in (held.ends, given))
    missing, unknown = sorted(there - named), sorted(named - there)
    if missing:
        raise SpecError(
            f"Connector '{connector}': start_from names no offset for partition {_listed(missing)} of topic "
            f"'{topic}'; an offset must be given for every partition. Nothing was read.",
            hint="Name it, with 0 to read it from its beginning.",
        )
    if unknown:
        raise SpecError(
            f"Connector '{connector}': start_from names partition {_listed(unknown)}, and topic '{topic}' has "
            f"the partitions {_listed(sorted(there))}. Nothing was read.",
            hint="Take it out of start_from.",
        )


def _check_held(connector: str, held: TopicOffsets, place: TopicPartition, offset: int) -> None:
    first, end = held.starts[place], held.ends[place]
    where = f"partition {place.partition} of topic '{place.topic}'"
    if offset < first:
        raise StreamError(
            f"Connector '{connector}' starts at offset {offset} of {where}, and Kafka's first one there is {first}: "
            f"{first - offset} offsets are gone. Nothing was read.",
            hint=f"Load what is missing as history, then start from {first}.",
        )
    if offset > end:
        raise StreamError(
            f"Connector '{connector}' starts at offset {offset} of {where}, which ends at {end}: offsets {end} to "
            f"{offset - 1} would be skipped when they come. Nothing was read.",
            hint="Check the offset, and which cluster bootstrap.servers names.",
        )


def _check_seam(
    connector: str, offsets: Mapping[TopicPartition, int], loaded: Mapping[TopicPartition, int], is_whole: bool
) -> None:
    for place, offset in sorted(offsets.items()):
        last = loaded.get(place)
        if last is None:
            continue
        where = f"partition {place.partition} of topic '{place.topic}'"
        if offset <= last:
            raise StreamError(
                f"Connector '{connector}' starts at offset {offset} of {where}, and the history holds it up to "
                f"{last}: {last + 1 - offset} messages would be there twice. Nothing was read.",
                hint=f'Start at {last + 1}, or write "start_from": "after_history".',
            )
        if offset > last + 1 and is_whole:
            raise StreamError(
                f"Connector '{connector}' starts at offset {offset} of {where}, and the history ends at {last}: "
                f"offsets {last + 1} to {offset - 1} would be in neither. Nothing was read.",
                hint=f'Start at {last + 1}, or write "start_from": "after_history".',
            )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
