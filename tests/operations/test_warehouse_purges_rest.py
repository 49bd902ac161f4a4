"""What a reading of the mirror does not see of a table on its store: a purge removes it, or says that it is there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hybrid.errors import ConflictError, StoreError
from hybrid.home.home import Home
from hybrid.lake import plan_store, plans, pushes
from hybrid.lake.checkpoint import write_checkpoint
from hybrid.lake.log import open_half
from hybrid.lake.plans import DesiredState
from hybrid.lake.pushes import PushState
from hybrid.lake.staging import staging_folder
from hybrid.operations.backfills import Backfills
from hybrid.replace.purge.log_statistics import forget_values, logged_files, remembered
from hybrid.replace.purge.places import clear_ended
from hybrid.replace.purge.purged_store import PurgedStore
from tests.operations.plan_homes import NOW, make_plan, open_one, push, wish
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


def test_a_cancel_that_the_store_did_not_answer_is_asked_for_again(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    create(home)
    make_plan(home)
    shutil.rmtree(home.layout("orders").plan("backfill-1") / "claims")  # no Parquet in these tests
    backfills = Backfills(home)
    with monkeypatch.context() as patch, pytest.raises(StoreError):
        patch.setattr(plans, "publish_plans", away)
        backfills.cancel("backfill-1")
    assert backfills.status("backfill-1").state == "CANCELLED" and len(staged_on_store(home)) == 2
    backfills.cancel("backfill-1")
    assert staged_on_store(home) == []
    with pytest.raises(ConflictError, match="nothing to cancel"):
        backfills.cancel("backfill-1")


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


def test_parts_of_files_of_plans_are_left_for_an_hour(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    part = home.layout("orders").plan("backfill-1") / "rows" / "part-0.parquet.0123abcd.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"rows")
    assert left_after_clearing(home) == (f"a part of {part.name}, which is being brought, or was",)
    os.utime(part, (0, 0))
    assert left_after_clearing(home) == () and not part.exists()


def test_what_an_operation_stages_on_the_store_is_its_own_until_it_ends(open_home: Callable[..., Home]) -> None:
    home = open_home()
    half = create(home)
    mirror = mirror_of(home)
    with staging_folder(home.layout("orders").root / "staging" / "replace-1"):
        mirror.client.upload(f"{mirror.key_of(half)}.plans/replace-1/staged/part-0.parquet", b"rows")
        assert left_after_clearing(home) == () and len(staged_on_store(home)) == 1
    assert left_after_clearing(home) == () and staged_on_store(home) == []


def test_what_was_the_same_is_not_read_again_where_etags_are_no_digests(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    half = create(home)
    client, read = mirror_of(home).client, list[str]()
    write_checkpoint(half, 1)
    mirror_of(home).upload(half, f"_delta_log/{1:020d}.checkpoint.parquet")
    listed, get, download = client.list_below, client.get, client.download
    monkeypatch.setattr(
        client, "list_below", lambda *a, **k: [replace(item, etag=f"kms {item.etag}") for item in listed(*a, **k)]
    )
    monkeypatch.setattr(client, "get", lambda key, *a, **k: (read.append(key), get(key, *a, **k))[1])
    monkeypatch.setattr(client, "download", lambda key, path: (read.append(key), download(key, path))[1])

    def read_by_bringing() -> list[str]:
        read.clear()
        store_of(home).bring()
        return sorted(key.rpartition("/")[2] for key in read if "_delta_log" in key)

    entries = [f"{version:020d}.json" for version in range(3)]
    assert set(read_by_bringing()) == {*entries, f"{1:020d}.checkpoint.parquet"}
    assert read_by_bringing() == []
    mirror_of(home).rewrite(mirror_of(home).key_of(half, f"_delta_log/{entries[1]}"), lambda data: data + b"\n")
    assert read_by_bringing() == [entries[1]] and (half / "_delta_log" / entries[1]).read_text().endswith("\n")
    assert read_by_bringing() == []


def test_texts_that_only_the_store_has_are_masked(open_home: Callable[..., Home]) -> None:
    home = open_home()
    half = create(home)
    make_plan(home)
    client, entry = mirror_of(home).client, f"_delta_log/{0:020d}.json"
    (half / entry).unlink()
    shutil.rmtree(home.layout("orders").plan("backfill-1"))
    for count in (2, 0):
        masked = store_of(home).mask_rest(lambda text: text.replace("create", "*"), lambda text: text.replace(NOW, "*"))
        assert masked == count
    key = mirror_of(home).key_of(half)
    texts = [client.get(name) for name in (f"{key}/{entry}", f"{key}.plans/backfill-1/plan.json")]
    assert all(text is not None and b"*" in text.data for text in texts)


def test_what_was_set_aside_or_not_ended_in_a_log_is_named_and_goes(open_home: Callable[..., Home]) -> None:
    half = create(open_home())
    names = [f".{0:020d}.json.1.foreign", f".{0:020d}.json.purged", f".{1:020d}.checkpoint.parquet.purged"]
    for name in names:
        (half / "_delta_log" / name).write_bytes(b"values")
        os.utime(half / "_delta_log" / name, (0, 0))
    current = open_half(half)
    assert sorted(remembered(current)) == sorted(names)
    forget_values(current, (), logged_files(half))
    assert remembered(current) == []
