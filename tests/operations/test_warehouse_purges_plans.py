"""A purge is no proof while the store has rows of plans that no reading of the mirror sees."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import StoreError
from hybrid.home.home import Home
from hybrid.lake import plan_store, plans, pushes
from hybrid.lake.plans import DesiredState
from hybrid.lake.pushes import PushState
from hybrid.lake.staging import staging_folder
from hybrid.replace.purge.places import clear_ended
from hybrid.replace.purge.purged_store import PurgedStore
from tests.operations.plan_homes import make_plan, open_one, push, wish
from tests.operations.warehouse_homes import create, mirror_of, on_store, open_home, server, url
from tests.s3_server import needs_s3

__all__ = ["open_home", "server", "url"]  # fixtures
pytestmark = [pytest.mark.process, needs_s3]


def store_of(home: Home) -> PurgedStore:
    found = PurgedStore.of(home.table_context(home.table("orders")))
    assert found is not None
    return found


def left_after_clearing(home: Home) -> tuple[str, ...]:
    """What a purge names that the store still has, after it has removed what nobody needs."""
    store = store_of(home)
    store.clear_plans()
    store.bring()
    return store.left({})


def staged_on_store(home: Home) -> list[str]:
    return [name for name in on_store(home) if name.endswith(".parquet") and "/claims/" not in name]


def away(*_: Any, **__: Any) -> None:
    raise StoreError("the store is away")


def test_rows_of_what_ended_while_the_store_was_away_go(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    create(home)
    make_plan(home)
    entry = open_one(home, "x")
    push(home, entry, "x")
    with monkeypatch.context() as patch:
        patch.setattr(plans, "publish_plans", away)
        patch.setattr(plan_store, "publish_plans", away)
        with pytest.raises(StoreError):
            wish(home, DesiredState.CANCEL)
        with pytest.raises(StoreError), pushes.changing(home.layout("orders"), entry.id):
            pushes.close(home.layout("orders"), entry.id, PushState.REVERTED)
    assert len(staged_on_store(home)) == 3
    clear_ended(home.layout("orders"))
    assert left_after_clearing(home) == () and staged_on_store(home) == []


def test_rows_of_a_plan_that_this_home_lacks_are_named(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    make_plan(home)
    entry = open_one(home, "x")
    push(home, entry, "x")
    assert left_after_clearing(home) == (), "they are places, which a purge reads"
    folder = home.layout("orders").plans
    shutil.rmtree(folder / "backfill-1")
    shutil.rmtree(folder / entry.id / "pushes")
    left = left_after_clearing(home)
    assert len(left) == 3 and all("which this home lacks" in words for words in left)


def test_what_an_operation_stages_on_the_store_is_its_own_until_it_ends(open_home: Callable[..., Home]) -> None:
    home = open_home()
    half = create(home)
    mirror = mirror_of(home)
    with staging_folder(home.layout("orders").root / "staging" / "replace-1"):
        mirror.client.upload(f"{mirror.key_of(half)}.plans/replace-1/staged/part-0.parquet", b"rows")
        assert left_after_clearing(home) == () and len(staged_on_store(home)) == 1
    assert left_after_clearing(home) == () and staged_on_store(home) == []
