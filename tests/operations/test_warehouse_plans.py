"""Plans and replacements in progress on a warehouse's store: found by whoever takes over, whatever a crash has left."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from hybrid.errors import ConflictError
from hybrid.home.home import Home
from hybrid.lake import plans, pushes, unneeded_plans
from hybrid.lake.failpoints import PLAN_STEPS
from hybrid.lake.plans import DesiredState
from hybrid.lake.pushes import PushState
from hybrid.operations.warehouse import follow
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.sync import sync_warehouse
from hybrid.replace.opening import take_back
from hybrid.store import published_definition, published_plans
from hybrid.store.mirror import Mirror
from hybrid.store.published_definition import PublishedTable
from tests.operations.plan_homes import (
    ODD,
    files,
    make_plan,
    open_one,
    push,
    pushed_rows,
    wish,
    wish_of,
)
from tests.operations.warehouse_homes import (
    Killed,
    create,
    dying,
    frozen_at,
    keys,
    mirror_of,
    on_store,
    open_home,
    server,
    soon,
    taken_over,
    url,
)
from tests.s3_server import needs_s3
from tests.shared_jvm import run_forked

__all__ = ["open_home", "server", "url"]  # fixtures
pytestmark = [pytest.mark.process, needs_s3]


def test_a_home_that_takes_over_has_the_plans_with_their_states(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    for number, state in enumerate((None, DesiredState.RUN, DesiredState.PAUSE, DesiredState.CANCEL)):
        make_plan(home, f"backfill-{number}")
        if state is not None:
            wish(home, state, f"backfill-{number}", error="of then")
    plans.discard_rows(home.layout("orders"), "backfill-3")
    other = taken_over(open_home)
    assert files(other) == files(home) and len(files(home)) == 4 + 5 + 5 + 3
    assert [wish_of(other, f"backfill-{number}").value for number in range(4)] == ["look", "run", "pause", "cancel"]
    assert plans.desired_state_of(other.layout("orders"), "backfill-1").error == "of then"
    assert f"backfill-0/rows/_hy_segment={ODD}/part-0.parquet" in files(other)
    assert "backfill-3/claims/part-0.parquet" in on_store(other), "what it has claimed can still be given back"
    assert not [name for name in on_store(other) if name.startswith("backfill-3/rows")]
    wish(other, DesiredState.ENDED, "backfill-1")
    plans.discard_rows(other.layout("orders"), "backfill-1")
    third = taken_over(open_home, "c")
    assert files(third) == files(other) and wish_of(third, "backfill-1") is DesiredState.ENDED
    assert on_store(home).count("LIST") == 1
    assert sync_warehouse(third).did_something is False


def test_a_table_without_plans_costs_nothing(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    sync_warehouse(home)
    assert on_store(home) == [] and files(taken_over(open_home)) == {}


@pytest.mark.parametrize("step", PLAN_STEPS)
@pytest.mark.parametrize("verb", ["plan", "run", "cancel", "push"])
def test_killed_at_each_step(
    open_home: Callable[..., Home], verb: str, step: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was not acknowledged is there whole or not at all: in the home, on the store, and after the next sync."""
    home = open_home()
    create(home)
    entry = open_one(home, "x", "y")
    if verb in ("run", "cancel"):
        make_plan(home)
    before = files(home)
    monkeypatch.setenv("HYBRID_WAREHOUSE", url)
    code, words = run_forked(step, None, "tests.operations.plan_homes", str(home.folder), verb)
    passes = {"plan.uploaded": {"plan", "push"}, "plan.removed": {"cancel"}}.get(step, {verb})
    assert code == (-signal.SIGKILL if verb in passes else 0), words
    other = open_home("b")
    pull_warehouse(other)
    is_listed = step in ("plan.published", "plan.removed") or verb not in passes
    if not is_listed:
        assert files(other) == before, "of what nobody was told of, the store shows nothing"
    again = open_home()
    sync_warehouse(again)
    assert on_store(again).count("LIST") == 1
    pull_warehouse(other)
    # What a killed cancel leaves here goes with the next purge; a home that takes over does not get it.
    left = {name for name in files(again) if verb == "cancel" and "/rows/" in name}
    assert files(other) == {name: data for name, data in files(again).items() if name not in left}
    ids = {name.partition("/")[0] for name in on_store(again)} - {"LIST"}
    assert ids == {name.partition("/")[0] for name in files(again)}, "no file is left that nobody names"
    is_here = step != "plan.uploaded" or verb not in passes
    assert (files(again) != before) is is_here
    if verb == "push":
        assert pushed_rows(other, entry) == ({"x": ["replace-job x"]} if is_here else {})
    if verb == "cancel":
        assert wish_of(other) is DesiredState.CANCEL
        assert not [name for name in on_store(again) if "/rows/" in name and name.startswith("backfill")]
    assert sync_warehouse(again).did_something is False


