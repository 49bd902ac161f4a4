"""Replays of rejected rows: under which coordinates their rows come, and whether a message may come at all. Pure.

A replayed row has the topic, partition, offset and Kafka timestamp of its origin, under a connector and an epoch of the
replay's own. The offsets of its origin are committed already, so under its origin's own coordinates a boundary would
cover a row that nothing has moved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybrid.table.boundary import Offsets, PartitionKey

# No connector's name holds a slash, so none can be taken for a replay's.
REPLAY = "replay/"
# Above all that streams and flows count: a file's statistics name the epoch and not the connector, and what prunes
# files by them must not take a stream's for a replay's.
FIRST_EPOCH = 1_000_000

_NUMBERED = re.compile(r"Record \d+ of (\d+): ")


def replay_connector(connector: str) -> str:
    """The connector of rows that a replay brings of another connector's messages."""
    return REPLAY + connector


def is_replay(key: PartitionKey) -> bool:
    """Whether a partition's key is one of replays: nothing is read from it."""
    return key.connector.startswith(REPLAY)


def replay_key(committed: Offsets, origin: PartitionKey, first: int) -> PartitionKey:
    """The key of rows that a replay brings back of a partition, of which `first` is the lowest offset.

    It is the newest epoch that nothing has been committed of at or beyond `first`, else the next one: what a boundary's
    frontier has taken over lies below what is committed.
    """
    name = replay_connector(origin.connector)
    same = (key for key in committed if key._replace(epoch=0) == PartitionKey(name, origin.topic, 0, origin.partition))
    newest = PartitionKey(name, origin.topic, max((key.epoch for key in same), default=FIRST_EPOCH), origin.partition)
    return newest if committed.get(newest, 0) <= first else newest._replace(epoch=newest.epoch + 1)


def nothing_was_brought(reasons: Sequence[str]) -> bool:
    """Whether all of a message was rejected: `reasons` are those of all its rejected rows.

    The reason of one of several records says how many there were; the others may be in the table.
    """
    told = _NUMBERED.match(reasons[0])
    return told is None or int(told[1]) == len(reasons)
