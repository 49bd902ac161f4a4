"""Plans on a warehouse's store that are not lost, in a home whose copy, table or store is, and what they cost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import DataError, StoreError
from hybrid.home.home import Home
from hybrid.lake import plans
from hybrid.lake.plans import DesiredState
from hybrid.operations.tables.drop import drop_table, undrop_table
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.push import push_warehouse
from hybrid.operations.warehouse.sync import sync_warehouse
from hybrid.store import published_definition, published_plans
from hybrid.store.store_client import StoreClient
from tests.operations.plan_homes import (
    files,
    make_plan,
    open_one,
    push,
    pushed_rows,
    wish,
    wish_of,
)
from tests.operations.warehouse_homes import (
    create,
    findings,
    keys,
    mirror_of,
    on_store,
    open_home,
    server,
    taken_over,
    url,
)
from tests.s3_server import needs_s3

__all__ = ["open_home", "server", "url"]  # fixtures
pytestmark = [pytest.mark.process, needs_s3]


def away(*_: object, **__: object) -> None:
    raise StoreError("away", fault="unreachable")


def test_plans_of_many_threads_are_all_listed(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    ids = [f"backfill-{number}" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda plan_id: make_plan(home, plan_id), ids))
        list(pool.map(lambda plan_id: wish(home, DesiredState.RUN, plan_id), ids))
    other = taken_over(open_home)
    assert files(other) == files(home) and {wish_of(other, plan_id) for plan_id in ids} == {DesiredState.RUN}
    assert on_store(home).count("LIST") == 1


def test_a_restored_copy_of_a_home_loses_no_plan(open_home: Callable[..., Home], tmp_path: Path) -> None:
    home = open_home()
    create(home)
    make_plan(home)
    entry = open_one(home, "x", "y")
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    make_plan(home, "backfill-2")
    wish(home, DesiredState.CANCEL)
    push(home, entry, "x")
    copy = open_home("copy")
    make_plan(copy, "backfill-3")
    other = taken_over(open_home)
    assert set(plans.plan_ids(other.layout("orders"))) == {"backfill-1", "backfill-2", "backfill-3"}
    assert wish_of(other) is DesiredState.CANCEL, "what has ended does not go on"
    assert pushed_rows(other, entry) == {"x": ["replace-job x"]}


def test_the_home_that_writes_brings_back_a_plan_that_it_has_lost(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    make_plan(home)
    wish(home, DesiredState.PAUSE)
    before = files(home)
    shutil.rmtree(home.layout("orders").plan("backfill-1"))
    assert [severity for severity, _ in findings(home)] == ["warning"]
    assert "of plans" in (findings(home, repair=True)[0][1] or "")
    assert files(home) == before and findings(home) == []


def test_a_store_that_is_away_keeps_a_plan_here_until_it_is_back(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    create(home)
    make_plan(home)

    with monkeypatch.context() as patch, pytest.raises(StoreError):
        patch.setattr(published_definition, "_try_replace", away)
        wish(home, DesiredState.PAUSE)
    assert wish_of(home) is DesiredState.PAUSE
    assert findings(home)[0][0] == "warning"
    make_plan(home, "backfill-2")
    assert findings(home) == [] and wish_of(taken_over(open_home)) is DesiredState.PAUSE


def test_rows_stay_on_the_store_until_it_has_the_end_of_their_plan(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    create(home)
    make_plan(home)

    with monkeypatch.context() as patch:
        patch.setattr(published_definition, "_try_replace", away)
        with pytest.raises(StoreError):
            wish(home, DesiredState.CANCEL)
        with pytest.raises(StoreError):
            plans.discard_rows(home.layout("orders"), "backfill-1")
    other = taken_over(open_home)
    assert wish_of(other) is DesiredState.LOOK and plans.has_rows(other.layout("orders"), "backfill-1")
    assert len(files(other)) == 4


def test_a_table_that_was_dropped_has_its_plans_when_it_is_back(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    make_plan(home)
    drop_table(home, "orders")
    create(home, segments=("new",))
    make_plan(home, "backfill-of-another")
    assert plans.plan_ids(taken_over(open_home).layout("orders")) == ["backfill-of-another"]
    home = taken_over(open_home, "a")
    drop_table(home, "orders", purge=True)
    assert on_store(home) == []
    create(home)
    make_plan(home, "backfill-3")
    drop_table(home, "orders")
    undrop_table(home, "orders")
    assert plans.plan_ids(taken_over(open_home, "c").layout("orders")) == ["backfill-3"]


def test_a_home_with_plans_is_pushed(open_home: Callable[..., Home]) -> None:
    plain = open_home(with_store=False)
    create(plain)
    make_plan(plain)
    wish(plain, DesiredState.RUN)
    entry = open_one(plain, "x")
    push(plain, entry, "x")
    before = files(plain)
    assert not list(plain.layout("orders").plans.rglob("*.key")), "a home without a store is as it was"
    push_warehouse(open_home())
    other = taken_over(open_home)
    assert files(other) == before and pushed_rows(other, entry) == {"x": ["replace-job x"]}


def test_a_list_that_is_gone_or_damaged_is_put_again(open_home: Callable[..., Home]) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    make_plan(home)
    mirror = mirror_of(home)
    for spoil, words in (
        (mirror.client.delete, "is missing"),
        (lambda key: mirror.client.upload(key, b"["), "damaged"),
    ):
        (key,) = [key for key in keys(home) if key.endswith(".list")]
        spoil(key)
        published_plans._LISTS.clear()
        with pytest.raises(DataError, match=words):
            pull_warehouse(other)
        if words == "damaged":
            mirror.client.delete(key)
        published_plans._LISTS.clear()
        sync_warehouse(home)
        pull_warehouse(other)
        assert files(other) == files(home)


def test_the_requests_of_a_plan(open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/adr/0069 says them."""
    home = open_home()
    create(home)
    make_plan(home, "backfill-0")
    calls = list[str]()
    for name in ("get", "create", "replace", "upload", "upload_file", "delete", "list_below", "size_of"):
        real = getattr(StoreClient, name)

        def call(self: StoreClient, *args: Any, name: str = name, real: Any = real, **options: Any) -> Any:
            calls.append(name)
            return real(self, *args, **options)

        monkeypatch.setattr(StoreClient, name, call)
    mirror_of(home).require_writable(is_recent_enough=False)
    calls.clear()
    make_plan(home)
    assert calls.count("upload_file") == 4 and len(calls) == 4 + 2 + 5
    calls.clear()
    wish(home, DesiredState.RUN)
    assert sorted(calls) == ["delete", "get", "get", "replace", "upload"]
    calls.clear()
    wish(home, DesiredState.ENDED)
    plans.discard_rows(home.layout("orders"), "backfill-1")
    assert calls.count("delete") == 1 + 2 and len(calls) == 5 + 2 + 1 + 2
