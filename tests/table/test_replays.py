"""Under which coordinates rejected rows come back, and which messages may come at all."""

import pytest

from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.replays import FIRST_EPOCH, is_replay, nothing_was_brought, replay_key

ORIGIN = PartitionKey("kafka", "orders", 0, 1)


def key(epoch: int, **more: object) -> PartitionKey:
    return PartitionKey("replay/kafka", "orders", FIRST_EPOCH + epoch, 1)._replace(**more)


@pytest.mark.parametrize(
    ("committed", "first", "epoch"),
    [
        ({}, 0, 0),
        ({ORIGIN: 100}, 7, 0),
        ({key(0): 7}, 7, 0),  # all that was committed lies below
        ({key(0): 8}, 7, 1),
        ({key(0): 90, key(1): 7}, 7, 1),
        ({key(0): 90, key(1): 50}, 20, 2),
        ({key(0, partition=2): 90, key(0, topic="others"): 90, key(0, connector="replay/live"): 90}, 7, 0),
    ],
)
def test_the_epoch_of_a_replay(committed: dict[PartitionKey, int], first: int, epoch: int) -> None:
    found = replay_key(committed, ORIGIN, first)
    assert found == key(epoch) and is_replay(found) and not is_replay(ORIGIN)
    boundary = Boundary(1000, committed)
    assert not boundary.covers(0, found, first), "no frontier can cover it: that is never past what is committed"


def test_its_key_is_read_back() -> None:
    for found in (ORIGIN, key(3)):
        assert PartitionKey.parse(str(found)) == found


@pytest.mark.parametrize(
    ("reasons", "nothing"),
    [
        (["The message is not UTF-8: byte 0 does not fit."], True),
        (["Record 2 of 3: Column 'id': 1.5 does not fit."], False),
        (["Record 1 of 2: no", "Record 2 of 2: no"], True),
        (["Record 1 of 10: no", "Record 2 of 10: no"], False),
    ],
)
def test_a_message_of_which_records_are_in_the_table(reasons: list[str], nothing: bool) -> None:
    assert nothing_was_brought(reasons) is nothing
