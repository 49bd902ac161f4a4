"""Homes that follow a warehouse and have only the tables that are pinned to their servers; all when they take over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.errors import ConflictError, MachineError, NotFoundError, StoreError
from hybrid.home.home import Home
from hybrid.operations.tables.drop import drop_table
from hybrid.operations.warehouse import follow, pull
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.sync import warehouse_status
from hybrid.operations.warehouse.writer_sign import SignGiver
from hybrid.rpc.table_verbs import table_list
from hybrid.serve.warehouse_keeper import Standby, Writer
from hybrid.store.published_definition import publish_definition
from tests.operations.pinned_homes import SERVERS, pinned_home, requests_counted, table_on
from tests.operations.warehouse_homes import (
    Killed,
    add,
    create,
    dying,
    mirror_of,
    open_home,
    segments,
    server,
    soon,
    url,
)
from tests.s3_server import needs_s3

__all__ = ["open_home", "server", "url"]  # fixtures
pytestmark = [pytest.mark.process, needs_s3]

FIRST, SECOND, THIRD = (table_on(SERVERS, each) for each in SERVERS)
ALL = sorted([FIRST, SECOND, THIRD])


@pytest.fixture
def writer(open_home: Callable[..., Home]) -> Home:
    home = open_home()
    for name in ALL:
        create(home, name)
    return home


def on_disk(home: Home) -> list[str]:
    """The tables that have data files in a home."""
    files = home.settings.warehouse.glob("[!.]*/*/*/*.parquet")
    return sorted({file.relative_to(home.settings.warehouse).parts[0] for file in files})


def test_a_follower_brings_its_tables_and_knows_of_the_others(
    writer: Home, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, whole = (
        pinned_home(tmp_path / "q1", url, 0),
        Home(replace(writer.settings, home=tmp_path / "q2"), writer.progress),
    )
    follower, follower_of_all = WarehouseFollower(first), WarehouseFollower(whole)
    follower.look()
    follower_of_all.look()
    assert first.table_names() == on_disk(first) == [FIRST] and first.remote.names() == {SECOND, THIRD}
    for name in ALL:
        add(writer, name, "c")
    with requests_counted(monkeypatch) as pinned:
        assert follower.look() == 1
    with requests_counted(monkeypatch) as unpinned:
        assert follower_of_all.look() == 3
    assert len(unpinned) == 3 * len(pinned), (unpinned, pinned)
    assert segments(first, FIRST) == segments(writer, FIRST) == segments(whole, FIRST) == ["a", "b", "c"]
    fourth = table_on(SERVERS, SERVERS[0], other_than=ALL)
    create(writer, fourth)
    drop_table(writer, SECOND)
    soon(follower)
    assert first.table_names() == on_disk(first) == sorted([FIRST, fourth]) and first.remote.names() == {THIRD}
    assert " 1 table is pinned to other servers." in pull_warehouse(first, beside_server=True).sentence
    assert first.table_names() == sorted([FIRST, fourth])


def test_what_a_home_says_of_tables_that_other_servers_hold(writer: Home, url: str, tmp_path: Path) -> None:
    home = pinned_home(tmp_path / "q1", url, 0)
    assert "2 tables are pinned to other servers" in pull_warehouse(home).sentence
    hybrid = Hybrid.of(home)
    assert [row[0] for row in hybrid.query("show tables").rows] == ALL
    listed = {table["name"]: table["bytes"] for table in table_list(hybrid, sizes=True)}
    assert sorted(listed) == ALL and listed[FIRST] > 0 and listed[SECOND] is listed[THIRD] is None
    for ask in (
        lambda: hybrid.query(f"select count(*) from {FIRST}, {SECOND}"),
        lambda: hybrid.explain(f"select count(*) from {SECOND}_OFFLINE"),
        lambda: hybrid.query(f"describe {SECOND}"),
        lambda: hybrid.table(SECOND),
    ):
        with pytest.raises(Exception, match=f"'{SECOND}' is not in this home: it is pinned to {SERVERS[1]}") as error:
            ask()
        assert SERVERS[1] in str(error.value.hint)
    with pytest.raises(NotFoundError, match="does not exist"):
        hybrid.table("orders")
    shown = {table.table: (table.is_here, table.servers) for table in warehouse_status(home).pinned}
    assert shown == {FIRST: (True, SERVERS[:1]), SECOND: (False, SERVERS[1:2]), THIRD: (False, SERVERS[2:])}


def test_another_list_of_servers_moves_tables(writer: Home, url: str, tmp_path: Path) -> None:
    """The server is started again with another list: what it loses is removed, what it gains is brought."""
    folder = tmp_path / "q"
    follower = WarehouseFollower(pinned_home(folder, url, 0))
    follower.look()
    home = pinned_home(folder, url, 1)
    follower = WarehouseFollower(home)
    follower.look()
    assert home.table_names() == [SECOND] and home.remote.names() == {FIRST, THIRD}
    assert on_disk(home) == sorted([FIRST, SECOND]), "a statement that began before may still read the files"
    follower._pinned = replace(follower._pinned, read_s=0.0)
    soon(follower)
    assert on_disk(home) == [SECOND] and not list(home.settings.warehouse.glob(".unpinned*"))
    home = pinned_home(folder, url, 1, together=f"{SECOND},{FIRST}")
    WarehouseFollower(home).look()
    assert on_disk(home) == home.table_names() == sorted([FIRST, SECOND])
    home = Home(replace(writer.settings, home=folder), writer.progress)  # without the setting
    WarehouseFollower(home).look()
    assert on_disk(home) == home.table_names() == ALL and not home.remote.names()
    assert all(segments(home, name) == ["a", "b"] for name in ALL)


def test_a_table_that_left_is_removed_at_once_when_rows_of_it_are_purged(
    writer: Home, url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "q"
    WarehouseFollower(pinned_home(folder, url, 0)).look()
    home = pinned_home(folder, url, 1)
    follower = WarehouseFollower(home)
    follower.look()
    assert on_disk(home) == sorted([FIRST, SECOND])
    publish_definition(mirror_of(writer), writer.layout(FIRST).root, purge="purge-1")
    soon(follower)
    assert on_disk(home) == [SECOND]


def test_a_table_that_cannot_be_listed_as_remote_stays(writer: Home, url: str, tmp_path: Path) -> None:
    whole = Home(replace(writer.settings, home=tmp_path / "q"), writer.progress)
    pull_warehouse(whole)
    mirror_of(writer).client.upload(f"{SECOND}/definition.json", b"{")
    home = pinned_home(tmp_path / "q", url, 0)
    WarehouseFollower(home).look()
    assert home.table_names() == sorted([FIRST, SECOND]) and home.remote.names() == {THIRD}
    assert segments(home, SECOND) == ["a", "b"]


def test_a_take_over_brings_all_tables(writer: Home, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed behind the first table; the server of the home ends it, and writes all tables."""
    home = pinned_home(tmp_path / "q1", url, 0)
    pull_warehouse(home)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        dying(patch, pull, "pull_table", at=1)
        pull_warehouse(home, take_over=True)
    assert home.remote.names(), "until all is here, the servers that hold the rest are asked"
    keeper = Writer(home, mirror_of(home), threading.Event())
    keeper.turn()
    assert keeper._sync is not None
    keeper._sync.join()
    assert home.table_names() == on_disk(home) == ALL and not home.remote.names()
    for name in ALL:
        add(home, name, "c")
        with pytest.raises(ConflictError, match="written by another home"):
            add(writer, name, "late")
    former = pinned_home(tmp_path / "a", url, 2)
    WarehouseFollower(former).look()
    assert former.table_names() == [THIRD] and segments(former, THIRD) == ["a", "b", "c"]


