"""Homes that follow a warehouse on a store, and stand by: what they bring, and when they take over."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, MachineError, StoreError
from hybrid.home.home import Home
from hybrid.operations.tables import drop
from hybrid.operations.tables.drop import drop_table, remove_copy, undrop_table
from hybrid.operations.tables.schemas import drop_schema, put_schema
from hybrid.operations.warehouse import follow, pull, writer_sign
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.pull import pull_warehouse, take_over_warehouse
from hybrid.operations.warehouse.writer_sign import SignGiver, SignWatch, read_sign
from hybrid.serve import warehouse_keeper
from hybrid.serve.warehouse_keeper import Writer
from hybrid.store.mirror import mirror_at
from tests.operations.warehouse_homes import DATA, Killed, add, create, dying, open_home, segments, server, soon, url
from tests.s3_server import needs_s3

__all__ = ["open_home", "server", "url"]  # fixtures
pytestmark = [pytest.mark.process, needs_s3]


def test_a_follower_sees_what_the_writer_does(open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    pull_warehouse(other)
    follower = WarehouseFollower(other)
    assert follower.look() == 0
    for segment in "cdefghijklm":  # a checkpoint, too
        add(home, "orders", segment)
    assert follower.look() == 11 and segments(other) == segments(home)
    create(home, "second", ("x",))
    undropped = create(home, "third", ("y",))
    follower._listed_at = -100.0
    follower.look()
    assert segments(other, "second") == ["x"]
    drop_table(home, "second")
    drop_table(home, "third", purge=True)
    create(home, "third", ("again",))
    assert undropped.exists()
    follower._listed_at = -100.0
    follower.look()
    assert other.definitions.names() == ["orders", "third"] and segments(other, "third") == ["again"]
    pull_warehouse(other, take_over=True)
    follower._listed_at = -100.0
    with pytest.raises(ConflictError, match="This home writes"):
        follower.look()


def test_a_copy_that_is_purged_keeps_what_the_live_table_has(open_home: Callable[..., Home]) -> None:
    """A follower sets a table aside that is dropped, brings it again when it is back, and takes over."""
    home, other = open_home(), open_home("b")
    create(home)
    follower = WarehouseFollower(other)
    follower.look()
    drop_table(home, "orders")
    soon(follower)
    undrop_table(home, "orders")
    soon(follower)
    assert segments(other) == ["a", "b"] and len(drop.all_copies(other)) == 1
    pull_warehouse(other, take_over=True)
    remove_copy(drop.all_copies(other)[0])
    add(other, "orders", "c")
    third = open_home("c")
    pull_warehouse(third)
    assert segments(third) == segments(other) == ["a", "b", "c"]


def test_a_reading_home_removes_and_restores_nothing_of_the_stores(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    follower = WarehouseFollower(other)
    follower.look()
    drop_table(home, "orders")
    soon(follower)
    with pytest.raises(ConflictError, match="written by another home"):
        undrop_table(other, "orders")
    assert other.definitions.names() == []
    remove_copy(drop.all_copies(other)[0])
    undrop_table(home, "orders")
    soon(follower)
    assert segments(other) == segments(home) == ["a", "b"]


def test_one_damaged_table_keeps_no_other_from_being_followed(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    half = create(home)
    create(home, "second", ("x",))
    follower = WarehouseFollower(other)
    follower.look()
    mirror = mirror_at(half)
    assert mirror is not None
    mirror.client.upload(mirror.key_of(half, f"_delta_log/{3:020d}.json"), b'{"add"')
    add(home, "second", "y")
    assert follower.look() == 1 and segments(other, "second") == ["x", "y"]
    mirror.client.upload(mirror.key_of(half, f"_delta_log/{3:020d}.json"), b"\xff")
    add(home, "second", "z")
    assert follower.look() == 1 and segments(other, "second") == ["x", "y", "z"]


def test_a_follower_brings_checkpoints(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    follower = WarehouseFollower(other)
    follower.look()
    for number in range(60):
        add(home, "orders", f"s{number}")
    assert follower.look() == 60
    log = other.layout("orders").half(Half.OFFLINE) / "_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] >= 50
    assert segments(other) == segments(home)


def test_a_follower_that_lags_beyond_the_log_brings_the_table_whole(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    half = create(home)
    follower = WarehouseFollower(other)
    follower.look()
    for segment in "cdefghijkl":
        add(home, "orders", segment)
    mirror = mirror_at(half)
    assert mirror is not None
    for version in range(10):
        mirror.client.delete(mirror.key_of(half, f"_delta_log/{version:020d}.json"))
    assert follower.look() == 0
    soon(follower)
    assert segments(other) == segments(home)


def test_schemas_follow(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    document = {**json.loads((DATA / "orders_schema.json").read_text()), "schemaName": "alone"}
    put_schema(home, document, "s")
    pull_warehouse(other)
    path = other.settings.warehouse / ".schemas" / "alone.json"
    assert path.exists()
    drop_schema(home, "alone")
    pull_warehouse(other)
    assert not path.exists()


def test_a_sign_of_life_tells_pauses_and_is_missed(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    pull_warehouse(other)
    ours, theirs = mirror_at(home.settings.warehouse), mirror_at(other.settings.warehouse)
    assert ours is not None and theirs is not None
    now_s = time.monotonic()
    monkeypatch.setattr(writer_sign, "time", Mock(monotonic=lambda: now_s))
    watch = SignWatch(theirs, silent_s=1)  # in truth 9: not before three signs were left out

    def is_silent_after(seconds: float) -> bool:
        nonlocal now_s
        now_s += seconds
        return watch.silent_claim() is not None

    assert not is_silent_after(4), "without any sign nobody takes over"
    home.catalog.serving.pause("orders", "for a while")
    giver = SignGiver(home, ours)
    for _ in range(3):
        giver.give()
        assert not is_silent_after(4)
    assert [is_silent_after(3) for _ in range(4)] == [False, False, True, True]
    assert not is_silent_after(5), "the watch itself was away"
    pull_warehouse(other, take_over=True)
    assert other.catalog.serving.pauses()["orders"].comment == "for a while"
    assert not any(is_silent_after(4) for _ in range(4)), "the new writer has given no sign yet"
    SignGiver(other, theirs).give()
    other.catalog.serving.resume("orders")
    SignGiver(other, theirs).give()
    pull_warehouse(home, take_over=True)
    assert home.catalog.serving.pauses() == {}, "what was resumed there is resumed here"


def test_of_two_standbys_one_takes_over(open_home: Callable[..., Home]) -> None:
    home, second, third = (open_home(name) for name in "abc")
    create(home)
    mirror = mirror_at(second.settings.warehouse)
    assert mirror is not None
    for standby in (second, third):
        pull_warehouse(standby)
    claim = mirror.ownership.look()
    assert claim is not None
    take_over_warehouse(second, expected=claim)
    with pytest.raises(ConflictError, match="written by another home"):
        take_over_warehouse(third, expected=claim)
    add(second, "orders", "c")
    pull_warehouse(third)
    assert segments(third) == ["a", "b", "c"]


def test_a_server_ends_a_take_over_that_was_cut_short(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    home.catalog.serving.pause("orders", "hold")
    mirror = mirror_at(other.settings.warehouse)
    ours = mirror_at(home.settings.warehouse)
    assert mirror is not None and ours is not None
    SignGiver(home, ours).give()
    pull_warehouse(other)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        dying(patch, pull, "published_tables")
        pull_warehouse(other, take_over=True)
    writer = Writer(other, mirror, threading.Event())
    writer.turn()
    assert writer._sync is not None
    writer._sync.join()
    assert writer._is_synced and "orders" in other.catalog.serving.pauses()
    add(other, "orders", "c")
    with pytest.raises(ConflictError, match="written by another home"):
        add(home, "orders", "late")


def test_a_damaged_definition_keeps_nobody_from_taking_over(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    create(home, "bad")
    mirror = mirror_at(home.settings.warehouse)
    assert mirror is not None
    mirror.client.upload("bad/definition.json", b"{")
    follower = WarehouseFollower(other)
    follower.look()
    assert segments(other) == ["a", "b"] and other.definitions.names() == ["orders"]
    soon(follower)
    pull_warehouse(other, take_over=True)
    add(other, "orders", "c")
    with pytest.raises(ConflictError, match="written by another home"):
        add(home, "orders", "late")


def test_a_server_ends_the_drop_of_the_only_table(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    create(home)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(type(home.definitions), "withdraw", lambda *_: (_ for _ in ()).throw(Killed))
        drop_table(home, "orders")
    mirror = mirror_at(home.settings.warehouse)
    assert mirror is not None
    writer = Writer(home, mirror, threading.Event())
    writer.turn()
    assert writer._sync is not None
    writer._sync.join()
    assert home.definitions.published("orders") is None and read_sign(mirror) is not None


def test_a_log_that_is_brought_as_a_whole_is_there_all_the_time(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store falls silent while the checkpoints are downloaded: what is here still answers."""
    home, other = open_home(), open_home("b")
    half = create(home)
    pull_warehouse(other)
    for segment in "cdefghijkl":
        add(home, "orders", segment)
    mirror, theirs = mirror_at(half), mirror_at(other.settings.warehouse)
    assert mirror is not None and theirs is not None
    for version in range(10):
        mirror.client.delete(mirror.key_of(half, f"_delta_log/{version:020d}.json"))
    fetch = type(theirs).fetch

    def silent(self: Any, key: str, path: Path, size: int | None = None) -> bool:
        if "checkpoint" in key:
            raise StoreError("silent", fault="unreachable")
        return fetch(self, key, path, size)

    with monkeypatch.context() as patch, pytest.raises(StoreError):
        patch.setattr(type(theirs), "fetch", silent)
        pull_warehouse(other)
    assert segments(other) == ["a", "b"]
    pull_warehouse(other)
    assert segments(other) == segments(home)


