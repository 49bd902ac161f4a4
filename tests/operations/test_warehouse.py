"""A warehouse on a store: pushed, pulled, followed, synced and cleaned, each also after a kill."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_documents import TableDocuments
from hybrid.doctor.examine import examine
from hybrid.errors import ConflictError, DataError, MachineError, OvertakenError, SpecError, StoreError
from hybrid.home.home import Home
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.create import arrow_schema, record_batch
from hybrid.lake.files import RowsFile, path_in_half
from hybrid.lake.layout import physical_columns, statistics_columns
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import newest_entry
from hybrid.lake.store_log import align
from hybrid.lake.store_vacuum import remove_from_store, require_files
from hybrid.lake.transaction import LogTransaction
from hybrid.operations.tables import drop
from hybrid.operations.tables.create import create_table
from hybrid.operations.tables.drop import drop_table, dropped_copies, remove_copy, undrop_table
from hybrid.operations.tables.schemas import drop_schema, put_schema
from hybrid.operations.warehouse import follow, mirrored_tables, pull, push, sync
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.pull import pull_warehouse, take_over_warehouse
from hybrid.operations.warehouse.push import push_warehouse
from hybrid.operations.warehouse.sync import sync_warehouse, warehouse_status
from hybrid.operations.warehouse.writer_sign import SignGiver, SignWatch, read_sign
from hybrid.progress import Silent
from hybrid.serve import warehouse_keeper
from hybrid.serve.warehouse_keeper import Writer
from hybrid.store import published_definition
from hybrid.store.mirror import mirror_at, read_mark
from hybrid.table.columns import SEGMENT
from hybrid.table.state import next_act
from tests.mirrors import new_url
from tests.s3_server import S3Server, needs_s3, s3_server

pytestmark = [pytest.mark.process, needs_s3]

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"


class Killed(BaseException):
    """As if the process had died here."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        found.create_bucket("bucket")
        yield found


@pytest.fixture
def url(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return new_url()


@pytest.fixture
def open_home(tmp_path: Path, url: str) -> Callable[..., Home]:
    def opened(name: str = "a", *, with_store: bool = True) -> Home:
        environ = {"HYBRID_WAREHOUSE": url} if with_store else {}
        return Home(load_settings(home=tmp_path / name, environ=environ), Silent())

    return opened


def documents(name: str) -> TableDocuments:
    schema = {**json.loads((DATA / "orders_schema.json").read_text()), "schemaName": name}
    config = json.loads((DATA / "orders_offline_table.json").read_text())
    config = {**config, "tableName": name, "segmentsConfig": {**config["segmentsConfig"], "schemaName": name}}
    return TableDocuments((schema, "schema"), ((config, "config"),))


def create(home: Home, name: str = "orders", segments: tuple[str, ...] = ("a", "b")) -> Path:
    """A table with a row in each of some segments; its OFFLINE half."""
    create_table(home, documents(name))
    for segment in segments:
        add(home, name, segment)
    return home.layout(name).half(Half.OFFLINE)


def add(home: Home, name: str, segment: str) -> None:
    spec, half = home.spec(name), home.layout(name).half(Half.OFFLINE)
    hidden = (segment, "kafka", "topic", 0, 0, 1, 1001, "row", 1)
    fields = tuple(
        {"order_status": "OPEN", "ts": 1632681000000, "amount": 1.0}.get(f.name, 1) for f in spec.schema.fields
    )
    assert len(hidden) + len(fields) == len(physical_columns(spec, Half.OFFLINE))
    file = write_row(half, spec, (*hidden, *fields))
    state = open_half(half).offline
    act = next_act(state, new_act_id("replace"), "replace", "2026-01-01T00:00:00Z", {})
    with home.bench.lock(home.layout(name), Half.OFFLINE, with_spark=False):
        LogTransaction(half).commit(replace(state, act=act), [file])


def write_row(half: Path, spec: TableSpec, row: tuple[object, ...]) -> dict[str, object]:
    file = RowsFile(half / path_in_half(str(row[0]), ""), "x", statistics_columns(spec, Half.OFFLINE))
    file.write(record_batch(arrow_schema(spec, Half.OFFLINE), [row]).drop_columns([SEGMENT]))
    return file.close().entry(str(row[0]))


def segments(home: Home, name: str = "orders") -> list[str]:
    half = open_half(home.layout(name).half(Half.OFFLINE))
    assert half.table.to_pyarrow_table().num_rows == len(half.files), "each file can be read"
    return sorted(file.segment for file in half.files)


def keys(home: Home) -> list[str]:
    mirror = mirror_at(home.settings.warehouse)
    assert mirror is not None
    return [item.key for item in mirror.client.list_below()]


def states(home: Home) -> set[str]:
    return {half.state for half in warehouse_status(home).halves}


def dying(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, at: int = 0) -> None:
    """Let the call number `at` of a function die before it does anything."""
    real, calls = getattr(module, name), list[None]()

    def call(*args: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) > at:
            raise Killed
        return real(*args, **options)

    monkeypatch.setattr(module, name, call)


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
        patch.setattr(type(home.definitions), "publish", lambda *_: (_ for _ in ()).throw(Killed))
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


def soon(follower: WarehouseFollower) -> int:
    """A look that lists the tables."""
    follower._listed_at = -100.0
    return follower.look()


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
        patch.setattr(type(home.definitions), "publish", lambda *_: (_ for _ in ()).throw(Killed))
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


def test_a_sign_of_life_tells_pauses_and_is_missed(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    pull_warehouse(other)
    ours, theirs = mirror_at(home.settings.warehouse), mirror_at(other.settings.warehouse)
    assert ours is not None and theirs is not None
    watch = SignWatch(theirs, silent_s=1)
    assert watch._silent_s == 9, "not before three signs were left out"
    watch._silent_s = 0.6
    time.sleep(0.25)
    assert watch.silent_claim() is None, "without any sign nobody takes over"
    home.catalog.serving.pause("orders", "for a while")
    giver = SignGiver(home, ours)
    for _ in range(3):
        giver.give()
        time.sleep(0.25)
        assert watch.silent_claim() is None
    silent = list[bool]()
    for _ in range(4):
        time.sleep(0.25)
        silent.append(watch.silent_claim() is not None)
    assert silent[-1] and not silent[0]
    time.sleep(0.4)
    assert watch.silent_claim() is None, "the watch itself was away"
    pull_warehouse(other, take_over=True)
    assert other.catalog.serving.pauses()["orders"].comment == "for a while"
    for _ in range(4):
        time.sleep(0.25)
        assert watch.silent_claim() is None, "the new writer has given no sign yet"
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


def findings(home: Home, *, repair: bool = False) -> list[tuple[str, str | None]]:
    """Severity and hint of what the doctor finds in the warehouse."""
    found = examine(Hybrid.of(home), repair=repair)
    return [
        (finding.severity.value, finding.repair or finding.hint) for finding in found if finding.check == "warehouse"
    ]


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