# Before it looks, behind the look, behind the question who writes, and behind the list is put.
POINTS = [
    (published_definition, "_parsed"),
    (Mirror, "require_writable"),
    (published_definition, "_document"),
    (published_plans, "put_files"),
    (published_definition, "_try_replace"),
]


@pytest.mark.parametrize("owner, name", POINTS, ids=[name for _, name in POINTS])
@pytest.mark.parametrize("verb", ["plan", "pause", "push", "close"])
def test_a_home_that_was_frozen_changes_no_plan_of_its_successor(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, verb: str
) -> None:
    if name == "put_files" and verb in ("pause", "close"):
        pytest.skip("no file is put")
    home, other = open_home(), open_home("b")
    create(home)
    make_plan(home)
    entry = open_one(home, "x", "y")
    push(home, entry, "x", "replace-early")

    def meanwhile() -> None:
        pull_warehouse(other, take_over=True)
        wish(other, DesiredState.CANCEL)
        plans.discard_rows(other.layout("orders"), "backfill-1")
        make_plan(other, "backfill-2")
        push(other, entry, "y", "replace-theirs")

    work = {
        "plan": lambda: make_plan(home, "backfill-late"),
        "pause": lambda: wish(home, DesiredState.PAUSE),
        "push": lambda: push(home, entry, "x", "replace-late"),
        "close": lambda: take_back(home.layout("orders"), entry, force=True),
    }
    with frozen_at(monkeypatch, owner, name, meanwhile), pytest.raises(ConflictError, match="another home"):
        work[verb]()
    third = taken_over(open_home, "c")
    assert files(third) == files(other)
    assert set(plans.plan_ids(third.layout("orders"))) == {"backfill-1", "backfill-2"}
    assert wish_of(third) is DesiredState.CANCEL
    assert pushed_rows(third, entry) == {"x": ["replace-early x"], "y": ["replace-theirs y"]}
    pull_warehouse(home)
    assert files(home) == files(third), "what it had written here for itself is gone"
    sync_warehouse(third)
    assert not [name for name in on_store(third) if "late" in name], "and so are the files that it had put"