def test_a_sign_is_given_without_the_catalog_and_beside_a_sync_that_fails(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    half = create(home)
    home.catalog.serving.pause("orders")
    mirror = mirror_at(half)
    assert mirror is not None
    writer = Writer(home, mirror, threading.Event())
    writer.turn()

    def fails(*_: object) -> None:
        raise MachineError("The catalog does not answer.")

    signs = [read_sign(mirror)]
    with monkeypatch.context() as patch:
        patch.setattr(type(home.catalog.serving), "pauses", fails)
        writer.turn()
        signs.append(read_sign(mirror))
    monkeypatch.setattr(warehouse_keeper, "sync_warehouse", fails)
    failing = Writer(home, mirror, threading.Event())
    failing.turn()
    signs.append(read_sign(mirror))
    assert failing._sync is not None
    failing._sync.join()
    assert not failing._is_synced, "the next turn tries again"
    assert all(sign is not None and list(sign.pauses or ()) == ["orders"] for sign in signs)
    assert len({sign.sign for sign in signs if sign is not None}) == 3


def test_both_halves_are_brought_as_they_were_at_one_moment(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch and its move are committed between the questions for REALTIME and OFFLINE (R4)."""
    home, other = open_home(), open_home("b")
    create(home)
    follower = WarehouseFollower(other)
    realtime, offline = Path("t/REALTIME"), Path("t/OFFLINE")
    follower._newest = {realtime: 0, offline: 0}
    logs = {realtime: ["r1"], offline: ["o1"]}

    def entry_of(mirror: object, half: Path, version: int) -> str | None:
        text = logs[half][version - 1] if version <= len(logs[half]) else None
        if half == offline and len(logs[offline]) == 1:
            logs[realtime].append("r2: a batch")
            logs[offline].append("o2: its move")
        return text

    monkeypatch.setattr(follow, "entry_of", entry_of)
    assert follower._fresh([offline, realtime]) == {offline: ["o1", "o2: its move"], realtime: ["r1", "r2: a batch"]}
    monkeypatch.setattr(follow, "entry_of", lambda *_: "never still" if len(logs[realtime]) > 2 else None)
    assert follower._fresh([offline, realtime]) == {offline: [], realtime: []}
