"""Where a live connector begins: the offset of each partition, and what is wrong with it. Pure.

A start is checked against what the topic holds and against the history that was loaded before it: what lies between
would be missing (a gap), what is in both would stand twice (an overlap).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.errors import SpecError, StreamError
from hybrid.spec.connectors import KafkaStart, StartKind


@dataclass(frozen=True)
class Topic:
    """What Kafka holds: first offset and last stable offset (exclusive) by partition."""

    name: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]


def start_offsets(
    connector: str,
    start: KafkaStart,
    topic: Topic,
    loaded: Mapping[str, int] | None,
    at_time: Mapping[int, int] | None = None,
    is_whole: bool = True,
) -> dict[int, int]:
    """The offset to read first, by partition.

    `loaded` are the highest offsets in the history, by `topic/partition` (None: it tells none); `at_time` is where
    messages of the start's timestamp begin; `is_whole` says that no more history comes before it.

    SpecError when the start does not name every partition, StreamError when the topic no longer holds, or does not
    hold yet, what it names, or where it leaves a gap or an overlap.
    """
    before = _of_topic(topic, loaded)
    offsets = _wanted(connector, start, topic, before, at_time)
    for partition, offset in sorted(offsets.items()):
        _check_held(connector, topic, partition, offset)
    if start.kind is StartKind.OFFSETS and before is not None:
        _check_seam(connector, topic, offsets, before, is_whole)
    return offsets


def _of_topic(topic: Topic, loaded: Mapping[str, int] | None) -> dict[int, int] | None:
    """The highest offsets of one topic by partition; None where the history has nothing of it."""
    found = {}
    for key, offset in (loaded or {}).items():
        name, _, partition = key.rpartition("/")
        if name == topic.name:
            found[int(partition)] = offset
    return found or None


def _wanted(
    connector: str,
    start: KafkaStart,
    topic: Topic,
    loaded: Mapping[int, int] | None,
    at_time: Mapping[int, int] | None,
) -> dict[int, int]:
    if start.kind is StartKind.EARLIEST:
        return dict(topic.starts)
    if start.kind is StartKind.LATEST:
        return dict(topic.ends)
    if start.kind is StartKind.TIMESTAMP:
        return {partition: (at_time or {}).get(partition, end) for partition, end in topic.ends.items()}
    if start.kind is StartKind.AFTER_HISTORY:
        if loaded is None:
            raise SpecError(
                f"Connector '{connector}' starts after the history, and the history that was loaded does not tell "
                "topic, partition and offset of its rows. Nothing was read.",
                hint='Give the offsets: "start_from": {"offsets": [...]}',
            )
        # A partition that history has nothing of is read from its beginning.
        return {
            partition: loaded[partition] + 1 if partition in loaded else first
            for partition, first in topic.starts.items()
        }
    given = {partition: offset for (name, partition), offset in start.offsets.items() if name == topic.name}
    _check_every(connector, topic, given)
    return given


def _check_every(connector: str, topic: Topic, given: Mapping[int, int]) -> None:
    missing, unknown = sorted(topic.ends.keys() - given.keys()), sorted(given.keys() - topic.ends.keys())
    if missing:
        raise SpecError(
            f"Connector '{connector}': start_from names no offset for partition {_listed(missing)} of topic "
            f"'{topic.name}'; an offset must be given for every partition. Nothing was read.",
            hint="Name it, with 0 to read it from its beginning.",
        )
    if unknown:
        raise SpecError(
            f"Connector '{connector}': start_from names partition {_listed(unknown)}, and topic '{topic.name}' has "
            f"the partitions {_listed(sorted(topic.ends))}. Nothing was read.",
            hint="Take it out of start_from.",
        )


def _check_held(connector: str, topic: Topic, partition: int, offset: int) -> None:
    first, end = topic.starts[partition], topic.ends[partition]
    where = f"partition {partition} of topic '{topic.name}'"
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
    connector: str, topic: Topic, offsets: Mapping[int, int], loaded: Mapping[int, int], is_whole: bool
) -> None:
    for partition, offset in sorted(offsets.items()):
        last = loaded.get(partition)
        if last is None:
            continue
        where = f"partition {partition} of topic '{topic.name}'"
        if offset <= last:
            raise StreamError(
                f"Connector '{connector}' starts at offset {offset} of {where}, and the history holds it up to "
                f"{last}: {last + 1 - offset} messages would stand twice. Nothing was read.",
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
