"""A snapshot made of an older one and the commits since is the one that the opened log gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import Half
from hybrid.lake.create import create_half
from hybrid.lake.log import HalfSnapshot, follow_half, open_half
from hybrid.lake.transaction import LogTransaction
from hybrid.table.state import Act, RealtimeState
from tests.every_type import every_type
from tests.lake.test_files import write
from tests.lake.test_transaction import COLUMNS, add, after, foreign, foreign_file, rows_of

MANY = 100


@pytest.fixture
def half(tmp_path: Path) -> Path:
    create_half(tmp_path / "REALTIME", every_type(), Half.REALTIME, RealtimeState(Act("create-0", 0, "create", "x")))
    return tmp_path / "REALTIME"


def same(followed: HalfSnapshot | None, opened: HalfSnapshot) -> bool:
    return (
        followed is not None
        and (followed.version, followed.state, followed.table_id) == (opened.version, opened.state, opened.table_id)
        and [vars(file) | stored(file.low, file.high) for file in followed.files]
        == [vars(file) | stored(file.low, file.high) for file in opened.files]
        and (followed.columns, followed.properties) == (opened.columns, opened.properties)
    )


def stored(*statistics: object) -> dict[str, object]:
    """The statistics without columns that have none, which an opened log lists as null."""
    low, high = ({name: value for name, value in dict(side).items() if value is not None} for side in statistics)  # type: ignore[call-overload]
    return {"low": low, "high": high}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_any_commits_of_ours(half: Path, seed: int) -> None:
    chance, followed = random.Random(seed), open_half(half)
    for number in range(12):
        segment = chance.choice("abc")
        held = [name for name in "abc" if any(file.segment == name for file in followed.files)]
        if held and chance.random() < 0.4:
            gone = chance.sample(held, chance.randint(1, len(held)))
            entries = [write(half, every_type(), rows_of(segment, number))] if chance.random() < 0.7 else []
            LogTransaction(half, COLUMNS).commit(after(half), entries, gone)
        else:
            add(half, segment, number)
        if chance.random() < 0.6:
            newest = follow_half(followed, MANY)
            assert same(newest, open_half(half))
            assert newest is not None
            followed = newest
    if followed.version < open_half(half).version:
        assert same(follow_half(followed, MANY), open_half(half))


@pytest.mark.slow
def test_what_asks_for_an_opened_log(half: Path) -> None:
    add(half, "a")
    first = open_half(half)
    assert first.files and follow_half(first, MANY) is None, "nothing follows"
    add(half, "b", 1)
    add(half, "b", 2)
    assert follow_half(first, 1) is None, "too many commits"
    assert same(follow_half(first, 2), open_half(half))
    foreign(half, foreign_file(half, "theirs"))
    assert follow_half(first, MANY) is None, "a commit of another tool"
    second = open_half(half)
    assert second.files
    DeltaTable(str(half)).alter.set_table_properties({"delta.appendOnly": "false"})
    assert follow_half(second, MANY) is None, "other properties"
