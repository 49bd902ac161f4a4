"""A warehouse on a store: pushed, pulled, taken over, synced and cleaned, each also after a kill."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, OvertakenError, SpecError
from hybrid.home.home import Home
from hybrid.lake.lineage_archive import keep_acts, kept_acts, store_archive
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import newest_entry
from hybrid.lake.store_log import align
from hybrid.lake.store_vacuum import remove_from_store, require_files
from hybrid.operations.tables import drop
from hybrid.operations.tables.drop import drop_table, dropped_copies, remove_copy, undrop_table
from hybrid.operations.tables.schemas import put_schema
from hybrid.operations.warehouse import mirrored_tables, pull, push, sync
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.push import push_warehouse
from hybrid.operations.warehouse.sync import sync_warehouse, warehouse_status
from hybrid.store import published_definition
from hybrid.store.mirror import Mirror, mirror_at, read_mark
from hybrid.store.store_client import StoreClient
from hybrid.table.state import Act
from tests.operations.warehouse_homes import (
    DATA,
    Killed,
    add,
    create,
    dying,
    findings,
    frozen_at,
    keys,
    open_home,
    segments,
    server,
    states,
    url,
)
from tests.s3_server import S3Server, needs_s3

__all__ = ["open_home", "server", "url"]  # fixtures
pytestmark = [pytest.mark.process, needs_s3]


def test_a_home_without_a_store(open_home: Callable[..., Home]) -> None:
    home = open_home(with_store=False)
    create(home)
    for work in (push_warehouse, pull_warehouse, sync_warehouse, warehouse_status):
        with pytest.raises(SpecError, match="the setting 'warehouse' names no store"):
            work(home)


@pytest.mark.parametrize("step", ["push_half", "mark"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_push_that_is_killed_continues(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch, step: str, at: int
) -> None:
    plain = open_home(with_store=False)
    create(plain, "one")
    create(plain, "two", ("x",))
    put_schema(plain, json.loads((DATA / "orders_schema.json").read_text()), "s")
    home = open_home()
    if not (step == "mark" and at):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            dying(patch, push, step, at)
            push_warehouse(home)
        with pytest.raises(ConflictError, match="are not at"):
            add(home, "one", "c")
    assert push_warehouse(home).tables == ("one", "two")
    assert states(home) == {"SAME"}
    other = open_home("b")
    pull_warehouse(other)
    assert segments(other, "one") == ["a", "b"] and segments(other, "two") == ["x"]
    assert (other.settings.warehouse / ".schemas" / "orders.json").exists()


def test_a_push_after_which_a_table_is_not_listed_yet(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(open_home(with_store=False))
    home = open_home()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(type(home.definitions), "publish", lambda *_, **__: (_ for _ in ()).throw(Killed))
        push_warehouse(home)
    assert "orders/definition.json" not in keys(home)
    add(open_home(), "orders", "c")
    assert "orders/definition.json" in keys(home), "a commit is acknowledged for listed tables only"


@pytest.mark.parametrize("step", ["pull_table", "fence_half", "rewrite_definition", "_pull_schemas"])
def test_a_take_over_that_is_killed_continues(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    pull_warehouse(other)
    add(home, "orders", "c")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        dying(patch, pull, step)
        pull_warehouse(other, take_over=True)
    with pytest.raises(ConflictError, match="a pull was cut short"):
        add(other, "orders", "d")
    pull_warehouse(other, take_over=True)
    with pytest.raises(ConflictError, match="written by another home"):
        add(open_home(), "orders", "late")
    add(other, "orders", "d")
    assert segments(other) == ["a", "b", "c", "d"] and states(other) == {"SAME"}


def test_a_pull_that_is_killed_shows_no_table_in_part(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    for step in ("entry_of", "link_brought", "bring_definition"):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            dying(patch, mirrored_tables, step, 1 if step == "link_brought" else 0)
            pull_warehouse(other)
        assert other.definitions.names() == []
    pull_warehouse(other)
    assert segments(other) == ["a", "b"]


def test_a_home_with_tables_of_its_own_pulls_nothing(open_home: Callable[..., Home]) -> None:
    create(open_home("a"))
    create(open_home("b", with_store=False))
    with pytest.raises(ConflictError, match="has tables of its own"):
        pull_warehouse(open_home("b"), take_over=True)
    assert read_mark(open_home("b").settings.warehouse) is None


def test_nothing_is_pulled_where_nothing_is(open_home: Callable[..., Home]) -> None:
    with pytest.raises(ConflictError, match="There is no warehouse at"):
        pull_warehouse(open_home())


def test_a_drop_that_is_killed_is_ended(open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    home = open_home()
    create(home)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(type(home.definitions), "withdraw", lambda *_: (_ for _ in ()).throw(Killed))
        drop_table(home, "orders")
    assert home.definitions.published("orders") is not None
    report = sync_warehouse(home)
    assert "ended the drop of orders" in report.sentence and home.definitions.published("orders") is None
    undrop_table(home, "orders")
    assert home.definitions.published("orders") is not None and segments(home) == ["a", "b"]
    assert sync_warehouse(home).did_something is False
    drop_table(home, "orders")
    create(home, segments=("new",))
    assert segments(home) == ["new"] and states(home) == {"SAME"}


def test_a_purged_copy_leaves_nothing_on_the_store(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    create(home)
    drop_table(home, "orders")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        dying(patch, drop.shutil, "rmtree")
        remove_copy(dropped_copies(home, "orders")[0])
    (copy,) = drop.all_copies(home)
    remove_copy(copy)
    assert not [key for key in keys(home) if "OFFLINE" in key]
    create(home, segments=("new",))
    assert segments(home) == ["new"]


def test_vacuum_removes_from_the_store_what_no_commit_names(open_home: Callable[..., Home]) -> None:
    home = open_home()
    half = create(home)
    mirror = mirror_at(half)
    assert mirror is not None
    orphan, live = "_hy_segment=a/part-orphan.parquet", open_half(half).files[0].path.removeprefix(f"{half}/")
    mirror.client.upload(mirror.key_of(half, orphan), b"x")
    assert remove_from_store(mirror, open_half(half), [], window_ms=3_600_000) == 0, "it is young"
    time.sleep(1.1)  # ages have whole seconds
    (half / live).rename(half / "away")
    with pytest.raises(DataError, match="is missing, so nothing of the store goes"):
        require_files(open_half(half))
    (half / "away").rename(half / live)
    assert remove_from_store(mirror, open_half(half), [], window_ms=0) == 1
    assert mirror.client.get(mirror.key_of(half, orphan)) is None
    assert mirror.client.get(mirror.key_of(half, live)) is not None


def test_a_reading_mirror_is_trimmed(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    half = create(home)
    pull_warehouse(other)
    old = other.layout("orders").half(Half.OFFLINE) / "_hy_segment=x" / "part-gone.parquet"
    old.parent.mkdir()
    for age_s, is_there in ((0, True), (7200, False)):
        old.write_bytes(b"x")
        at = time.time() - age_s
        os.utime(old, (at, at))
        pull_warehouse(other)
        assert old.exists() is is_there
    assert segments(other) == segments(home) and newest_entry(half) == 2


def test_a_mirror_that_lags_beyond_the_log_is_brought_whole(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    half = create(home)
    pull_warehouse(other)
    for segment in "cdefghijkl":
        add(home, "orders", segment)
    mirror = mirror_at(half)
    assert mirror is not None
    for version in range(10):
        mirror.client.delete(mirror.key_of(half, f"_delta_log/{version:020d}.json"))
    pull_warehouse(other)
    assert segments(other) == segments(home) and newest_entry(other.layout("orders").half(Half.OFFLINE)) == 12


def test_a_copied_home_does_not_write_twice(open_home: Callable[..., Home], tmp_path: Path) -> None:
    """A copy has the id of the original: their commits are one after the other all the same."""
    home = open_home()
    create(home)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    add(home, "orders", "c")
    with pytest.raises(OvertakenError):
        add(open_home("b"), "orders", "d")
    add(open_home("b"), "orders", "d")
    assert segments(open_home("b")) == ["a", "b", "c", "d"]


def test_a_stale_copy_of_a_home_vacuums_nothing_that_others_need(
    open_home: Callable[..., Home], tmp_path: Path
) -> None:
    home = open_home()
    half = create(home)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    add(home, "orders", "c")
    time.sleep(1.1)  # ages have whole seconds
    stale = open_home("b")
    mirror = mirror_at(stale.settings.warehouse)
    assert mirror is not None
    copy = stale.layout("orders").half(Half.OFFLINE)
    align(mirror, copy)
    removed = [Path(file.path) for file in open_half(copy).files]
    assert remove_from_store(mirror, open_half(copy), removed, window_ms=0) == 0
    pull_warehouse(open_home("c"))
    assert segments(open_home("c")) == segments(home) == ["a", "b", "c"] and half.exists()


def test_an_undrop_is_seen_by_processes_that_knew_the_table_before(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The undrop dies before it publishes; a process that published the table earlier does it with its next commit."""
    home = open_home()
    create(home)
    published = dict(published_definition._PUBLISHED)
    drop_table(home, "orders")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(type(home.definitions), "publish", lambda *_, **__: (_ for _ in ()).throw(Killed))
        undrop_table(home, "orders")
    published_definition._PUBLISHED.update(published)
    add(home, "orders", "c")
    assert home.definitions.published("orders") is not None


