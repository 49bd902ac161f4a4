"""Snapshots of halves that pages share: opened once for each version, never of another one than the newest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.home.table_ref import TableRef
from hybrid.lake import log
from hybrid.lake.create import create_half
from hybrid.lake.log import HalfSnapshot
from hybrid.serve.open_halves import OpenHalves
from tests.query.halves import Halves, orders_spec
from tests.serve.app import App

REALTIME = Half.REALTIME


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of the logs that are opened, in their order."""
    paths, open_half = list[Path](), log.open_half

    def noting(path: Path, version: int | None = None) -> HalfSnapshot:
        paths.append(path)
        return open_half(path, version)

    monkeypatch.setattr(log, "open_half", noting)
    return paths


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    return Halves.create(tmp_path, orders_spec())


def ref(halves: Halves) -> TableRef:
    return TableRef(halves.spec, halves.layout)


def test_a_version_is_opened_once_for_all_who_look(halves: Halves, opened: list[Path]) -> None:
    shared, table = OpenHalves(), ref(halves)
    first = shared.pinned(table).half(REALTIME)
    assert shared.pinned(table).half(REALTIME) is first
    assert len(opened) == 1


def test_a_commit_is_seen_by_who_looks_afterwards(halves: Halves, opened: list[Path]) -> None:
    shared, table = OpenHalves(), ref(halves)
    before = shared.pinned(table)
    version = before.half(REALTIME).version
    assert before.half(REALTIME).files == ()
    halves.commit_realtime([], offsets={})
    assert shared.pinned(table).half(REALTIME).version == version + 1
    assert before.half(REALTIME).version == version, "an answer of several parts is of one version"
    assert len(opened) == 1, "the commit was read by itself"


def test_commits_behind_a_table_created_again_are_not_taken_for_its_own(halves: Halves, opened: list[Path]) -> None:
    shared, table = OpenHalves(), ref(halves)
    first = shared.pinned(table).half(REALTIME)
    path = halves.layout.half(REALTIME)
    shutil.rmtree(path)
    create_half(path, halves.spec, REALTIME, halves.state(REALTIME))
    halves.commit_realtime([], offsets={})
    second = shared.pinned(table).half(REALTIME)
    assert (second.version, second.table_id == first.table_id) == (first.version + 1, False)
    assert len(opened) == 2


def test_a_foreign_commit_opens_the_log(halves: Halves, opened: list[Path]) -> None:
    shared, table = OpenHalves(), ref(halves)
    first = shared.pinned(table).half(REALTIME)
    DeltaTable(str(halves.layout.half(REALTIME))).alter.set_table_properties({"delta.appendOnly": "false"})
    second = shared.pinned(table).half(REALTIME)
    assert (second.version, second.properties["delta.appendOnly"]) == (first.version + 1, "false")
    assert len(opened) == 2


def test_a_table_created_again_is_another(halves: Halves) -> None:
    """At the same path and at the same version."""
    shared, table = OpenHalves(), ref(halves)
    first = shared.pinned(table).half(REALTIME)
    path = halves.layout.half(REALTIME)
    shutil.rmtree(path)
    create_half(path, halves.spec, REALTIME, halves.state(REALTIME))
    second = shared.pinned(table).half(REALTIME)
    assert (second.version, second.table_id == first.table_id) == (first.version, False)


def test_a_half_that_is_gone_or_was_never_there(tmp_path: Path, halves: Halves) -> None:
    shared = OpenHalves()
    shared.pinned(ref(halves)).half(REALTIME)
    shutil.rmtree(halves.layout.half(REALTIME))
    with pytest.raises(NotFoundError, match="no Delta table"):
        shared.pinned(ref(halves)).half(REALTIME)
    only = Halves.create(tmp_path / "only", orders_spec(halves=[Half.OFFLINE]))
    with pytest.raises(NotFoundError, match="has no REALTIME half"):
        shared.pinned(ref(only)).half(REALTIME)


@pytest.mark.parametrize(("halves_max", "files_max", "is_kept"), [(2, 10, True), (1, 10, False), (2, 1, False)])
def test_few_halves_and_files_are_kept(
    orders: App, opened: list[Path], halves_max: int, files_max: int, is_kept: bool
) -> None:
    shared, table = OpenHalves(halves_max, files_max), orders.home.context.table("orders")
    opened.clear()
    for half in Half:
        assert shared.pinned(table).half(half).files
    shared.pinned(table).half(next(iter(Half)))
    assert len(opened) == (2 if is_kept else 3)


@pytest.mark.slow
def test_all_that_windows_poll_opens_each_half_once(orders: App, opened: list[Path]) -> None:
    opened.clear()
    for path, target in (
        ("/", "main#main"),
        ("/ui/tables/orders", "div#facts"),
        ("/ui/tables/orders/status", "div#freshness"),
        ("/ui/tables/orders/ingestion", "div#live"),
    ):
        orders.ok("GET", path, headers={"HX-Request": "true", "HX-Target": target})
    orders.ok("GET", "/ui/tables/orders.json")
    assert len(set(opened)) == len(opened) == len(Half)