def test_a_standby_brings_all_tables_before_it_takes_over(
    writer: Home, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the sign of life comes back meanwhile, then store and disk fail, then it takes over."""
    home = pinned_home(tmp_path / "q1", url, 0, HYBRID_TAKE_OVER_AFTER_S="9")
    sign = SignGiver(writer, mirror_of(writer))
    standby = Standby(home, mirror_of(home), threading.Event())
    follower, bring_all = standby._follower, standby._follower.bring_all
    assert standby._watch is not None
    standby._watch._silent_s = 1.2

    def turn_until(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline
            standby._watched_at = follower._listed_at = -100.0
            standby.turn()
            time.sleep(0.2)

    def bring_while_the_sign_comes_back() -> None:
        bring_all()
        sign.give()

    sign.give()
    assert not standby.knows_tables, "a server that is ready does not deny its tables"
    turn_until(lambda: home.definitions.names() == [FIRST])
    assert standby.knows_tables
    with monkeypatch.context() as patch:
        patch.setattr(follower, "bring_all", bring_while_the_sign_comes_back)
        turn_until(lambda: home.definitions.names() == ALL)
        turn_until(lambda: home.definitions.names() == [FIRST])
    assert home.remote.names() == {SECOND, THIRD} and not mirror_of(home).ownership.is_mine()
    for error in (StoreError("silent"), MachineError("the disk is full")):
        with monkeypatch.context() as patch, pytest.raises(type(error)):
            patch.setattr(follow, "pull_table", Mock(side_effect=error))
            turn_until(lambda: False)
        assert not follower.has_all and not mirror_of(home).ownership.is_mine()
    turn_until(lambda: standby.has_changed_hands)
    assert home.table_names() == on_disk(home) == ALL and not home.remote.names()
    add(home, THIRD, "c")