def test_a_sync_beside_an_undrop_leaves_the_table(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    create(home)
    create(home, "other")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(type(home.definitions), "withdraw", lambda *_: (_ for _ in ()).throw(Killed))
        drop_table(home, "orders")
    copies = sync.dropped_copies

    def undropping(*args: Any) -> Any:
        found = copies(*args)
        undrop_table(home, "orders")
        return found

    monkeypatch.setattr(sync, "dropped_copies", undropping)
    sync_warehouse(home)
    assert home.definitions.published("orders") is not None and segments(home) == ["a", "b"]


def test_a_take_over_that_is_continued_brings_no_dropped_table_back(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    create(home, "gone")
    pull_warehouse(other)
    drop_table(home, "gone", purge=True)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        dying(patch, pull, "pull_table")
        pull_warehouse(other, take_over=True)
    pull_warehouse(other)  # without the option: it was asked for before
    assert other.definitions.names() == ["orders"]
    sync_warehouse(other)
    assert other.definitions.published("gone") is None
    with pytest.raises(ConflictError, match="written by another home"):
        add(home, "orders", "late")
    add(other, "orders", "c")


def test_what_the_mirror_has_lost_comes_back(open_home: Callable[..., Home]) -> None:
    home = open_home()
    half = create(home)
    for file in open_half(half).files:
        Path(file.path).unlink()
    assert "brought 2 files that the mirror had lost" in sync_warehouse(home).sentence
    assert segments(home) == ["a", "b"]


def test_a_half_of_a_process_that_did_not_know_of_the_store(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    (home.layout("orders").root / "OFFLINE.key").unlink()
    with pytest.raises(DataError, match=r"OFFLINE\.key is missing"):
        add(home, "orders", "c")
    sync_warehouse(home)
    add(home, "orders", "c")
    assert states(home) == {"SAME"} and segments(home) == ["a", "b", "c"]


def test_the_doctor_compares_home_and_store(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch, server: S3Server
) -> None:
    plain = open_home(with_store=False)
    half = create(plain)
    assert findings(plain) == []
    home, other = open_home(), open_home("b")
    assert findings(home) == [("warning", "hybrid warehouse push")]
    push_warehouse(home)
    assert findings(home) == []
    pull_warehouse(other)
    assert findings(other) == [("note", "hybrid warehouse pull (brings what is new)")]
    (half / "_delta_log" / f"{2:020d}.json").unlink()
    assert findings(home) == [("warning", "hybrid doctor --repair")]
    (severity, repair), *_ = findings(home, repair=True)
    assert severity == "warning" and repair is not None and "brought 1 commit of the store" in repair
    assert findings(home) == [] and segments(home) == ["a", "b"]
    with monkeypatch.context() as patch, pytest.raises(Killed):
        dying(patch, pull, "fence_half")
        pull_warehouse(other, take_over=True)
    assert findings(other) == [("warning", "hybrid warehouse pull --take-over")]
    (error,) = findings(open_home(with_store=False))
    assert error[0] == "error" and error[1] is not None and error[1].startswith("Set warehouse = ")


def acts_of(home: Home) -> list[str]:
    """The operations in the archive of OFFLINE on the store."""
    (key,) = [key for key in keys(home) if key.endswith(".acts")]
    mirror = mirror_at(home.settings.warehouse)
    content = mirror.client.get(key) if mirror is not None else None
    assert content is not None
    return [json.loads(line)["act"]["id"] for line in content.data.decode().split("\n")]


def archive(home: Home, version: int) -> None:
    half = home.layout("orders").half(Half.OFFLINE)
    keep_acts(half, "an id", [(version, Act(f"act-{version}", version, "replace", "x", {"by": home.folder.name}))])
    store_archive(half)


@pytest.mark.parametrize("at", [(StoreClient, "get"), (Mirror, "require_writable"), (StoreClient, "replace")])
def test_a_home_that_was_frozen_takes_nothing_from_the_archive(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch, at: tuple[type, str]
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    archive(home, 1)

    def meanwhile() -> None:
        pull_warehouse(other, take_over=True)
        archive(other, 3)

    with frozen_at(monkeypatch, *at, meanwhile), pytest.raises(ConflictError, match="another home"):
        archive(home, 2)
    assert acts_of(other) == ["act-1", "act-3"]
    third = open_home("c")
    pull_warehouse(third)
    kept = kept_acts(third.layout("orders").half(Half.OFFLINE))
    assert [version for version, _ in kept] == [3, 1]


def test_an_older_archive_of_a_restored_home_is_joined(open_home: Callable[..., Home], tmp_path: Path) -> None:
    home = open_home()
    create(home)
    archive(home, 1)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    archive(home, 2)
    archive(open_home("b"), 3)
    assert acts_of(home) == ["act-1", "act-2", "act-3"]