def test_what_is_written_just_before_the_definitions_are_fenced_is_brought(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former home has looked who writes before the claim, and lists its plan right behind it."""
    home, other = open_home(), open_home("b")
    create(home)
    rewrite = published_definition.rewrite_definition

    def rewriting(mirror: Mirror, table: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Mirror, "require_writable", lambda *_, **__: None)
            make_plan(home)
        rewrite(mirror, table)

    monkeypatch.setattr("hybrid.operations.warehouse.pull.rewrite_definition", rewriting)
    pull_warehouse(other, take_over=True)
    assert files(other) == files(home) and len(files(other)) == 4


def test_a_definition_that_was_read_late_does_not_overwrite_the_successors(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who writes is asked behind the look at the definition."""
    home, other = open_home(), open_home("b")
    create(home)

    def meanwhile() -> None:
        pull_warehouse(other, take_over=True)

    path = home.layout("orders").root / "definition.json"
    path.write_text(path.read_text().replace('"created_at": "', '"created_at": "0'))
    frozen = frozen_at(monkeypatch, published_definition, "definition_key", meanwhile)
    with frozen, pytest.raises(ConflictError, match="another home"):
        home.definitions.publish("orders")
    assert other.definitions.published("orders") == other.definitions.find("orders")


def test_a_follower_brings_plans_when_they_change(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    follower = WarehouseFollower(other)
    follower.look()
    make_plan(home)
    entry = open_one(home, "x")
    push(home, entry, "x")
    soon(follower)
    assert files(other) == files(home) and pushed_rows(other, entry) == {"x": ["replace-job x"]}
    for write in (lambda: wish(other, DesiredState.CANCEL), lambda: open_one(other, "z")):
        with pytest.raises(ConflictError, match="written by another home"):
            write()
    assert files(other) == files(home)
    wish(home, DesiredState.CANCEL)
    plans.discard_rows(home.layout("orders"), "backfill-1")
    take_back(home.layout("orders"), entry, force=True)
    soon(follower)
    assert files(other) == files(home) and pushes.in_progress(other.layout("orders")) == []
    calls = list[None]()
    monkeypatch.setattr(follow, "bring_plans", lambda *_: calls.append(None))
    soon(follower)
    assert calls == [], "a list that has not changed is not read again"


def test_a_replacement_in_progress_is_taken_back_by_the_successor(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    entry = open_one(home, "x", "y")
    push(home, entry, "x", "replace-1")
    push(home, entry, "x", "replace-2")
    other = taken_over(open_home)
    layout = other.layout("orders")
    assert pushes.in_progress(layout) == [entry]
    assert pushed_rows(other, entry) == {"x": ["replace-2 x"]} and pushes.next_number(layout, entry.id) == 3
    push(other, entry, "y", "replace-3")
    take_back(layout, entry, force=True)
    assert on_store(other) == ["LIST", f"{entry.id}/replacement.json"]
    with pytest.raises(ConflictError, match="written by another home"):
        push(home, entry, "x", "replace-4")
    third = taken_over(open_home, "c")
    assert pushes.state_of(third.layout("orders"), entry.id) is PushState.REVERTED
    assert pushes.left_behind(third.layout("orders")) == []


@pytest.mark.parametrize("at", range(6))
def test_a_pull_that_is_killed_shows_no_plan_in_part(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    pull_warehouse(other)
    make_plan(home)
    entry = open_one(home, "x")
    push(home, entry, "x")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        dying(patch, Mirror, "fetch", at)
        pull_warehouse(other)
    part = other.layout("orders").plan("backfill-1") / "rows" / "_hy_segment=a" / "p.parquet.1.part"
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(b"of a download")
    seen = {name: data for name, data in files(other).items() if not name.endswith(".part")}
    for document in ("plan.json", "replacement.json"):
        for name in (name for name in seen if name.endswith(document)):
            plan = f"{name.partition('/')[0]}/"
            assert {n for n in files(home) if n.startswith(plan)} == {n for n in seen if n.startswith(plan)}
    pull_warehouse(other)
    assert files(other) == files(home)


def test_rows_of_a_plan_that_is_being_made_are_left_alone(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    make_plan(home)
    mirror, layout = mirror_of(home), home.layout("orders")
    folder = next(key.partition("/backfill-1")[0] for key in keys(home) if "/backfill-1/plan.json" in key)
    names = ("backfill-2/rows/_hy_segment=a/p.parquet", "replace-9/replace-job.1234/rows/_hy_segment=x/p.parquet")
    for name in (*names, f"{'0' * 32}.list"):
        mirror.client.upload(f"{folder}/{name}", b"x")
    with home.bench.staging(layout, "backfill-2"), home.bench.staging(layout, "replace-job"):
        sync_warehouse(home)
        assert set(names) < set(on_store(home)) and on_store(home).count("LIST") == 1
    assert "removed 2 objects of plans that nothing needed" in sync_warehouse(home).sentence
    assert not set(names) & set(on_store(home)) and files(taken_over(open_home)) == files(home)


def test_what_a_crash_has_staged_beside_a_realtime_half_is_removed(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    mirror, table = mirror_of(home), PublishedTable("live", {}, {"REALTIME": "REALTIME-12345678"})
    key = "live/REALTIME-12345678.plans/retention-1/staged/part-0.parquet"
    mirror.client.upload(key, b"x")
    with home.bench.staging(home.layout("live"), "retention-1"):
        assert unneeded_plans.remove_unneeded(mirror, table) == 0
    assert unneeded_plans.remove_unneeded(mirror, table) == 1 and key not in keys(home)


def test_a_list_that_is_about_to_be_named_is_put_again(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync of another process removes it, between the list and the definition that would name it."""
    home = open_home()
    create(home)
    make_plan(home)
    mirror = mirror_of(home)
    published = published_definition.published_table(mirror, "orders")
    assert published is not None

    def meanwhile() -> None:
        assert unneeded_plans.remove_unneeded(mirror, published) == 1

    with frozen_at(monkeypatch, published_definition, "_try_replace", meanwhile):
        wish(home, DesiredState.PAUSE)
    other = taken_over(open_home)
    assert wish_of(other) is DesiredState.PAUSE and files(other) == files(home)
    assert on_store(home).count("LIST") == 1


def test_a_former_home_that_was_clearing_up_removes_nothing_of_its_successors(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = open_home(), open_home("b")
    create(home)
    make_plan(home)

    def meanwhile() -> None:
        pull_warehouse(other, take_over=True)
        make_plan(other, "backfill-2")

    real = unneeded_plans.remove_unneeded

    def frozen(*args: Any) -> int:
        meanwhile()
        return real(*args)

    with monkeypatch.context() as patch, pytest.raises(ConflictError, match="written by another home"):
        patch.setattr("hybrid.operations.warehouse.sync.remove_unneeded", frozen)
        sync_warehouse(home)
    assert files(taken_over(open_home, "c")) == files(other) and len(files(other)) == 8
