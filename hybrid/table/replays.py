"""Replays of rejected rows: the coordinates of replayed rows, and whether a message may be replayed. Pure.

A replayed row has the topic, partition, offset and Kafka timestamp of its origin, but a connector and an epoch of the
replay's own. The origin's offsets are committed already: under its own coordinates the boundary could cover a row that
no move has taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybrid.table.boundary import Offsets, PartitionKey

# No connector's name holds a slash, so none can be mistaken for a replay's.
REPLAY = "replay/"
# Above every epoch of streams and flows. File statistics name the epoch but not the connector, and pruning by them must
# not mistake a stream's file for a replay's.
FIRST_EPOCH = 1_000_000

_NUMBERED = re.compile(r"Record \d+ of (\d+): ")


def replay_connector(connector: str) -> str:
    """The connector of replayed rows, whose messages `connector` read."""
    return REPLAY + connector


def is_replay(key: PartitionKey) -> bool:
    """Whether a partition's key belongs to replays: nothing is read from it."""
    return key.connector.startswith(REPLAY)


def replay_key(committed: Offsets, origin: PartitionKey, first: int) -> PartitionKey:
    """The key for replayed rows of a partition; `first` is their lowest offset.

    Its epoch is the newest one, or the next where offsets at or beyond `first` are committed in that. So no frontier
    covers the rows: frontiers lie at or below the committed offsets.
    """
    name = replay_connector(origin.connector)
    same = (key for key in committed if key._replace(epoch=0) == PartitionKey(name, origin.topic, 0, origin.partition))
    newest = PartitionKey(name, origin.topic, max((key.epoch for key in same), default=FIRST_EPOCH), origin.partition)
    return newest if committed.get(newest, 0) <= first else newest._replace(epoch=newest.epoch + 1)


def nothing_was_brought(reasons: Sequence[str]) -> bool:
    """Whether all of a message was rejected; `reasons` are the reasons of all its rejected rows.

    The reason of one of several records says how many records there were; the others may be in the table.
    """
    match = _NUMBERED.match(reasons[0])
    return match is None or int(match[1]) == len(reasons)
