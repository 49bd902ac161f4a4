"""Snapshots of halves that pages share: opened once for each version, never of another one than the newest."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.home.table_ref import TableRef
from hybrid.lake import log
from hybrid.lake.create import create_half
from hybrid.serve.open_halves import OpenHalves
from tests.query.halves import Halves, orders_spec
from tests.serve.app import App, lay_orders

REALTIME = Half.REALTIME


@dataclass
class Opened:
    """How often logs were opened, by the name of their folder."""

    paths: list[str] = field(default_factory=list)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    counted, open_half = Opened(), log.open_half

    def counting(path: Path, version: int | None = None) -> Any:
        counted.paths.append(str(path))
        return open_half(path, version)

    monkeypatch.setattr(log, "open_half", counting)
    return counted


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    return Halves.create(tmp_path, orders_spec())


def ref(halves: Halves) -> TableRef:
    return TableRef(halves.spec, halves.layout)


def test_a_version_is_opened_once_for_all_who_look(halves: Halves, opened: Opened) -> None:
    shared, table = OpenHalves(), ref(halves)
    first = shared.pinned(table).half(REALTIME)
    assert shared.pinned(table).half(REALTIME) is first
    assert len(opened.paths) == 1


def test_a_commit_is_seen_by_who_looks_afterwards(halves: Halves, opened: Opened) -> None:
    shared, table = OpenHalves(), ref(halves)
    before = shared.pinned(table)
    version = before.half(REALTIME).version
    halves.commit_realtime([], offsets={})
    assert shared.pinned(table).half(REALTIME).version == version + 1
    assert before.half(REALTIME).version == version, "an answer of several parts is of one version"
    assert len(opened.paths) == 2


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
    tmp_path: Path, opened: Opened, halves_max: int, files_max: int, is_kept: bool
) -> None:
    app = App(tmp_path / "home")
    try:
        table = ref(lay_orders(app.home))
        shared = OpenHalves(halves_max, files_max)
        opened.paths.clear()
        for half in Half:
            assert shared.pinned(table).half(half).files
        shared.pinned(table).half(next(iter(Half)))
        assert len(opened.paths) == (2 if is_kept else 3)
    finally:
        app.close()


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(tmp_path / "home")
    lay_orders(app.home)
    yield app
    app.close()


def test_all_that_windows_poll_opens_each_half_once(app: App, opened: Opened) -> None:
    opened.paths.clear()
    for path, target in (
        ("/", "main#main"),
        ("/ui/tables/orders", "div#facts"),
        ("/ui/tables/orders/status", "div#freshness"),
        ("/ui/tables/orders/ingestion", "div#live"),
    ):
        app.ok("GET", path, headers={"HX-Request": "true", "HX-Target": target})
    app.ok("GET", "/ui/tables/orders.json")
    assert sorted(opened.paths) == sorted(set(opened.paths)) and len(opened.paths) == len(Half)
